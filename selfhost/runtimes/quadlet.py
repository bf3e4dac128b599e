"""The runtime `quadlet`: podman containers as systemd units, which come back after a crash and a reboot."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.core.processes import ProcessRef
from selfhost.core.system import System
from selfhost.runtimes import containers, ports, quadlet_files
from selfhost.runtimes.base import (
    STOP_GRACE_S,
    EngineState,
    Launchable,
    LocalImage,
    PortTaken,
    RuntimeInfo,
    Seen,
    StopReceipt,
)
from selfhost.runtimes.cli_client import CliClient
from selfhost.runtimes.container_client import CallFailed
from selfhost.runtimes.container_errors import foreign, foreign_network, is_port_taken, worded
from selfhost.runtimes.container_runtime import ContainerRunner
from selfhost.runtimes.journal_log import JournalLog
from selfhost.runtimes.memory import memory_bytes
from selfhost.runtimes.systemd import Systemd
from selfhost.shapes.event import Sink

_POLICIES: Mapping[str, str] = {"unless-stopped": "always", "always": "always", "no": "no", "": ""}
"""Docker's words → systemd.service(5), Restart=. A unit that was stopped by hand stays so until the next boot."""
QUADLET = (
    "/usr/libexec/podman/quadlet",
    "/usr/lib/podman/quadlet",
    "/usr/lib/systemd/system-generators/podman-system-generator",
)


