"""Run the checks in order, each within its time, none whose ground has already failed."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from selfhost.core.errors import InputError, SelfhostError
from selfhost.core.marks import collect
from selfhost.core.system import LocalSystem, System
from selfhost.shapes.endpoint import Endpoint, Inspector
from selfhost.shapes.event import Event, Sink
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.smoke import checks
from selfhost.smoke.capability import Capability
from selfhost.smoke.check import GROUPS, KIND, Failed, Passed, Skipped, Spec, Undecided, Verdict
from selfhost.smoke.probe import Probe, TooLong, Unanswered
from selfhost.smoke.report import CheckResult, SmokeReport

__all__ = ["CheckResult", "SmokeReport", "catalog", "run"]

Check = Callable[[Probe, Capability], Verdict]

READY = "SM002"
"""Its time is what a short request takes here; the others' budgets follow it."""
QUICK_S = 0.5
MOST_SLOWNESS = 10.0
SHORTEST_SECRET = 8
"""A shorter key cannot be kept out of a text without tearing its words."""
ENDED = "the engine ended"
GONE_S = 2.0
"""An engine that breaks off a request may take this long to be gone."""
POLL_S = 0.05


def catalog() -> tuple[tuple[Spec, Check], ...]:
    """Every check, in the order in which they run."""
    found = [(cast("Spec", spec), cast("Check", function)) for spec, function in collect(checks, KIND).values()]
    return tuple(sorted(found, key=lambda row: (GROUPS.index(row[0].group), row[0].id)))


def run(
    endpoint: Endpoint,
    *,
    key: str,
    inspector: Inspector | None = None,
    only: Sequence[str] = (),
    sink: Sink | None = None,
    system: System | None = None,
) -> SmokeReport:
    """Check `endpoint`. `only` names ids; what they depend on runs too. Never raises for what the server does."""
    from selfhost.core.http import Client  # at use: httpx costs 187 ms

    chosen = _choose(catalog(), only)
    began = time.monotonic()
    results: dict[str, CheckResult] = {}
    with Client(endpoint.base_url, key=key or None) as client:
        probe = Probe(endpoint, key=key, client=client, system=system or LocalSystem(), inspector=inspector)
        capability = Capability(probe)
        for place, (spec, function) in enumerate(chosen):
            title = spec.title.replace("{model}", endpoint.model)
            if sink is not None:
                text = f"{spec.id} {title}"
                sink.on(Event(step="smoke", state="working", text=text, done=place, total=len(chosen), unit="count"))
            results[spec.id] = _run_one(spec, function, probe=probe, capability=capability, before=results)
    return SmokeReport(endpoint=endpoint, checks=tuple(results.values()), seconds=time.monotonic() - began)


def _choose(everything: tuple[tuple[Spec, Check], ...], only: Sequence[str]) -> tuple[tuple[Spec, Check], ...]:
    if not only:
        return everything
    specs = {spec.id: spec for spec, _ in everything}
    unknown = [name for name in only if name not in specs]
    if unknown:
        raise InputError(
            f"there is no check {', '.join(unknown)}",
            why=f"The checks are {', '.join(sorted(specs))}.",
            fix=("name one of these, or leave --only out to run all",),
            id="CF061",
        )
    wanted, pending = set(only), list(only)
    while pending:
        new = set(specs[pending.pop()].needs) - wanted
        wanted |= new
        pending.extend(new)
    return tuple(row for row in everything if row[0].id in wanted)


def _run_one(
    spec: Spec, function: Check, *, probe: Probe, capability: Capability, before: dict[str, CheckResult]
) -> CheckResult:
    began = time.monotonic()
    probe.clock.start(spec.budget_s)
    result = CheckResult(
        id=spec.id, title=spec.title.replace("{model}", probe.endpoint.model), group=spec.group, state="passed"
    )
    probe.unheard = False
    if any(check.finding is not None and check.reason.startswith(ENDED) for check in before.values()):
        return replace(result, state="skipped", reason=ENDED)
    verdict: Verdict | SelfhostError = _skip(spec, capability, before) or _judge(function, probe, capability)
    verdict = _outlived(verdict, probe)
    seconds = time.monotonic() - began
    if spec.id == READY:
        probe.clock.slowness = min(MOST_SLOWNESS, max(1.0, seconds / QUICK_S))
    return _settle(replace(result, seconds=seconds), verdict, key=probe.key)


