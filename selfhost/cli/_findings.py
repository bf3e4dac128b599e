"""Findings in the four forms that `lint` speaks: for people, for programs, for GitHub's annotations, for SARIF."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from selfhost import __version__
from selfhost.core.console import Console
from selfhost.shapes.finding import Finding, Place, Report, Severity

_HOME: Final = "https://pypi.org/project/selfhost-kit/"
_LEVEL: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_SARIF_LEVEL: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What lint found in `files` texts by `rules` rules. `ok` as its exit code says."""

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    rules: int
    ok: bool


def human(console: Console, verdict: Verdict) -> None:
    """A block a finding, an empty line between files, the count at the end."""
    last = None
    for finding in verdict.findings:
        if last is not None and last != finding.place.path:
            console.result("")
        console.result(console.render(_placed(finding), terminal=console.out))
        last = finding.place.path
    if verdict.findings:
        console.result("")
    console.result(_summary(verdict))


def json(console: Console, verdict: Verdict) -> None:
    document = Report.of(verdict.findings).to_json()
    console.json({**document, "ok": verdict.ok, "files": list(verdict.files)})


def github(console: Console, verdict: Verdict) -> None:
    """Workflow commands, one a line."""
    for finding in verdict.findings:
        place = finding.place
        said = {"file": place.path, "line": place.line, "col": place.column, "title": finding.id}
        properties = ",".join(f"{name}={_property(str(value))}" for name, value in said.items() if value)
        text = "\n".join(part for part in (finding.title, finding.why, *finding.fix) if part)
        console.result(f"::{_LEVEL[finding.severity]} {properties}::{_data(text)}")
    console.note(_summary(verdict))


def sarif(console: Console, verdict: Verdict) -> None:
    """SARIF 2.1.0 with what code scanning shows: rule, level, message, region."""
    firsts: dict[str, Finding] = {}
    for finding in verdict.findings:
        firsts.setdefault(finding.id, finding)
    driver = {
        "name": "selfhost",
        "version": __version__,
        "informationUri": _HOME,
        "rules": [_sarif_rule(finding) for finding in firsts.values()],
    }
    results = [_sarif_result(finding) for finding in verdict.findings]
    console.json(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": results}],
        }
    )


FORMATS: Final[dict[str, Callable[[Console, Verdict], None]]] = {
    "human": human,
    "json": json,
    "github": github,
    "sarif": sarif,
}


def _placed(finding: Finding) -> Finding:
    """With `path:line:column` as the head shows it."""
    place = finding.place
    if not (place.path and place.line and place.column):
        return finding
    return replace(finding, place=Place(path=f"{place.path}:{place.line}:{place.column}"))


def _summary(verdict: Verdict) -> str:
    counts = Counter(finding.severity for finding in verdict.findings)
    files = verdict.files[0] if len(verdict.files) == 1 else f"{len(verdict.files)} files"
    if not verdict.findings:
        return f"{files}: nothing found ({verdict.rules} rules)"
    said = [_counted(counts[severity], severity.value) for severity in Severity if counts[severity]]
    return ", ".join([_counted(len(verdict.files), "file"), *said])


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 or word == "info" else f"{count} {word}s"


def first_ids(findings: Sequence[Finding]) -> Iterator[str]:
    """Ids with a page of their own."""
    return (finding.id for finding in findings if finding.id.startswith("DV"))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif_rule(finding: Finding) -> dict[str, object]:
    rule: dict[str, object] = {"id": finding.id, "shortDescription": {"text": finding.title}}
    return {**rule, "helpUri": finding.source} if finding.source else rule


def _sarif_result(finding: Finding) -> dict[str, object]:
    place = finding.place
    region = {"startLine": place.line, "startColumn": place.column or 1} if place.line else {"startLine": 1}
    text = "\n".join(part for part in (finding.title, finding.why, *finding.fix) if part)
    result: dict[str, object] = {
        "ruleId": finding.id,
        "level": _SARIF_LEVEL[finding.severity],
        "message": {"text": text},
    }
    if not place.path:
        return result
    location = {"artifactLocation": {"uri": quote(place.path)}, "region": region}
    return {**result, "locations": [{"physicalLocation": location}]}
