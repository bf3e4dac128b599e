"""What `prepare` did, as a table and as a document."""

from collections.abc import Iterator, Sequence

from selfhost.core.columns import columns
from selfhost.deploy.prepare import Result
from selfhost.shapes.finding import Finding, Report


def lines(result: Result) -> Iterator[str]:
    if not result.agreed:
        yield "nothing was changed"
        return
    rows = [(one.role, one.step, one.state) for one in result.changed]
    yield from columns(rows)
    yield from _roles(result)
    count = len(result.changed)
    if not any(choice.run for choice in result.choices):
        yield "nothing to prepare here"
    elif result.check:
        yield f"{count} of {len(result.steps)} steps would change this machine" if count else "nothing would change"
    else:
        yield f"{count} of {len(result.steps)} steps changed this machine" if count else "nothing had to change"
    yield from (f"  → {notice}" for notice in result.notices)
    if not result.check and any(choice.run for choice in result.choices):
        yield from _doctor(result)


def document(result: Result) -> dict[str, object]:
    """Schema selfhost.prepare/1."""
    return {
        "schema": "selfhost.prepare/1",
        "ok": int(result.exit_code) == 0,
        "exit_code": int(result.exit_code),
        "check": result.check,
        "agreed": result.agreed,
        "user": result.user,
        "roles": [{"role": one.role, "run": one.run, "reason": one.reason} for one in result.choices],
        "steps": [{"role": one.role, "step": one.step, "state": one.state} for one in result.steps],
        "changed": len(result.changed),
        "notices": list(result.notices),
        "doctor": {
            "before": Report.of(result.before.report.findings).to_json()["summary"],
            "after": Report.of(result.after.report.findings).to_json()["summary"],
            "gone": [finding.id for finding in result.gone],
            "new": [finding.id for finding in result.new],
        },
    }


def _roles(result: Result) -> Iterator[str]:
    """Roles that ran and found all as it should be."""
    changed = {one.role for one in result.changed}
    still = [one.role for one in result.choices if one.run and one.role not in changed]
    if still:
        yield f"as it should be: {', '.join(still)}"


def _doctor(result: Result) -> Iterator[str]:
    yield f"doctor: {_named('gone', result.gone)}; {_named('new', result.new)}"
    for finding in result.new:
        yield f"  {finding.severity.value}[{finding.id}]: {finding.title}"


def _named(word: str, findings: Sequence[Finding]) -> str:
    return f"{word}: {', '.join(dict.fromkeys(one.id for one in findings))}" if findings else f"nothing {word}"
