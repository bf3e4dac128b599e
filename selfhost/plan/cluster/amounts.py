"""Processor, memory, disk and time that a pod asks for, each with its reason. Bytes and seconds."""

import math
from dataclasses import dataclass

from selfhost.engines.names import shown
from selfhost.plan.cluster.case import Case
from selfhost.plan.container.times import Wait, start_period
from selfhost.shapes.host import Known
from selfhost.shapes.units import GIB, format_bytes

_SHARD = 5 * GIB
"""The largest file of a checkpoint; each rank maps one at a time while loading."""
_ENGINE = 4 * GIB
"""Interpreters, libraries of the cards and the server, beside weights and cache."""
_NETWORK = 50 * 10**6
"""Bytes a second of a slow download."""
_LEAST_S, _MOST_S = 600, 10_800
_LEAST_FETCH_S, _MOST_FETCH_S = 1800, 86_400
_COMPILED = 8 * GIB
_CORES = 16
"""More threads than these do not make one model faster on a processor."""
PRESTOP_S = 15
"""Kubernetes tells proxies and ingresses of a pod that ends while it is ending; they need some seconds."""
DRAIN_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """`reasons` by paths of the chart's values."""

    cpu: int
    memory: int
    ephemeral_request: int
    ephemeral_limit: int
    shm: int
    startup_budget_s: int
    fetch_budget_s: int
    drain_s: int
    weights_size: int
    reasons: dict[str, str]


def cores_of(case: Case) -> int:
    """For the processor whole cores, as many as the node has left; for cards two, and one for each rank more."""
    if case.devices.cards:
        return 1 + case.ranks
    found = case.host.cpu.cores
    return max(1, min(_CORES, int(found.value))) if isinstance(found, Known) else 4


def amounts_of(case: Case) -> Amounts:
    weights = case.memory.weights * case.ranks
    stored = case.model.weights_bytes.value if isinstance(case.model.weights_bytes, Known) else weights
    shm = GIB + case.ranks * GIB
    memory, why_memory = _memory(case, stored, shm)
    loading = start_period(case.model, case.build, weights=weights)
    startup = _within(int(loading.seconds), _LEAST_S, _MOST_S)
    fetch = _within(math.ceil(3 * stored / _NETWORK / 60) * 60, _LEAST_FETCH_S, _MOST_FETCH_S)
    size = math.ceil((2.1 * stored + _COMPILED) / GIB) * GIB
    drain, why_drain = drain_of(case)
    cores = cores_of(case)
    return Amounts(
        cpu=cores,
        memory=memory,
        ephemeral_request=4 * GIB,
        ephemeral_limit=16 * GIB,
        shm=shm,
        startup_budget_s=startup,
        fetch_budget_s=fetch,
        drain_s=drain,
        weights_size=size,
        reasons={
            "resources": f"memory: {why_memory}; cpu: {_cores_words(case, cores)}; ephemeral-storage: logs, /tmp and "
            "what the engine writes beside its volumes",
            "shm.size": f"{'one rank' if case.ranks == 1 else f'{case.ranks} ranks'} and the server hand data over by "
            "it; 64 MiB, the default, are too few",
            "probes.startupBudgetSeconds": _loading_words(loading, startup),
            "fetch.budgetSeconds": f"{format_bytes(stored)} at 50 MB/s, three times over{_bounds(fetch)}",
            "weights.size": f"twice {format_bytes(stored)}, because another revision is fetched beside the one that is "
            "served, a twentieth more for the file system, and 8 GiB for what is compiled",
            "probes.startup": "SGLang generates a token for each answer, and waits up to 20 s for it",
            "drain": f"{PRESTOP_S} s until no new request comes, then {why_drain}",
        },
    )  # fmt: skip


def _loading_words(loading: Wait, budget: int) -> str:
    why = loading.reason.partition("; so starting")[0].replace("failures do not count for", "loading may take")
    if budget == int(loading.seconds):
        return why
    took = why.partition(": ")[2]
    return f"{took}; {f'{_LEAST_S // 60} min at least' if budget == _LEAST_S else f'{_MOST_S // 3600} h at most'}"


def _bounds(fetch: int) -> str:
    if fetch == _LEAST_FETCH_S:
        return f"; {_LEAST_FETCH_S // 60} min at least"
    return f"; {_MOST_FETCH_S // 3600} h at most" if fetch == _MOST_FETCH_S else ""


def _within(seconds: int, least: int, most: int) -> int:
    return max(least, min(most, seconds))


def _memory(case: Case, stored: int, shm: int) -> tuple[int, str]:
    if not case.devices.cards:
        need = max(case.memory.weights + case.memory.kv_cache + _ENGINE, case.memory.need + shm)
        return _whole(need), "weights, KV cache and engine live in it, and /dev/shm counts"
    part = min(_SHARD, stored) * case.ranks
    what = "a file" if case.ranks == 1 else f"{case.ranks} files"
    why = f"{format_bytes(part)} for {what} of the checkpoint while it loads, 4 GiB for the engine, and /dev/shm counts"
    if any(card.unified for card in case.devices.cards):
        return _whole(case.memory.need + _ENGINE + shm), "the card computes in it: weights, KV cache and engine"
    return _whole(part + _ENGINE + shm), why


def _whole(count: int) -> int:
    """Up to the next even GiB: the sum is an estimate."""
    return math.ceil(count / (2 * GIB)) * 2 * GIB


def _cores_words(case: Case, cores: int) -> str:
    if case.devices.cards:
        return "the server and each rank keep one busy; without a limit, or the tokenizer starves and probes time out"
    if not isinstance(case.host.cpu.cores, Known):
        return "nothing is known of the nodes, so four; threads are started for so many"
    return f"the engine starts threads for {cores}"


def drain_of(case: Case) -> tuple[int, str]:
    """How long requests that run may go on after SIGTERM."""
    if case.build.engine == "vllm":
        asked = case.passed.count("--shutdown-timeout")
        if asked is not None:
            return asked, f"{asked} s for requests that run, as passed on"
        return DRAIN_S, f"{DRAIN_S} s for requests that run (--shutdown-timeout)"
    return DRAIN_S, f"{DRAIN_S} s for requests that run: {shown(case.build.engine)} finishes them by itself"
