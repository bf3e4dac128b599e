"""How an engine of ours fares: by its process first, for a live one is not dead of what stands in its log."""

from dataclasses import dataclass, replace

from selfhost.cli._context import Invocation
from selfhost.cli._log import Log
from selfhost.deploy.runtime import of_state
from selfhost.deploy.state import State
from selfhost.engines.explain import explain
from selfhost.runtimes.base import Seen
from selfhost.shapes.finding import Finding, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """`state` in a line, and the causes, best first; `undecided` instead when it is dead of nothing that is known."""

    state: str
    causes: tuple[Finding, ...] = ()
    undecided: Finding | None = None


def judge(log: Log, *, at_work: Invocation, exit_code: int | None) -> Judged:
    """`exit_code` as the user said it; else as the engine's end was seen."""
    name = log.deployment
    state = State(at_work.paths, name, say=at_work.console.finding)
    seen = of_state(state, paths=at_work.paths, system=at_work.system).inspect(name)
    code = _code(seen) if exit_code is None else exit_code
    found = explain(log.text, exit_code=code, requests=False)
    if exit_code is None and not _by_memory(seen):
        found = tuple(finding for finding in found if finding.place.line is not None)
    causes = tuple(log.placed(finding) for finding in found)
    if seen.alive:
        words = f"{name} runs (pid {seen.pid})" if seen.pid else f"{name} is starting"
        return Judged(state=words if causes else f"{words}; nothing in its log is a failure", causes=causes)
    words = f"{name} does not run: {seen.reason}"
    if causes:
        return Judged(state=words, causes=causes)
    if seen.stopped or seen.exit_code == 0:
        return Judged(state=f"{words}; nothing in its log is a failure")
    if seen.signal is not None:
        return Judged(state=words, causes=(_killed(log, seen),))
    nothing = replace(log.nothing_known(), title=f"{words}; nothing in its log is a failure that selfhost knows")
    return Judged(state=words, undecided=nothing)


def _code(seen: Seen) -> int | None:
    if seen.alive or seen.stopped:
        return None
    return seen.exit_code if seen.signal is None else 128 + seen.signal


def _by_memory(seen: Seen) -> bool:
    """Whether an exit code alone may be read as an end for lack of memory: a signal comes from anybody."""
    return seen.signal is None or seen.out_of_memory is True


def _killed(log: Log, seen: Seen) -> Finding:
    return Finding(
        id="EF043",
        severity=Severity.ERROR,
        title=seen.reason,
        evidence=log.nothing_known().evidence,
        why="Its log holds no failure, so the cause is outside: somebody, or the system, ended it.",
        fix=(f"see what the system ended:\nsudo dmesg | tail\nselfhost status {log.deployment}",),
    )
