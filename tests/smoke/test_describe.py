"""The rows of smoke on a terminal, and what a check says that passed."""

from io import StringIO

from selfhost.core.terminal import Terminal, cells
from selfhost.smoke import describe


class Screen(StringIO):
    def isatty(self) -> bool:
        return True


def rows(report, width):
    return describe.lines(report, Terminal(Screen(), {"NO_COLOR": "1"}, width=width))


def test_a_row_that_fits_without_its_time_does_not_wrap_because_of_it(bench):
    report = bench.smoke()
    titles = {check.id: check.title for check in report.checks if check.state == "passed"}
    for width in (60, 72, 80, 120):
        for row in rows(report, width):
            words = row.split()
            name = words[1] if len(words) > 1 else ""
            if name in titles and cells(f"  x {name}  {titles[name]}") <= width:
                assert cells(row) <= width, row


def test_times_stand_below_each_other(bench):
    timed = [row for row in rows(bench.smoke(), 120) if row.endswith(("ms", "s")) and row.startswith("  ✓")]
    assert len(timed) > 10
    assert len({cells(row) for row in timed}) == 1


def test_on_a_foreign_address_nothing_is_said_of_a_driver_or_a_plan(bench):
    summary = bench.smoke(foreign=True, only=("SM001",)).summary()
    assert "for this address as it is now" in summary
    assert "driver" not in summary
    assert "plan" not in summary


def test_a_wrong_role_and_a_missing_finish_say_why_and_what_to_do(bench):
    for fault in ("wrong-role", "no-finish"):
        for foreign in (True, False):
            (finding,) = bench.smoke(fault, only=("SM101",), foreign=foreign).findings
            assert finding.why
            assert len(finding.fix) == 2
