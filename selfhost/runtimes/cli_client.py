"""A container engine by its command line: podman, and docker where its daemon is reached by ssh."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from selfhost.core.stream import stream
from selfhost.core.system import Completed, System
from selfhost.plan.container.run_words import run_argv
from selfhost.runtimes.container_client import CallFailed, Layer, Object
from selfhost.runtimes.container_log import timed
from selfhost.shapes.workload import Workload

TIMEOUT_S = 60.0
PULL_S = 24 * 3600.0
_MISSING = re.compile(r"no such|not found|not known|unable to find|does not exist|no container with", re.IGNORECASE)
_HALF_MADE = re.compile(r"creating container storage: .*already in use by ([0-9a-f]{64})")
"""A `podman create` that was killed leaves a file system with the name and no container, which nobody can start."""
_LAYER = re.compile(r"^Copying (blob|config) (?:sha256:)?([0-9a-f]{6,64})\s*(.*)$")


class CliClient:
    """Satisfies container_client.Client. Holds no state: every call is a command of its own."""

    def __init__(self, program: str, system: System, *, where: str = "", local: bool = True) -> None:
        self.kind = program
        self.local = local
        self.where = where or f"the command {program}"
        self._system = system

    @property
    def selinux(self) -> bool:
        said = self._json("info", "--format", "json")
        found = said[0] if isinstance(said, list) and said else said
        return bool(found.get("host", {}).get("security", {}).get("selinuxEnabled"))

    def container(self, name: str) -> Object | None:
        return self._inspect("container", "inspect", name)

    def containers(self, label: str) -> tuple[Object, ...]:
        ids = self._run("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={label}").split()
        found = (self.container(one) for one in ids)
        return tuple(one for one in found if one is not None)

    def create(self, workload: Workload) -> str:
        """Values of variables that are passed through stay in the environment, those of env_files in the file."""
        wanted = workload if workload.health is None or self._has_timers() else replace(workload, health=None)
        argv = run_argv(wanted, self.kind, verb=("create", "--pull", "never"))
        try:
            done = self._done(argv)
        except CallFailed as failed:
            half = _HALF_MADE.search(failed.text)
            if half is None:
                raise
            self._gone("rm", "--force", half[1])
            done = self._done(argv)
        lines = done.stdout.split()
        return lines[-1] if lines else workload.name

    def _has_timers(self) -> bool:
        """Podman has systemd run its health checks; without it, it does not even start a container that has one."""
        if self.kind != "podman":
            return True
        try:
            self._system.stat("/run/systemd/system")
        except OSError:
            return False
        return True

    def start(self, container: str) -> None:
        self._run("start", container)

    def stop(self, container: str, *, grace_s: int) -> None:
        self._gone("stop", "--time", str(grace_s), container, timeout_s=TIMEOUT_S + grace_s)

    def remove(self, container: str) -> None:
        self._gone("rm", "--force", "--volumes", container)

    def restart_policy(self, container: str, policy: str) -> bool:
        """Podman has it since 5.1."""
        try:
            self._run("update", "--restart", policy, container)
        except CallFailed as failed:
            if "unknown flag" in failed.text or "unrecognized command" in failed.text:
                return False
            raise
        return True

    def networks(self, label: str) -> tuple[str, ...]:
        return tuple(
            self._run("network", "ls", "--filter", f"label={label}", "--format", "{{.Name}}").split()
        )  # fmt: skip

    def network(self, name: str) -> Mapping[str, str] | None:
        found = self._inspect("network", "inspect", name)
        return None if found is None else found.get("labels") or found.get("Labels") or {}

    def create_network(self, name: str, labels: Mapping[str, str]) -> None:
        self._run("network", "create", *_labels(labels), name)

    def remove_network(self, name: str) -> None:
        self._gone("network", "rm", name)

    def volume(self, name: str) -> Mapping[str, str] | None:
        found = self._inspect("volume", "inspect", name)
        return None if found is None else found.get("Labels") or {}

    def create_volume(self, name: str, labels: Mapping[str, str]) -> None:
        self._run("volume", "create", *_labels(labels), name)

    def remove_volume(self, name: str) -> None:
        self._gone("volume", "rm", name)

    def image(self, reference: str) -> Object | None:
        return self._inspect("image", "inspect", reference)

    def pull(self, reference: str, *, on_layer: Callable[[Layer], None], platform: str = "") -> None:
        """Layers as they begin and end: without a terminal the command says nothing of bytes."""
        words = ("pull", *(("--platform", platform) if platform else ()), reference)

        def line(text: str) -> None:
            found = _LAYER.match(text)
            on_layer(Layer(id=found[2][:12], status=found[3] or "Copying") if found else Layer(status=text))

        done = stream((self.kind, *words), env=self._system.env, timeout_s=PULL_S, on_line=line)
        if not done.ok:
            raise CallFailed(done.stdout or done.stderr, reached=not done.missing)

    def logs(self, container: str, *, since: str = "", tail: int | None = None) -> list[tuple[str, str]] | None:
        words = (*(("--since", since) if since else ()), *(("--tail", str(tail)) if tail is not None else ()))
        done = self._system.run((self.kind, "logs", "--timestamps", *words, container), timeout_s=TIMEOUT_S)
        if not done.ok and _MISSING.search(done.stderr):
            return None
        if not done.ok:
            raise _failed(done)
        # One stream of the container comes on each of ours.
        return sorted((*timed(done.stdout), *timed(done.stderr)), key=lambda pair: pair[0])

    def _inspect(self, *words: str) -> Object | None:
        try:
            said = self._json(*words)
        except CallFailed as failed:
            if failed.reached and _MISSING.search(failed.text):
                return None
            raise
        return said[0] if isinstance(said, list) and said and isinstance(said[0], dict) else None

    def _json(self, *words: str) -> Any:
        text = self._run(*words)
        try:
            return json.loads(text)
        except ValueError:
            raise CallFailed(f"{self.kind} {words[0]} answered with no JSON: {text[:200]}") from None

    def _gone(self, *words: str, timeout_s: float = TIMEOUT_S) -> None:
        try:
            self._run(*words, timeout_s=timeout_s)
        except CallFailed as failed:
            if not (failed.reached and _MISSING.search(failed.text)):
                raise

    def _run(self, *words: str, timeout_s: float = TIMEOUT_S) -> str:
        return self._done((self.kind, *words), timeout_s=timeout_s).stdout

    def _done(self, argv: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> Completed:
        done = self._system.run(argv, timeout_s=timeout_s)
        if not done.ok:
            raise _failed(done)
        return done


def _failed(done: Completed) -> CallFailed:
    if done.missing:
        return CallFailed(f"{done.argv[0]} is not installed", reached=False)
    if done.timed_out:
        return CallFailed(f"`{' '.join(done.argv[:3])}` gave no answer in time", reached=False)
    return CallFailed((done.stderr or done.stdout).strip() or f"it ended with {done.rc}", status=0)


def _labels(labels: Mapping[str, str]) -> list[str]:
    return [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]
