"""The fixes of findings as one script a machine: commented, run by nobody but the reader."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from selfhost.shapes.finding import Finding, RunOn

MARK: Final = "Written by selfhost doctor --fix-script."
NAMES: Final = {
    RunOn.HERE: "fix-here.sh",
    RunOn.CONTAINER_HOST: "fix-container-host.sh",
    RunOn.HYPERVISOR: "fix-hypervisor.sh",
    RunOn.WINDOWS: "fix-windows.ps1",
    RunOn.CLUSTER_ADMIN: "fix-cluster.sh",
}
# What takes things away, or what only a reader can complete: shown, never run.
_HELD_BACK: Final = re.compile(
    r"\b(?:reboot|shutdown|rmmod|mkfs|usermod|wsl)\b|\brm\s|\bmodprobe\s+-r|…|\bHOST:PORT\b|\bNAME\b|\bID\b|<[a-z]|"
    r"\bkubectl\b.* (?:delete|scale|cordon|uncordon|drain|undo|edit)\b|=(?:USER|TOKEN|VALUE|QUEUE)\b|:TAG\b"
)
_COMMAND: Final = re.compile(
    r"(?:sudo|docker|podman|nvidia-\w+|systemctl|kubectl|export|printf|getent|cat|dkms|lxc|wsl|setsebool|amd-ctk)\b"
)


def scripts(findings: Sequence[Finding]) -> dict[str, str]:
    """Text by file name; only for machines that have something to do."""
    texts = {}
    for where, name in NAMES.items():
        meant = [finding for finding in findings if finding.run_on is where and finding.fix]
        if meant:
            texts[name] = "\n".join(_script(where, meant)) + "\n"
    return texts


def _script(where: RunOn, findings: Sequence[Finding]) -> Iterator[str]:
    if where is not RunOn.WINDOWS:
        yield "#!/bin/sh"
    yield f"# {MARK}"
    yield f"# For: {where.value}. Read it first; lines that need a decision are commented out."
    if where is not RunOn.WINDOWS:
        yield "set -eu"
    done: set[str] = set()
    for finding in findings:
        yield ""
        yield from _comment(f"{finding.severity.value}[{finding.id}] {finding.title}")
        yield from _comment(finding.why)
        for number, action in enumerate(finding.fix):
            text, *commands = action.split("\n")
            yield from _comment(f"→ {text}")
            lines = textwrap.dedent("\n".join(commands)).split("\n")  # YAML keeps what it stands below
            for command in (line.rstrip() for line in lines if line.strip()):
                # The first way is the one to take; the others are there to choose from.
                live = number == 0 and command not in done and runs(command) and where is not RunOn.WINDOWS
                done.add(command)
                yield command if live else f"# {command}"


def runs(command: str) -> bool:
    """Whether a line is a whole command that takes nothing away."""
    return bool(_COMMAND.match(command)) and not _HELD_BACK.search(command)


def _comment(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from (f"# {part}" for part in textwrap.wrap(line, 100, break_long_words=False) or [""])
