"""What a vendor's tool said when it did not answer properly, with what that means."""

from collections.abc import Iterable

from selfhost.core.system import Completed
from selfhost.core.table import read_table


def failure(vendor: str, answers: Iterable[Completed]) -> str:
    """The first known complaint, in plain words and then the tool's own; empty when none complained."""
    rows = [
        row
        for row in read_table("selfhost.hosts.vendors", "failures.toml")["failure"]["rows"]
        if row["vendor"] == vendor
    ]
    for done in answers:
        if done.missing:
            continue
        if done.timed_out:
            return f"{done.argv[0]} gave no answer in time"
        for line in f"{done.stdout}\n{done.stderr}".splitlines():
            means = next((row["means"] for row in rows if row["text"].lower() in line.lower()), "")
            if means:
                return f"{means} ({done.argv[0]}: {line.strip()[:160]})"
    return ""