class QuadletRuntime:
    """Satisfies runtimes.base.ContainerRuntime. The container is podman's, its life is systemd's."""

    def __init__(self, paths: Paths, system: System) -> None:
        self._paths = paths
        self._system = system
        self._client = CliClient("podman", system)
        self._podman = ContainerRunner(self.info, self._client, paths, system)
        self._systemd = Systemd(system)
        self._units = quadlet_files.folder_of(system)

    @property
    def info(self) -> RuntimeInfo:
        return RuntimeInfo(
            name="quadlet", isolates=True, restarts=True, survives_reboot=True, sees_processes=True, containers=True
        )

    def inspect(self, name: str) -> Seen:
        """The container where there is one; else what systemd remembers of its unit."""
        seen = self._podman.inspect(name)
        text = self._text(name)
        if not self._is_ours(text, name):
            return seen
        if seen.alive or seen.state is EngineState.UNKNOWN:
            return replace(seen, restarts=_number(self._systemd.show(_unit(name)).get("NRestarts")))
        return self._remembered(name, text)

    def log(self, name: str) -> JournalLog:
        path = quadlet_files.unit_path(self._units, name)
        return JournalLog(self._systemd, _unit(name), path)

    def start(self, launch: Launchable) -> Seen:
        """Install the units, let systemd start them, and return the container; or the one that runs already."""
        workload = launch.workload
        if workload is None or not workload.path.endswith(".container"):
            raise ValueError("quadlet starts a workload that was read from a .container file")
        self._systemd.check()
        seen = self.inspect(launch.name)
        if seen.alive:
            return seen
        self._refuse_foreign(launch.name)
        self._end(launch.name, grace_s=launch.stop_grace_s)
        labels = containers.labels_for(launch, str(self._paths.deployment(launch.name)))
        restart = _POLICIES.get(workload.restart, "on-failure" if workload.restart.startswith("on-failure") else "")
        quadlet_files.install(Path(workload.path), self._units, launch.name, labels=labels, restart=restart)
        self._reload(launch.name)
        began = time.time()
        done = self._systemd.start(_unit(launch.name))
        found, said = self.inspect(launch.name), self._said(launch.name, since=began)
        ran = found.state is EngineState.EXITED and "Error: " not in said  # podman's own: it never ran the engine
        if done.ok or found.alive or ran:
            return found
        raise self._not_started(launch, said or done.stderr)

    def stop(self, name: str, *, grace_s: float) -> StopReceipt:
        began = time.monotonic()
        seen = self.inspect(name)
        before = self.processes(name)
        self._end(name, grace_s=grace_s)
        receipt = self._podman.stop(name, grace_s=0)  # where systemd lost it
        left = tuple(one for one in before if one in receipt.leftovers)
        gone = quadlet_files.remove(self._units, name) if self._is_ours(self._text(name), name) else ()
        if gone:
            self._systemd.reload()
            self._systemd.forget_failure(_unit(name))
        container = (f"container {containers.container_name(name)}",) if seen.alive and not receipt.removed else ()
        return StopReceipt(
            ended=tuple(one for one in before if one not in left),
            seconds=time.monotonic() - began,
            forced=time.monotonic() - began > grace_s and seen.alive,
            listener_free=not (seen.alive and seen.port and ports.listening(seen.port)),
            leftovers=left,
            removed=(*container, *receipt.removed, *gone),
        )

    def remove(self, name: str) -> StopReceipt:
        receipt = self.stop(name, grace_s=STOP_GRACE_S)
        rest = self._podman.remove(name)
        return replace(receipt, removed=(*receipt.removed, *rest.removed))

    def processes(self, name: str) -> tuple[ProcessRef, ...]:
        return self._podman.processes(name)

    def memory_bytes(self, name: str) -> int | None:
        return memory_bytes(self.processes(name))

    def port_holder(self, name: str, port: int) -> ports.Holder | None:
        return self._podman.port_holder(name, port)

    def keep(self, name: str, policy: str) -> bool:
        """Written into the unit; systemd takes it over while the engine runs."""
        path, text = quadlet_files.unit_path(self._units, name), self._text(name)
        if not self._is_ours(text, name) or policy not in _POLICIES:
            return False
        wanted = {key: value for key, value in quadlet_files.labels_in(text).items() if key in containers.OWN}
        from selfhost.core.files import write_atomic

        write_atomic(path, quadlet_files.with_added(text, labels=wanted, restart=_POLICIES[policy]), mode=0o644)
        self._systemd.reload()
        return True

    def image(self, reference: str) -> LocalImage | None:
        return self._podman.image(reference)

    def pull(self, reference: str, *, sink: Sink, step: str) -> LocalImage:
        return self._podman.pull(reference, sink=sink, step=step)

    def remove_volume(self, volume: str) -> str:
        return self._podman.remove_volume(volume)

    def names(self) -> tuple[str, ...]:
        return self._podman.names()

    def _text(self, name: str) -> str:
        path = quadlet_files.unit_path(self._units, name)
        return "" if path.is_symlink() else quadlet_files.text_of(path)

    def _is_ours(self, text: str, name: str) -> bool:
        return containers.is_ours(quadlet_files.labels_in(text), name, str(self._paths.deployment(name)))

    def _refuse_foreign(self, name: str) -> None:
        """`podman run --replace` in the generated unit would remove a container of that name, whoever made it."""
        text = quadlet_files.text_of(quadlet_files.unit_path(self._units, name))
        if text and not self._is_ours(text, name):
            raise foreign("podman", name, quadlet_files.labels_in(text))
        folder = str(self._paths.deployment(name))
        try:
            found = self._client.container(containers.container_name(name))
            network = self._client.network(containers.container_name(name))
        except CallFailed as failed:
            raise worded(self._client, failed) from None
        if network is not None and not containers.is_ours(network, name, folder):
            raise foreign_network("podman", name)
        labels = containers.labels_of(found) if found is not None else {}
        if found is not None and not containers.is_ours(labels, name, folder):
            raise foreign("podman", name, labels)

    def _end(self, name: str, *, grace_s: float) -> None:
        if self._is_ours(self._text(name), name):
            self._systemd.stop(_unit(name), timeout_s=grace_s)
            self._systemd.forget_failure(_unit(name))

    def _reload(self, name: str) -> None:
        """Raises EnvironmentMissing when podman's generator made no unit of our file."""
        self._systemd.reload()
        if self._systemd.show(_unit(name)).get("LoadState") == "loaded":
            return
        raise EnvironmentMissing(
            f"podman made no unit of {quadlet_files.unit_path(self._units, name)}",
            why="Its generator refused the file, or this podman is older than 4.7, which our units need.",
            fix=(
                "see what it says:\n/usr/libexec/podman/quadlet --dryrun"
                + (" --user" if self._systemd.of_user else ""),
                "or let podman run it without systemd:\nselfhost up --runtime podman",
            ),
            evidence=self._generator(),
            id="RT083",
        )

    def _generator(self) -> str:
        for program in QUADLET[:2]:
            words = (program, "--dryrun", *(("--user",) if self._systemd.of_user else ()))
            done = self._system.run(words, timeout_s=20.0)
            if not done.missing:
                lines = [line for line in done.stderr.splitlines() if "Loading source" not in line]
                return "\n".join(lines[-5:])
        return ""

    def _remembered(self, name: str, text: str) -> Seen:
        """A unit whose container is gone already: quadlet removes it when it ends."""
        shown, labels = self._systemd.show(_unit(name)), quadlet_files.labels_in(text)
        base = Seen(
            state=EngineState.GONE,
            reason="its unit is not started",
            instance=labels.get(containers.INSTANCE, ""),
            plan_digest=labels.get(containers.DIGEST, ""),
            workload_digest=labels.get(containers.WORKLOAD, ""),
            port=quadlet_files.port_in(text),
            restarts=_number(shown.get("NRestarts")),
        )
        active, sub = shown.get("ActiveState", ""), shown.get("SubState", "")
        if active == "activating" and sub != "auto-restart":
            return replace(base, state=EngineState.STARTING, reason="systemd is starting its unit")
        if active not in ("failed", "activating") and shown.get("ExecMainStatus", "0") == "0":
            return base
        code = _number(shown.get("ExecMainStatus"))
        number = code if shown.get("ExecMainCode") == "2" else code - 128 if code > 128 else None
        words = f"was ended by signal {number}" if number else f"ended with exit code {code}"
        return replace(
            base,
            state=EngineState.EXITED,
            reason=f"the engine {words}" + (", and systemd starts it again" if active == "activating" else ""),
            exit_code=None if number else code,
            signal=number,
        )

    def _said(self, name: str, *, since: float) -> str:
        """Of this start: the journal keeps what earlier ones said."""
        return self._systemd.journal(_unit(name), "--lines=20", f"--since=@{since:.6f}").stdout

    def _not_started(self, launch: Launchable, said: str) -> EnvironmentMissing | PortTaken:
        failed = CallFailed(said)
        if is_port_taken(failed):
            return PortTaken(
                f"127.0.0.1:{launch.port} is taken",
                why="podman could not publish the port of the container.",
                evidence=said.strip()[-300:],
                fix=("let another one be chosen:\nselfhost up",),
                id="RT005",
            )
        return worded(self._client, failed, subject=launch.workload.image if launch.workload is not None else "")


def _unit(name: str) -> str:
    return f"{containers.container_name(name)}.service"


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
