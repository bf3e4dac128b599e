"""The work inside one environment's folder: create it, let pip fill it, prove it by importing the engine."""

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from selfhost.core import processes
from selfhost.core.files import ensure_folder
from selfhost.core.redact import mask
from selfhost.core.stream import stream
from selfhost.core.system import Completed, LocalSystem
from selfhost.fetch.install_errors import InstallErrors
from selfhost.fetch.pip_failures import cause_of
from selfhost.fetch.pip_progress import PipProgress
from selfhost.shapes.event import Sink
from selfhost.shapes.plan import EngineBuild

CREATE_S = 600.0
PIP_S = 4 * 3600.0
"""4 GiB over 3 Mbit/s take three hours; a pip that hangs has time-outs of its own."""
IMPORT_S = 900.0
TAG = "SELFHOST_INSTALL"
"""Environment variable that marks pip and everything it starts with the folder they write to."""

MISDIRECTING = (
    *("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_DRY_RUN", "PIP_QUIET", "PIP_VERBOSE"),
    *("PIP_REPORT", "PIP_NO_DEPS", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"),
)
"""Settings that would install somewhere else, or something else; all others of pip are honoured."""

PROOF = """
import importlib, importlib.metadata, json, sys
importlib.import_module(sys.argv[1])
found = importlib.metadata.distributions()
print("\\nselfhost-proof " + json.dumps({one.metadata["Name"]: one.version for one in found if one.metadata["Name"]}))
"""


class Installation:
    """One attempt to fill one folder. pip's output goes to `log`, which stays when the folder does not."""

    def __init__(self, build: EngineBuild, folder: Path, *, system: LocalSystem, sink: Sink, step: str) -> None:
        self.build = build
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.log = folder.with_name(f"{folder.name}.install.log")
        self._scratch = folder.with_name(f"{folder.name}.tmp")
        self._system = system
        title = f"{build.engine} {build.version}"
        self._errors = InstallErrors(title, import_name=build.import_name, folder=folder, log=self.log)
        self._progress = PipProgress(
            folder, scratch=self._scratch, sink=sink, step=step, title=title, total_bytes=build.installed_bytes
        )

    def end_orphans(self) -> None:
        """End what a killed command left running: pip itself dies with its parent, what it started may not."""

        def left() -> list[processes.ProcessRef]:
            among = processes.table()
            found = processes.tagged({TAG: str(self.folder)}, among) - processes.ancestors(os.getpid(), among)
            return [processes.ref(among[pid]) for pid in found]

        processes.end(left, grace_s=0.0)
        self.sweep()

    def sweep(self) -> None:
        if self._scratch.exists():
            shutil.rmtree(self._scratch, ignore_errors=True)

    def make(self, *, constraints: str) -> None:
        """Create the environment and install the build's exact requirements. Raises EnvironmentMissing."""
        self._open_log()
        self._progress.now("creating the environment")
        done = self._run([sys.executable, "-I", "-m", "venv", str(self.folder)], timeout_s=CREATE_S)
        if not done.ok:
            raise self._errors.no_venv(done)
        wanted = [f"{self.build.distribution}=={self.build.version}", *self.build.requirements]
        if constraints:
            file = self.folder / "selfhost-constraints.txt"
            file.write_text(constraints, encoding="utf-8")
            wanted += ["--constraint", str(file)]
        done = self._pip("install", "--no-user", *self._bar(), *wanted)
        cause = cause_of(done.stdout.splitlines())
        if not done.ok and cause is not None and cause.retry and self.build.fallback_index:
            self._progress.now(f"not found by pip's own settings; asking {self.build.fallback_index} too")
            extra = ("--extra-index-url", self.build.fallback_index)
            done = self._pip("install", "--no-user", *self._bar(), *extra, *wanted)
        if not done.ok:
            raise self._errors.not_installed(done)
        if self.build.remove:
            self._progress.now(f"removing {', '.join(self.build.remove)}")
            done = self._pip("uninstall", "--yes", *self.build.remove)
            if not done.ok:
                raise self._errors.not_installed(done)

    def prove(self) -> dict[str, str]:
        """Import the engine; return the version of everything that is installed. Raises EnvironmentMissing."""
        self._progress.now("importing it, as a proof")
        # From the log's folder, in isolated mode: nothing but the environment itself can be what is imported.
        done = self._run([str(self.python), "-I", "-c", PROOF, self.build.import_name], timeout_s=IMPORT_S)
        line = next((line for line in done.stdout.splitlines() if line.startswith("selfhost-proof ")), "")
        if not done.ok or not line:
            raise self._errors.not_importable(done)
        versions: dict[str, str] = json.loads(line.removeprefix("selfhost-proof "))
        return dict(sorted(versions.items()))

    def _pip(self, action: str, *words: str) -> Completed:
        # -I would hide nothing of pip's configuration, only modules of the working directory and of PYTHONPATH.
        common = ("--no-input", "--disable-pip-version-check")
        return self._run([str(self.python), "-I", "-m", "pip", action, *common, *words], timeout_s=PIP_S)

    def _bar(self) -> tuple[str, ...]:
        """How pip is to show its progress: 24.1 and later can print it for programs."""
        found = next(self.folder.glob("lib/python*/site-packages/pip-*.dist-info"), None)
        numbers = re.findall(r"\d+", found.name) if found is not None else []
        newer = [int(number) for number in numbers[:2]] >= [24, 1]
        return ("--progress-bar", "raw" if newer else "off")

    def _run(self, argv: Sequence[str], *, timeout_s: float) -> Completed:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(mask("$ " + " ".join(argv)) + "\n")

            def line(text: str) -> None:
                log.write(mask(text) + "\n")
                log.flush()
                self._progress.line(text)

            return stream(argv, env=self._environment(), timeout_s=timeout_s, on_line=line, on_tick=self._progress.tick)

    def _environment(self) -> dict[str, str]:
        """The user's own, so that pip finds its configuration, proxies and keyring; temporary files beside the folder.

        /tmp is often a small memory disk, too small for a wheel of torch; and what is beside the folder is found and
        removed by the next call when we are killed.
        """
        ensure_folder(self._scratch)
        kept = {key: value for key, value in self._system.env.items() if key not in MISDIRECTING}
        offline = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
        english = {"LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}  # its words are read by pip_failures
        return {**kept, **offline, **english, "TMPDIR": str(self._scratch), TAG: str(self.folder)}

    def _open_log(self) -> None:
        """The log of this attempt only, readable by its owner only."""
        handle = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.close(handle)
