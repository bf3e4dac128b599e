"""Memory of the machine, and the share of it that the cgroups leave to this process. Bytes."""

from collections.abc import Mapping
from dataclasses import dataclass

from selfhost.core.system import System
from selfhost.hosts.cgroup import Level, levels
from selfhost.hosts.glance import glance, number, pairs
from selfhost.shapes.host import Fact, Known, Memory, Unknown

_MEMINFO = "/proc/meminfo"
_NO_LIMIT = 2**62  # version 1 writes LONG_MAX rounded down to a page, which differs with the page size


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit and what is left of it at the very level where it stands."""

    limit: int
    left: int
    how: str


def read(system: System) -> Memory:
    meminfo = pairs(glance(system, _MEMINFO), separator=":")
    total = _kib(meminfo, "MemTotal")
    limits = _limits(system, total)
    return Memory(total=total, available=_available(meminfo, limits), limit=_smallest(total, limits))


def swap(system: System) -> Fact[int]:
    """Bytes of swap that this process may use: the machine's, or the smallest cgroup limit below it."""
    total = _kib(pairs(glance(system, _MEMINFO), separator=":"), "SwapTotal")
    bounds = [(total.value, total.how)] if isinstance(total, Known) else []
    bounds += [limit for level in levels(system, "memory") for limit in _swap_at(system, level)]
    if not bounds or isinstance(total, Unknown):
        return total
    least, how = min(bounds)
    return Known(least, how)


def _swap_at(system: System, level: Level) -> list[tuple[int, str]]:
    """Version 1 limits memory and swap as one sum, so the memory limit of the same level is taken off it."""
    if level.version == 2:
        path = f"{level.path}/memory.swap.max"
        limit = number(glance(system, path))
        return [] if limit is None else [(limit, path)]
    path = f"{level.path}/memory.memsw.limit_in_bytes"
    both = number(glance(system, path))
    memory = number(glance(system, f"{level.path}/memory.limit_in_bytes"))
    if both is None or memory is None or both >= _NO_LIMIT:
        return []
    return [(max(0, both - memory), f"{path} less memory.limit_in_bytes")]


def _kib(meminfo: Mapping[str, str], name: str) -> Fact[int]:
    value = number(meminfo.get(name, "").removesuffix("kB").strip())
    return Unknown(f"{_MEMINFO} has no {name}") if value is None else Known(value * 1024, f"{_MEMINFO} {name}")


def _limits(system: System, total: Fact[int]) -> tuple[_Limit, ...]:
    ceiling = total.value if isinstance(total, Known) else _NO_LIMIT
    found = (limit for level in levels(system, "memory") for limit in _at(system, level))
    return tuple(limit for limit in found if limit.limit < min(ceiling, _NO_LIMIT))


def _at(system: System, level: Level) -> list[_Limit]:
    """Limits of one level. Limit and usage come from the same directory: a child's limit says nothing of a parent."""
    stat = pairs(glance(system, f"{level.path}/memory.stat"))
    if level.version == 2:
        used = number(glance(system, f"{level.path}/memory.current"))
        idle = number(stat.get("inactive_file", ""))
        # Above memory.high the kernel does not kill but slows to a crawl: for an engine as good as an end.
        texts = {name: glance(system, f"{level.path}/{name}") for name in ("memory.max", "memory.high")}
    else:
        used = number(glance(system, f"{level.path}/memory.usage_in_bytes"))
        idle = number(stat.get("total_inactive_file") or stat.get("inactive_file", ""))
        texts = {
            "memory.limit_in_bytes": glance(system, f"{level.path}/memory.limit_in_bytes"),
            # Covers ancestors that a container cannot see.
            "memory.stat hierarchical_memory_limit": stat.get("hierarchical_memory_limit", ""),
        }
    kept = max(0, (used or 0) - (idle or 0))
    return [
        _Limit(limit, max(0, limit - kept), f"{level.path}/{name}")
        for name, text in texts.items()
        if (limit := number(text)) is not None
    ]


def _smallest(total: Fact[int], limits: tuple[_Limit, ...]) -> Fact[int]:
    if not limits:
        return Known(total.value, f"{total.how}, no cgroup limit below it") if isinstance(total, Known) else total
    smallest = min(limits, key=lambda limit: limit.limit)
    return Known(smallest.limit, smallest.how)


def _available(meminfo: Mapping[str, str], limits: tuple[_Limit, ...]) -> Fact[int]:
    machine = _kib(meminfo, "MemAvailable")
    bounds = [(limit.left, f"{limit.how} less what is in use there") for limit in limits]
    if isinstance(machine, Known):
        bounds.append((machine.value, machine.how))
    elif not bounds:
        return machine
    left, how = min(bounds)
    return Known(left, how)
