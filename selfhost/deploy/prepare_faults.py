"""What a task that failed said, as an error that names the cause and the way out."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from selfhost.core.errors import Busy, EnvironmentMissing, SelfhostError

_OWN: Final = re.compile(r"(RT\d{3}) (.+)")
_PROXY: Final = """echo 'Acquire::http::Proxy "http://PROXY:PORT";' | sudo tee /etc/apt/apt.conf.d/80proxy"""
_EVIDENCE_LINES: Final = 4
_EVIDENCE_CHARACTERS: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """`text`: the task's message and output; `command`: the one to rerun."""

    step: str
    text: str
    command: str

    @property
    def package(self) -> str:
        """Of a step that installs one."""
        found = re.search(r"packages? (\S+)", self.step)
        return found[1] if found else ""


def fault(failed: Failed) -> SelfhostError:
    """Our own refusals say it themselves; what a tool said is looked up by its words, the cause before its effects."""
    own = _OWN.match(failed.text)
    if own:
        return _refused(own, failed)
    for pattern, answer in _BY_WORDS:
        found = re.search(pattern, failed.text)
        if found:
            return answer(failed, found)
    return EnvironmentMissing(
        f"{failed.step} did not succeed",
        why="What was done before it stays and is not done again.",
        evidence=_evidence(failed.text),
        fix=(f"mend what is said above, then rerun:\n{failed.command}",),
        id="RT100",
    )


def _refused(own: re.Match[str], failed: Failed) -> EnvironmentMissing:
    """The form of a role's own refusal: id and what; lines of why; `→ action`, with its commands below."""
    whole, *actions = failed.text.split("\n→ ")
    return EnvironmentMissing(
        own[2],
        why=" ".join(whole.split("\n")[1:]),
        fix=(*(action.strip() for action in actions), f"rerun:\n{failed.command}"),
        id=own[1],
    )


def _locked(failed: Failed, found: re.Match[str]) -> Busy:
    holder = re.search(r"held by process (\d+) \(([^)]+)\)", failed.text)
    who, pid = (f"`{holder[2]}` (pid {holder[1]})", holder[1]) if holder else ("another package manager", "")
    look = (f"look what it is:\nps -fp {pid}",) if pid else ()
    return Busy(
        f"{who} holds the lock of the package manager",
        why="It was waited for. After a start of the machine this is usually its automatic update.",
        evidence=_line(failed.text, found),
        fix=(*look, f"when it has ended, rerun:\n{failed.command}"),
        id="RT092",
    )


def _no_network(failed: Failed, found: re.Match[str]) -> EnvironmentMissing:
    address = re.search(r"https?://([^/\s'\"]+)", failed.text) or re.search(r"resolving '([^']+)'", failed.text)
    host = address[1] if address else "the repositories"
    look = (f"look whether this machine reaches it:\ngetent hosts {host.split(':')[0]}",) if address else ()
    return EnvironmentMissing(
        f"{host} cannot be reached, so nothing can be fetched from it",
        why="Packages come from repositories on the network. What was done before stays and is not done again.",
        evidence=_line(failed.text, found),
        fix=(
            *look,
            f"behind a proxy, tell apt of it:\n{_PROXY}",
            f"then rerun:\n{failed.command}",
        ),
        id="RT093",
    )


def _no_package(failed: Failed, found: re.Match[str]) -> EnvironmentMissing:
    return EnvironmentMissing(
        "a package is in none of this machine's repositories",
        why="The repository of it is not configured, or the version that is asked for has left it.",
        evidence=_line(failed.text, found),
        fix=("look which repositories there are:\napt-cache policy", f"then rerun:\n{failed.command}"),
        id="RT094",
    )


def _would_remove(failed: Failed, found: re.Match[str]) -> EnvironmentMissing:
    listed = re.search(r"will be REMOVED:\s*\n((?:  .+\n?)+)", failed.text)
    names = " ".join(listed[1].split()) if listed else ""
    return EnvironmentMissing(
        f"the package would remove others: {names}" if names else "the package would remove others",
        why="Two engines of different makers can't stand beside each other. Nothing of yours is removed by prepare.",
        evidence=_line(failed.text, found),
        fix=(
            "look what would go, and what needs it:\nsudo apt-get --simulate install "
            + (failed.package or "docker.io"),
            f"remove it yourself if nothing does, then rerun:\n{failed.command}",
        ),
        id="RT114",
    )


def _unsigned(failed: Failed, found: re.Match[str]) -> EnvironmentMissing:
    return EnvironmentMissing(
        "a repository is not signed by the key that is expected of it",
        why="apt takes nothing from it. A mirror that was meddled with looks the same as one with a new key.",
        evidence=_line(failed.text, found),
        fix=("look which one it is, and whether it is one of yours:\nsudo apt-get update",),
        id="RT103",
    )


def _no_space(failed: Failed, found: re.Match[str]) -> EnvironmentMissing:
    return EnvironmentMissing(
        "the disk is full",
        why="Packages that were cut off by it are finished by the next run.",
        evidence=_line(failed.text, found),
        fix=(
            "make room, for one among the packages that were fetched:\nsudo apt-get clean\ndf -h / /var",
            "then rerun:\n" + failed.command,
        ),
        id="RT102",
    )


def _sudo(failed: Failed, found: re.Match[str]) -> EnvironmentMissing:
    return no_root(failed.command, said=_line(failed.text, found))


def no_root(command: str, *, said: str) -> EnvironmentMissing:
    """`command` as root would run it."""
    return EnvironmentMissing(
        "preparing a machine needs root, and sudo gives it only after a question here",
        why="Packages, services and groups are root's. No password is asked for or kept by selfhost.",
        evidence=said,
        fix=(f"run it as root:\nsudo {command}",),
        id="RT091",
    )


def _line(text: str, found: re.Match[str]) -> str:
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    return text[start : end if end >= 0 else None][:_EVIDENCE_CHARACTERS]


def _evidence(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_EVIDENCE_LINES:])[-_EVIDENCE_CHARACTERS:]


_UNREACHABLE: Final = (
    r"Temporary failure|Could not (?:resolve|connect)|Connection (?:timed out|failed|refused)|Network is unreachable"
    r"|Name or service not known|urlopen error|No route to host"
)
Answer = Callable[[Failed, "re.Match[str]"], SelfhostError]
_BY_WORDS: Final[Sequence[tuple[str, Answer]]] = (
    (r"Could not get lock|Unable to (?:acquire|lock)|is locked by another process", _locked),
    (r"remove is disabled", _would_remove),
    (r"No space left on device|not have enough free space", _no_space),
    (r"sudo: .*(?:password|not allowed|not in the sudoers)|Missing sudo password|is not in the sudoers", _sudo),
    (r"NO_PUBKEY|is not signed|couldn't be verified|signatures were invalid|BADSIG|Conflicting values set", _unsigned),
    (_UNREACHABLE, _no_network),
    (r"Unable to locate package|no installation candidate|Version '.+' for '.+' was not found", _no_package),
)
