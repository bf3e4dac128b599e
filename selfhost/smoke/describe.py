"""The result of smoke as text for people and as JUnit for CI. Pure: report and terminal in, text out."""

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from selfhost.core.columns import columns
from selfhost.core.terminal import Terminal, cells
from selfhost.engines.names import shown
from selfhost.shapes.units import format_duration
from selfhost.smoke.report import CheckResult, SmokeReport

SYMBOLS = {"passed": "done", "failed": "failed", "error": "failed", "undecided": "warning", "skipped": "skipped"}
WORDS = {"passed": "ok", "failed": "FAIL", "error": "ERROR"}


def head(report: SmokeReport) -> str:
    """Where, which engine, which model."""
    endpoint = report.endpoint
    engine = f"{shown(endpoint.engine)} {endpoint.engine_version}".strip()
    return " · ".join(part for part in (endpoint.base_url, engine, endpoint.model) if part)


def lines(report: SmokeReport, terminal: Terminal) -> list[str]:
    """One line a check, under its group; on a pipe without symbols, so that scripts can search them."""
    if not terminal.is_tty:
        return [_plain(check) for check in report.checks]
    return list(_grouped(report, terminal))


def _grouped(report: SmokeReport, terminal: Terminal) -> Iterator[str]:
    heads = columns([(f"  {terminal.symbol(SYMBOLS[check.state])} {check.id}",) for check in report.checks])
    rows = [
        (f"{head}  {_words(check)}", _time(check)) for head, check in zip(heads, report.checks, strict=True)
    ]  # fmt: skip
    group = ""
    for check, line in zip(report.checks, _timed(rows, terminal.width), strict=True):
        if check.group != group:
            group = check.group
            yield f"  {group}"
        yield line


def _timed(rows: list[tuple[str, str]], width: int) -> list[str]:
    """Each row with its time at the right; rows that would not fit into `width` go without."""
    time_width = max(cells(time) for _, time in rows)
    fitting = [cells(words) for words, _ in rows if cells(words) + 2 + time_width <= width]
    edge = max(fitting, default=0)
    return [
        f"{words}{' ' * (edge - cells(words) + 2 + time_width - cells(time))}{time}".rstrip()
        if cells(words) <= edge
        else words
        for words, time in rows
    ]


def _plain(check: CheckResult) -> str:
    if check.state not in WORDS:
        return f"{check.id} {_words(check)}"
    return f"{check.id} {WORDS[check.state]} {_words(check)} ({_time(check)})"


def _words(check: CheckResult) -> str:
    """The title; what went wrong when it failed, and why it was not run."""
    match check.state:
        case "passed":
            return check.title
        case "failed" | "error":
            return check.reason
        case _:
            return f"{check.state}: {check.reason}"


def _time(check: CheckResult) -> str:
    return format_duration(check.seconds) if check.state in WORDS else ""


def closing(report: SmokeReport) -> str:
    return f"{report.summary()} ({format_duration(report.seconds)})"


def junit(report: SmokeReport) -> str:
    """One test case a check; undecided ones count as skipped, with the reason."""
    counts = {
        "tests": len(report.checks),
        "failures": report.count("failed"),
        "errors": report.count("error"),
        "skipped": report.count("skipped", "undecided"),
    }
    head = " ".join(f'{name}="{value}"' for name, value in counts.items())
    suite = f'<testsuite name="selfhost smoke" {head} time="{report.seconds:.3f}">'
    cases = "".join(_case(check) for check in report.checks)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{suite}\n{cases}</testsuite>\n</testsuites>\n'


def _case(check: CheckResult) -> str:
    name = quoteattr(f"{check.id} {check.title}")
    start = f'<testcase classname="selfhost.smoke.{check.group}" name={name} time="{check.seconds:.3f}"'
    if check.state == "passed":
        return f"{start}/>\n"
    tag = {"failed": "failure", "error": "error"}.get(check.state, "skipped")
    body = ""
    if check.finding is not None and tag != "skipped":
        body = escape("\n".join(part for part in (check.finding.why, check.finding.evidence) if part))
    return f"{start}><{tag} message={quoteattr(check.reason)}>{body}</{tag}></testcase>\n"