def _skip(spec: Spec, capability: Capability, before: dict[str, CheckResult]) -> Skipped | None:
    for needed in spec.needs:
        ground = before[needed]
        if ground.state in ("failed", "error"):
            return Skipped(reason=f"{needed} failed")
        if ground.state == "skipped" and ground.reason.endswith(" failed"):
            return Skipped(reason=ground.reason)
    reasons = [reason for ability in spec.abilities if (reason := capability.lacks(ability))]
    return Skipped(reason=reasons[0]) if reasons else None


def _outlived(verdict: Verdict | SelfhostError, probe: Probe) -> Verdict | SelfhostError:
    """The verdict, or the end of the engine while it was found."""
    if probe.inspector is None or not _is_gone(probe.inspector, wait_s=GONE_S if probe.unheard else 0.0):
        return verdict
    seen, name = verdict.what if isinstance(verdict, Failed) else "", probe.endpoint.name
    return Failed(
        what=f"{ENDED}: {seen}" if seen else ENDED,
        why="Nothing answers any more; the checks behind this one were not run.",
        evidence=verdict.evidence if isinstance(verdict, Failed) else "",
        fix=(f"see why:\nselfhost explain {name}",),
    )


def _is_gone(inspector: Inspector, *, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while inspector.alive():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def _judge(function: Check, probe: Probe, capability: Capability) -> Verdict | SelfhostError:
    try:
        return function(probe, capability)
    except TooLong as error:
        return Undecided(reason=f"{error.what}: it is too long for the context of this server")
    except Unanswered as error:
        return Failed(what=error.what, why=_layer(probe, error), evidence=error.body[:400])
    except ConnectionError as error:
        return Failed(what=f"the server broke off in the middle of a stream: {error}")
    except UnicodeDecodeError as error:
        return Failed(what="the stream is not valid UTF-8", evidence=str(error))
    except SelfhostError as error:
        return error


def _layer(probe: Probe, error: Unanswered) -> str:
    if error.status:
        return "The server answers, this request did not work."
    alive = probe.inspector.alive() if probe.inspector is not None else None
    return {True: "The engine's process is alive.", False: "The engine's process has ended.", None: ""}[alive]


def _settle(result: CheckResult, verdict: Verdict | SelfhostError, *, key: str) -> CheckResult:
    match verdict:
        case Passed():
            return replace(result, state="passed", reason=verdict.note, finding=verdict.finding)
        case Skipped():
            return replace(result, state="skipped", reason=verdict.reason)
        case Undecided():
            return replace(result, state="undecided", reason=verdict.reason, finding=verdict.finding)
        case Failed():
            finding = _finding(result.id, verdict.what, verdict.why, verdict.evidence, verdict.fix, key=key)
            return replace(result, state="failed", reason=finding.title, finding=finding)
        case SelfhostError():
            finding = _finding(
                verdict.id or result.id, verdict.what, verdict.why, verdict.evidence, verdict.fix, key=key
            )
            return replace(result, state="error", reason=finding.title, finding=finding)


def _finding(id: str, what: str, why: str, evidence: str, fix: tuple[str, ...], *, key: str) -> Finding:
    def hide(text: str) -> str:
        return text.replace(key, "…") if len(key) >= SHORTEST_SECRET else text

    return Finding(
        id=id,
        severity=Severity.ERROR,
        title=hide(what),
        why=hide(why),
        evidence=hide(evidence),
        fix=tuple(hide(action) for action in fix),
        place=Place(object=id),
    )
