"""An examination as a person reads it and as programs do, and its scripts on the disk."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from selfhost.core.columns import columns
from selfhost.core.console import Console
from selfhost.core.errors import InputError
from selfhost.doctor.area import Area
from selfhost.doctor.examine import Examination, state
from selfhost.doctor.fix_script import MARK
from selfhost.doctor.granted import Comparison
from selfhost.doctor.prove import Proof
from selfhost.plan.digest import digest_of
from selfhost.shapes.finding import Finding, Report, Severity

if TYPE_CHECKING:
    from selfhost.cli._doctor_look import Looked

_LABEL: Final = 14
_MARKS: Final = {"ok": "ok", "unknown": "?", "info": "i", "warning": "!", "error": "x"}
_ROLES: Final = {"ok": "dim", "unknown": "warning", "info": "literal", "warning": "warning", "error": "error"}
_WIDEST: Final = 120


def lines(
    console: Console, examination: Examination, comparison: Comparison | None, proofs: Sequence[Proof]
) -> Iterator[str]:
    """A line for each area, then what was found, the worst first."""
    for one in examination.areas:
        yield from _area(console, one)
    found = [*examination.report.findings, *(comparison.findings if comparison else ())]
    if comparison:
        yield ""
        yield from _table(console, comparison)
    if proofs:
        yield ""
        yield from columns(
            [("engine", "card", "shown", ""), *((p.engine, p.card or "-", p.outcome, p.said) for p in proofs)]
        )
    for severity in Severity:
        for finding in (finding for finding in found if finding.severity is severity):
            yield ""
            yield console.render(finding, terminal=console.out)


def _area(console: Console, one: Area) -> Iterator[str]:
    kind = state(one)
    mark = f"{_MARKS[kind]:<3}"
    counts = Counter(finding.severity.value for finding in one.findings)
    said = one.calm or "unknown"
    if one.findings:
        said = ", ".join(_counted(counts[severity.value], severity.value) for severity in Severity if counts[severity])
        said += f": {', '.join(dict.fromkeys(finding.id for finding in one.findings))}"
    elif not one.calm and one.unknowns:
        said = f"unknown: {one.unknowns[0]}"
    rest = one.unknowns if one.calm or one.findings else one.unknowns[1:]
    width = min(console.out.width, _WIDEST)
    indent = " " * (_LABEL + 3)
    wrapped = textwrap.wrap(said, width - len(indent), break_long_words=False) or [""]
    yield f"{console.out.paint(_ROLES[kind], mark)}{one.name:<{_LABEL}}{wrapped[0]}"
    yield from (indent + line for line in wrapped[1:])
    for reason in rest:
        text = f"unknown: {reason}"
        yield from (indent + line for line in textwrap.wrap(text, width - len(indent), break_long_words=False))


def _table(console: Console, comparison: Comparison) -> Iterator[str]:
    if not comparison.rows:
        yield "no card on this machine to grant"
        return
    head = tuple(
        console.out.paint("dim", word) for word in ("#", "on the machine", "granted", "opens inside", "usable")
    )
    yield from columns([head, *((r.card, r.name, r.granted, r.openable, r.usable) for r in comparison.rows)])


def summary(findings: Sequence[Finding], written: Sequence[str]) -> str:
    """The last words: how many, what was written, where to read more."""
    counts = Counter(finding.severity for finding in findings)
    said = [_counted(counts[severity], severity.value) for severity in Severity if counts[severity]]
    text = ", ".join(said) or "nothing found"
    shown = next((finding.id for finding in findings if finding.severity is not Severity.INFO), "")
    if written:
        text += f"\n  → read before you run it: {' '.join(written)}"
    elif any(finding.fix for finding in findings if finding.severity is not Severity.INFO):
        text += "\n  → selfhost doctor --fix-script        the fixes as commented scripts, one a machine"
    return text + (f"\n  → selfhost explain {shown}        what an id means" if shown else "")


def document(
    looked: "Looked", findings: Sequence[Finding], proofs: Sequence[Proof], written: Sequence[str]
) -> dict[str, object]:
    """Schema selfhost.findings/1, with areas and what was asked for beside them."""
    report = Report.of(findings).to_json()
    more: dict[str, object] = {"areas": looked.examination.to_json()["areas"]}
    if looked.where:
        more["cluster"] = looked.where
    if looked.own is not None:
        cards = [card.to_json() for card in looked.cards]
        more["deployment"] = {"name": looked.own.plan.name, "plan": digest_of(looked.own.plan), "cards": cards}
    if looked.comparison is not None:
        more["inside"] = looked.comparison.to_json()
    if proofs:
        more["proofs"] = [proof.to_json() for proof in proofs]
    if written:
        more["scripts"] = list(written)
    ok = bool(report["ok"]) and not any(proof.outcome == "bad" for proof in proofs)
    return {**report, "ok": ok, **more}


def write(texts: Mapping[str, str], folder: str, *, overwrite: bool) -> tuple[str, ...]:
    """Raises InputError before anything is written when a file there is not ours."""
    place = Path(folder)
    paths = {place / name: text for name, text in texts.items()}
    try:
        for path in paths:
            if not overwrite and path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
                raise InputError(
                    f"{path} was not written by selfhost",
                    why="It is kept as it is.",
                    fix=(f"name another folder, or replace it:\nselfhost doctor --fix-script {folder} --overwrite",),
                    id="CF103",
                )
        place.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"the scripts cannot be written to {folder}",
            why=f"{error.strerror or error}.",
            fix=("print them instead:\nselfhost doctor --fix-script -",),
            id="CF104",
        ) from error
    return tuple(str(path) for path in paths)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 or word == "info" else f"{count} {word}s"
