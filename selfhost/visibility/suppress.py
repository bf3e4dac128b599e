"""`# selfhost: ignore DV051 -- why` in a file: findings that its author knows about and accepts."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.workload import Workload

_MARK = re.compile(r"(?:#|//|;)[ \t]*selfhost:[ \t]*(?P<verb>ignore-file|ignore)\b(?P<rest>.*)")
_ID = re.compile(r"[A-Za-z]{2}\d{3}[A-Za-z]?\b")
_REASON = re.compile(r"\s*(?:--|[\N{EM DASH}\N{EN DASH}:])\s*(?P<reason>\S.*)")
_COMMENT = re.compile(r"\s*(?:#|//|;)")
_GOOD: Final = "# selfhost: ignore DV051 -- this host has 64 GiB of shm"


@dataclass(slots=True, kw_only=True)
class Mark:
    """One comment. `covers` is the line that it speaks of; None is the whole file."""

    line: int
    column: int
    ids: tuple[str, ...]
    reason: str
    covers: frozenset[int] | None
    used: set[str] = field(default_factory=set)


def marks(text: str) -> tuple[Mark, ...]:
    """Every such comment of a text. One on a line of its own speaks of the next line that is no comment."""
    if "selfhost:" not in text:
        return ()
    lines = text.split("\n")
    found = []
    for number, line in enumerate(lines, 1):
        match = _MARK.search(line)
        if match is None:
            continue
        ids, rest = _ids(match["rest"])
        reason = _REASON.match(rest)
        whole = match["verb"] == "ignore-file"
        found.append(
            Mark(
                line=number,
                column=match.start() + 1,
                ids=ids,
                reason=reason["reason"].strip() if reason else "",
                covers=None if whole else frozenset({number, _next(lines, number, match.start())}),
            )
        )
    return tuple(found)


def kept(
    findings: Sequence[Finding],
    *,
    path: str,
    text: str,
    workloads: Sequence[Workload],
    known: Collection[str],
) -> tuple[Finding, ...]:
    """Findings that no comment of the text takes back, and what is wrong with the comments themselves."""
    found = marks(text)
    if not found:
        return tuple(findings)
    begins = {
        (workload.label, workload.path): spot.line
        for workload in workloads
        if (spot := workload.at.get("name")) is not None and not spot.path
    }
    left = tuple(finding for finding in findings if not _is_taken_back(finding, path, found, begins))
    return (*left, *(remark for mark in found for remark in _remarks(mark, path, known)))


def as_id(text: str) -> str:
    """As rules are numbered: `dv060B` is DV060b."""
    return text[:2].upper() + text[2:].lower()


def _ids(rest: str) -> tuple[tuple[str, ...], str]:
    ids: list[str] = []
    rest = rest.lstrip()
    while match := _ID.match(rest):
        ids.append(as_id(match[0]))
        rest = rest[match.end() :].lstrip(" \t,")
    return tuple(ids), rest


def _next(lines: Sequence[str], number: int, start: int) -> int:
    """The next line that is no comment, for a comment that has a line to itself."""
    if lines[number - 1][:start].strip():
        return number
    following = (at for at, line in enumerate(lines[number:], number + 1) if line.strip() and not _COMMENT.match(line))
    return next(following, number)


def _is_taken_back(finding: Finding, path: str, found: Sequence[Mark], begins: Mapping[tuple[str, str], int]) -> bool:
    """A mark where a container begins speaks of all of it: inside a continued line there are no comments."""
    lines = {finding.place.line} if finding.place.path == path else set()
    lines.add(begins.get((finding.place.object, path)))
    taken = False
    for mark in found:
        here = mark.covers is None or any(line in mark.covers for line in lines if line is not None)
        if here and finding.id in mark.ids:
            mark.used.add(finding.id)
            taken = True
    return taken


def _remarks(mark: Mark, path: str, known: Collection[str]) -> list[Finding]:
    place = Place(path=path, line=mark.line, column=mark.column)
    unknown = [name for name in mark.ids if name not in known]
    remarks = []
    if not mark.ids or unknown:
        remarks.append(
            Finding(
                id="CF057",
                severity=Severity.WARNING,
                title=f"`{unknown[0]}` is not a rule" if unknown else "this comment names no rule to ignore",
                place=place,
                why="Nothing is ignored by it.",
                fix=(f"name the ids as findings print them:\n{_GOOD}",),
            )
        )
    if mark.ids and not mark.reason:
        remarks.append(
            Finding(
                id="CF055",
                severity=Severity.WARNING,
                title=f"{', '.join(mark.ids)} is ignored without a reason",
                place=place,
                why="Whoever reads this file later cannot tell whether the reason still holds.",
                fix=(f"say why, behind two dashes:\n{_GOOD}",),
            )
        )
    remarks += [
        Finding(
            id="CF058",
            severity=Severity.INFO,
            title=f"nothing is found here that {name} would be ignored for",
            place=place,
            why="The cause is gone, or the comment stands in another place than the finding.",
            fix=("remove the comment, or move it to the line of the finding",),
        )
        for name in mark.ids
        if name in known and name not in mark.used
    ]
    return remarks
