"""How many measured runs stand behind an estimate: the same engine, release line and architecture of card."""

from functools import cache

from selfhost.core.table import read_table
from selfhost.plan.memory.question import Question
from selfhost.plan.memory.releases import Release, numbers


@cache
def _rows() -> tuple[tuple[str, str, Release, Release, int], ...]:
    table = read_table("selfhost.plan.memory", "evidence.toml")["line"]
    return tuple(
        (row["engine"], row["arch"], numbers(row["since"]), numbers(row["until"]), row["runs"]) for row in table
    )


def measured_runs(question: Question, version: Release) -> int:
    """0 says that nobody's log of such a start was at hand."""
    arch = question.room.arch or question.backend
    return sum(
        runs
        for engine, of_arch, since, until, runs in _rows()
        if engine == question.engine and of_arch == arch and since <= version < until
    )
