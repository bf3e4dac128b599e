"""Driver versions and CUDA versions: which runs which. NVIDIA's rules, facts in cuda_versions.toml."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.shapes.host import Fact, Known, Unknown


@cache
def _table() -> Mapping[str, Any]:
    return read_table("selfhost.hosts", "cuda_versions.toml")


def highest(driver: str) -> Fact[str]:
    """The highest CUDA that a driver runs by its branch: `580.95.05` runs 13.0."""
    branch = driver.partition(".")[0]
    for row in _table()["branch"]["rows"]:
        if row["branch"] == branch:
            return Known(str(row["highest"]), f"table of driver branches: R{branch}")
    return Unknown(f"driver branch {branch or 'unknown'} is in no table of this version")


def highest_on_windows(driver: str) -> Fact[str]:
    """As `highest`, for a driver of Windows (WSL2): its branches are not in step with CUDA, so this is the least."""
    for row in _table()["windows"]["rows"]:
        if numbers(driver) >= numbers(row["from"]):
            return Known(str(row["highest"]), f"table of Windows drivers: at least, from {row['from']}")
    return Unknown(f"Windows driver {driver or 'unknown'} is in no table of this version")


def floor(cuda: str) -> str:
    """The oldest driver that runs any minor version of the major of `cuda`; empty for a major in no table."""
    major = cuda.partition(".")[0]
    return next((str(row["floor"]) for row in _table()["major"]["rows"] if str(row["major"]) == major), "")


def runs(driver: str, cuda: str) -> bool | None:
    """Whether binaries of `cuda` start on `driver`. None when no table knows.

    Code that is compiled at run time (PTX), and features of a later driver, may still fail within one major.
    """
    needed = floor(cuda)
    return None if not needed or not numbers(driver) else numbers(driver) >= numbers(needed)


def numbers(version: str) -> tuple[int, ...]:
    """`580.95.05` as numbers that compare; empty for what is no version."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdecimal() for part in parts) else ()
