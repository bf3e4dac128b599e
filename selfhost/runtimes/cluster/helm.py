"""Helm as a program: which version is here, and install, upgrade, uninstall. A secret is on no command line."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfhost.core.system import Completed, System

OLDEST = (3, 14)
ASK_S = 30.0
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Helm:
    """One helm that can be used."""

    system: System
    version: tuple[int, int]
    context: str
    files: str
    namespace: str

    def _run(self, *words: str, timeout_s: float = ASK_S) -> Completed:
        argv = ["helm", *words, "--namespace", self.namespace]
        env = {**self.system.env}
        if self.files:
            argv += ["--kube-context", self.context]
            env["KUBECONFIG"] = self.files
        return self.system.run(argv, timeout_s=timeout_s, env=env)

    def release(self, name: str) -> Mapping[str, Any] | None:
        """Its newest revision: `chart`, `status`, `revision`; None where there is no release. Raises HelmFailed.

        `history` and not `list`, which shows releases of every state only with a flag that Helm 4 has no more.
        """
        done = self._run("history", name, "--max", "1", "--output", "json")
        if not done.ok:
            if "release: not found" in done.stderr:
                return None
            raise HelmFailed(done)
        try:
            listed = json.loads(done.stdout or "[]")
        except ValueError:
            raise HelmFailed(done) from None
        return listed[-1] if listed else None

    def upgrade(self, name: str, chart: Path, values: Sequence[Path], *, without: Sequence[str], timeout_s: int) -> str:
        """Install, or upgrade what is there. `without`: values that are set to null. Raises HelmFailed.

        Never with --force: it replaces objects, and a volume or a selector with them.
        """
        words = ["upgrade", "--install", name, str(chart)]
        for file in values:
            words += ["--values", str(file)]
        for key in without:
            words += ["--set", f"{key}=null"]
        done = self._run(*words, "--timeout", f"{timeout_s}s", "--output", "json", timeout_s=timeout_s + ASK_S)
        if not done.ok:
            raise HelmFailed(done)
        found = _json(done.stdout)
        return f"revision {found.get('version', '?')}"

    def uninstall(self, name: str, *, timeout_s: int) -> None:
        """Objects with a keep policy stay. Raises HelmFailed."""
        done = self._run("uninstall", name, "--ignore-not-found", "--timeout", f"{timeout_s}s", timeout_s=timeout_s)
        if not done.ok:
            raise HelmFailed(done)


class HelmFailed(Exception):
    """Helm said no; `said` is its last lines."""

    def __init__(self, done: Completed) -> None:
        text = (done.stderr or done.stdout).strip()
        self.said = "it did not end in time" if done.timed_out else text
        super().__init__(self.said)


def find(system: System, *, context: str, files: str, namespace: str) -> Helm | str:
    """The helm on PATH, or why there is none that can be used."""
    done = system.run(["helm", "version", "--template", "{{.Version}}"], timeout_s=ASK_S)
    if done.missing:
        return "helm is not installed"
    found = _VERSION.match(done.stdout.strip())
    if not done.ok or found is None:
        return "helm does not say its version"
    version = (int(found[1]), int(found[2]))
    if version < OLDEST:
        return f"helm {version[0]}.{version[1]} is older than {OLDEST[0]}.{OLDEST[1]}"
    return Helm(system=system, version=version, context=context, files=files, namespace=namespace)


def _json(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
