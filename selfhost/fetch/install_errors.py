"""What an installation that did not succeed is told as: pip's causes, a Python without venv, an import that fails."""

import re
import sys
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.redact import mask
from selfhost.core.system import Completed
from selfhost.fetch.pip_failures import AGAIN, cause_of, evidence_of

_LIBRARY = re.compile(r"(\S+\.so[.\d]*): cannot open shared object file")
_OF_THE_DISK = ("RT011", "RT042")
"""Causes that are the same whether pip or `python -m venv` says them."""


class InstallErrors:
    """The errors of one installation. Nothing that is secret in pip's output comes into them."""

    def __init__(self, title: str, *, import_name: str, folder: Path, log: Path) -> None:
        self._title = title
        self._import_name = import_name
        self._folder = folder
        self._log = log

    def not_installed(self, done: Completed) -> EnvironmentMissing:
        lines = _lines(done)
        cause = cause_of(lines)
        evidence = evidence_of(lines, cause)
        read = f"read all that pip said:\nless {self._log}"
        if cause is None:
            end = "took too long and was ended" if done.timed_out else f"ended with code {done.rc}"
            why = "pip was killed; often the memory was full." if done.rc == -9 else "pip's own words are below."
            return EnvironmentMissing(
                f"{self._title} could not be installed: pip {end}",
                why=why,
                fix=(read, AGAIN),
                evidence=evidence,
                id="RT039",
            )
        words = {"engine": self._title, "folder": str(self._folder.parent), "log": str(self._log)}
        fix = tuple(_fill(action, words) for action in cause.fix)
        return EnvironmentMissing(
            _fill(cause.what, words),
            why=_fill(cause.why, words),
            fix=fix if any(str(self._log) in action for action in fix) else (*fix, read),
            evidence=evidence,
            id=cause.id,
        )

    def no_venv(self, done: Completed) -> EnvironmentMissing:
        lines = _lines(done)
        cause = cause_of(lines)
        if cause is not None and cause.id in _OF_THE_DISK:
            return self.not_installed(done)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        if any("ensurepip" in line or "No module named venv" in line for line in lines):
            return EnvironmentMissing(
                f"this Python ({sys.executable}) cannot make environments: its modules venv and ensurepip are missing",
                why="Debian and Ubuntu have them in a package of their own.",
                fix=(f"install it, then run the same command again:\nsudo apt install python{version}-venv",),
                evidence=evidence_of(lines, None),
                id="RT037",
            )
        return EnvironmentMissing(
            f"the environment for {self._title} could not be created in {self._folder}",
            why="`python -m venv` did not succeed; its own words are below.",
            fix=(f"read all that it said:\nless {self._log}",),
            evidence=evidence_of(lines, None),
            id="RT047",
        )

    def not_importable(self, done: Completed) -> EnvironmentMissing:
        why = "Everything was installed; what it needs beside Python packages is missing or does not fit."
        fix: tuple[str, ...] = ()
        if found := _LIBRARY.search(done.stdout):
            fix = (f"install the system library {found[1]}, then run the same command again",)
        elif done.rc == -4:  # SIGILL
            why = "The processor lacks an instruction that this build was compiled for."
        elif done.rc == -9:
            why = "It was killed; often the memory was full."
        elif done.timed_out:
            why = "Importing it took too long."
        return EnvironmentMissing(
            f"{self._title} was installed but `import {self._import_name}` does not work",
            why=why,
            fix=(*fix, f"read all that it said:\nless {self._log}"),
            evidence=evidence_of(_lines(done), None),
            id="RT046",
        )


def _lines(done: Completed) -> list[str]:
    return [mask(line) for line in (done.stdout + done.stderr).splitlines()]


def _fill(text: str, words: dict[str, str]) -> str:
    """Fill in names; the texts hold braces of nothing else."""
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", value)
    return text
