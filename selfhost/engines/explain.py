"""A log of a dead, hanging or refusing engine → what it means and what to do. Pure."""

import re
from dataclasses import replace
from difflib import get_close_matches

from selfhost.core.redact import mask
from selfhost.engines.condense import Condensed, condense
from selfhost.engines.failures import Failure, Fix, rows
from selfhost.engines.loglines import bare
from selfhost.engines.match import Hit, find
from selfhost.shapes.finding import Finding, Place, Severity

ALSO_SEEN = 3
"""Further rows that are worth a line below the diagnosis."""

EVIDENCE_LINES = 3
EVIDENCE_WIDTH = 240
_LOOK_AHEAD_LINES = 40

_EXCEPTION = re.compile(r"\b[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b(?:\(|: )")
_CODE = re.compile(r"^\s*(?:raise |return |self\.|File \"|[\w.]+ = )")
_VERSION = re.compile(r"(?:LLM engine \(v|API server version v?|\bversion )(\d+\.\d+(?:\.\d+)?)")
_ENGINES = (
    ("sglang", re.compile(r"sglang|sgl_kernel|sgl-kernel|--mem-fraction-static")),
    ("vllm", re.compile(r"vllm|EngineCore|VllmWorker", re.IGNORECASE)),
)


def explain(
    text: str,
    *,
    engine: str | None = None,
    exit_code: int | None = None,
    stage: str | None = None,
    requests: bool = True,
) -> tuple[Finding, ...]:
    """Return the diagnosis, then what else was seen (as information); empty when nothing is recognised.

    `exit_code` is a hint where no line says more; `stage` is the phase of the start at which the log ends.
    Without `requests` refusals of single requests are left out: no engine ends of them.
    """
    log = condense(text)
    hits = find(log, exit_code=exit_code, stage=stage, requests=requests)
    if not hits:
        return ()
    causes = [hit for hit in hits if not hit.is_weak] or hits[:1]
    engine = engine or _engine(log.text)
    first, *others = causes
    diagnosis = _finding(first, log, engine=engine, severity=first.failure.severity)
    if not first.positions:
        return (replace(diagnosis, evidence=f"exit code {exit_code}"),)
    elsewhere = [hit for hit in others if hit.positions and _place(hit, log) != _place(first, log)]
    also = (_finding(hit, log, engine=engine, severity=Severity.INFO) for hit in elsewhere[:ALSO_SEEN])
    return (diagnosis, *also)


def rule(id: str) -> Finding | None:
    """The row `id` of the table as a finding without a log; None when there is no such row."""
    for row in rows():
        if row.id == id.upper():
            fixes = tuple(fix.do for fix in row.fix if not fix.needs and not fix.until)
            return Finding(
                id=row.id, severity=row.severity, title=row.title, why=row.why, fix=_unbraced(fixes), source=row.source
            )
    return None


def _finding(hit: Hit, log: Condensed, *, engine: str, severity: Severity) -> Finding:
    row = hit.failure
    values = _values(row, log.text)
    version = _version(log.text)
    fixes = tuple(fix.do.format(**values) for fix in row.fix if _applies(fix, values, engine=engine, version=version))
    return Finding(
        id=row.id,
        severity=severity,
        title=row.title,
        place=Place(line=_place(hit, log)),
        evidence=_evidence(hit, log),
        why=row.why,
        fix=fixes,
        source=row.source,
    )


def _place(hit: Hit, log: Condensed) -> int | None:
    """Number of the root line in the whole log."""
    return log.numbers[log.line_at(hit.positions[0])] if hit.positions else None


def _unbraced(fixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(fix.format() for fix in fixes)


def _engine(text: str) -> str:
    """The engine that wrote the log, empty when it does not say."""
    return next((name for name, sign in _ENGINES if sign.search(text)), "")


def _version(text: str) -> tuple[int, ...]:
    match = _VERSION.search(text)
    return _numbers(match[1]) if match else ()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _applies(fix: Fix, values: dict[str, str], *, engine: str, version: tuple[int, ...]) -> bool:
    """Whether an action fits the log. Without a version in the log only what holds for present ones is said."""
    if fix.engine and engine and fix.engine != engine:
        return False
    if (fix.needs and fix.needs not in values) or (fix.lacks and fix.lacks in values):
        return False
    if fix.until and not (version and version < _numbers(fix.until)):
        return False
    return not (fix.since and version and version < _numbers(fix.since))


def _values(row: Failure, text: str) -> dict[str, str]:
    """What the row extracts from the log; `near` are known names close to the one that was asked for."""
    values: dict[str, str] = {}
    for pattern in row.extract:
        match = pattern.search(text)
        if match:
            values.update({name: mask(value.strip()) for name, value in match.groupdict().items() if value})
    asked = values.get("asked", "")
    names = re.split(r"[\s,'\"]+", values.get("names", ""))
    if asked.startswith("--"):  # the usage text that argparse prints above its error names every option
        names = sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)) - {asked})
    near = get_close_matches(asked, names, n=3, cutoff=0.6) if asked else []
    if near:
        values["near"] = " or ".join(f"`{name}`" for name in near)
    return values


def _evidence(hit: Hit, log: Condensed) -> str:
    """The root line and what proves its stage; for a line of code the exception that follows it."""
    chosen: dict[int, int] = {}
    for position in hit.positions[:EVIDENCE_LINES]:
        index = log.line_at(position)
        chosen.setdefault(index, position - log.starts[index])
    for index in list(chosen)[:1]:
        if hit.failure.is_wrapper:
            root = _first_exception(log)
            if root is not None:
                chosen.setdefault(root, 0)
        elif _CODE.match(bare(log.line(index))):
            following = _exception_after(log, index)
            if following is not None:
                chosen.setdefault(following, 0)
    return "\n".join(_shown(log.line(index), column) for index, column in sorted(chosen.items())[:EVIDENCE_LINES])


def _first_exception(log: Condensed) -> int | None:
    """The first line with an exception of its own, where the rest only reports one."""
    wrappers = [pattern for row in rows() if row.is_wrapper for pattern in row.any]
    for index in range(len(log.starts)):
        line = log.line(index)
        if _EXCEPTION.search(line) and not any(pattern.search(line) for pattern in wrappers):
            return index
    return None


def _exception_after(log: Condensed, index: int) -> int | None:
    for ahead in range(index + 1, min(index + _LOOK_AHEAD_LINES, len(log.starts))):
        if _EXCEPTION.match(bare(log.line(ahead))):
            return ahead
    return None


def _shown(line: str, column: int) -> str:
    """A line for a person: without prefixes, secrets masked, cut around what was recognised."""
    message = bare(line).strip()
    column = max(0, column - (len(line) - len(message)))
    if len(message) > EVIDENCE_WIDTH:
        start = max(0, min(column - EVIDENCE_WIDTH // 3, len(message) - EVIDENCE_WIDTH))
        end = start + EVIDENCE_WIDTH
        message = ("…" if start else "") + message[start:end] + ("…" if end < len(message) else "")
    return mask(message)
