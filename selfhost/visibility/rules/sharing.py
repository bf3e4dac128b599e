"""Shares of one card that look like cards: time slices, MPS, HAMi."""

from collections.abc import Iterator

from selfhost.hosts.cluster import labels
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Workload
from selfhost.visibility import cluster
from selfhost.visibility.engine_size import memory_share
from selfhost.visibility.rule import Found, place, rule
from selfhost.visibility.rules.mig import PLUGIN, parts_of_one_model

_SHARED = "nvidia.com/gpu.shared"
_NAMES = ("nvidia.com/gpu", _SHARED)
_HAMI = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")


def _asked(workload: Workload) -> str | None:
    limits = workload.pod.limits if workload.pod else {}
    return next((name for name in _NAMES if limits.get(name, "0") != "0"), None)


def shares(node: cluster.Json) -> tuple[str, int] | None:
    """How a node shares its cards, and into how many; 0 is not said. None where it does not."""
    found = labels(node)
    strategy = found.get("nvidia.com/gpu.sharing-strategy", "none")
    replicas = found.get("nvidia.com/gpu.replicas", "")
    into = int(replicas) if replicas.isdecimal() else 0
    shared = strategy not in ("none", "") or into > 1 or found.get("nvidia.com/gpu.product", "").endswith("-SHARED")
    return (strategy if strategy not in ("none", "") else "shared", into) if shared else None


def _shared(workload: Workload, host: Host | None, name: str) -> tuple[str, int] | None:
    """The way in which every node that could take the pod shares its cards."""
    found = [shares(node) for node in cluster.offering(workload, host, name)]
    sure = [each for each in found if each is not None]
    if found and len(sure) == len(found):
        return sure[0][0], min(into for _, into in sure)
    if name == _SHARED:
        return "shared", 0
    product = workload.pod.node_selector.get("nvidia.com/gpu.product", "") if workload.pod else ""
    return ("shared", 0) if product.endswith("-SHARED") else None


@rule("DV021", Severity.ERROR, source=PLUGIN)
def spread_over_shares(workload: Workload, host: Host | None) -> Iterator[Found]:
    name, parts = _asked(workload), parts_of_one_model(workload)
    way = _shared(workload, host, name) if name and parts > 1 else None
    if way is None or name is None:
        return
    yield Found(
        title=f"{workload.label} spreads over {parts} devices that are shares, perhaps of one card",
        place=place(workload, f"limits.{name}"),
        evidence=f"tensor × pipeline = {parts} · {name} is {way[0]}" + (f" × {way[1]}" if way[1] else ""),
        why="A share counts accesses, not cards; two of them may be the same card. NCCL needs a card of its own for "
        "each rank.",
        fix=("run with --tensor-parallel-size 1", "or choose nodes whose cards are not shared"),
    )


@rule("DV022", Severity.WARNING, source=PLUGIN)
def memory_over_shares(workload: Workload, host: Host | None) -> Iterator[Found]:
    name, part = _asked(workload), memory_share(workload)
    way = _shared(workload, host, name) if name and part else None
    if way is None or name is None or part is None or way[0] == "mps" or part * way[1] <= 1:
        return
    yield Found(
        title=f"{workload.label} takes {part:.0%} of a card that {way[1]} workloads share",
        place=place(workload, f"limits.{name}"),
        evidence=f"memory share {part} × {way[1]} replicas = {part * way[1]:.1f}",
        why="Time slicing divides the time, not the memory: the second engine on the card finds too little of it and "
        "stops.",
        fix=(f"take a share that fits beside the others:\n--gpu-memory-utilization {0.95 / way[1]:.2f}",),
    )


@rule("DV082", Severity.WARNING, source="https://github.com/Project-HAMi/HAMi/issues/1947")
def spread_over_hami(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    limits = workload.pod.limits if workload.pod else {}
    used = [name for name in _HAMI if name in limits]
    parts = parts_of_one_model(workload)
    plain = "--disable-custom-all-reduce" in workload.argv
    if not used or parts < 2 or (plain and "nvidia.com/gpucores" not in used):
        return
    hangs = "nvidia.com/gpucores" in used
    yield Found(
        title=f"{workload.label} spreads over {parts} cards that HAMi divides",
        place=place(workload, f"limits.{used[-1] if hangs else used[0]}"),
        evidence=f"tensor × pipeline = {parts} · {', '.join(used)}",
        why="HAMi stands between the engine and CUDA. vLLM's own all-reduce shares memory between processes in a way "
        "that it does not follow (`invalid argument`)"
        + ("; a limit on cores makes ranks wait for each other for ever." if hangs else "."),
        fix=(
            *(("remove nvidia.com/gpucores",) if hangs else ()),
            *(() if plain else ("add to the engine's arguments:\n--disable-custom-all-reduce",)),
        ),
    )
