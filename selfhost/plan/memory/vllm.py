"""How much memory vLLM will take: an estimate by parts, each with where its figures come from. Bytes throughout."""

import math
from dataclasses import dataclass
from functools import cache

from selfhost.core.table import read_table
from selfhost.plan.devices import Devices
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision import CHECKPOINT, Precision
from selfhost.shapes.host import Fact, Host, Known, Unknown
from selfhost.shapes.model import Geometry, Model
from selfhost.shapes.precision import PLAIN
from selfhost.shapes.units import GIB, MIB, format_bytes

CPU_BLOCK = 128
"""Tokens of one block of KV cache on the CPU (vllm/platforms/cpu.py, 0.32.0)."""
GPU_BLOCK = 16
GPU_UTILIZATION = 0.92
"""vLLM 0.33.0 default: the share of the card's total memory that it plans with."""
BATCH_TOKENS = 2048
"""max_num_batched_tokens of the server on the CPU and on cards below 70 GiB (vLLM engine/arg_utils.py)."""


@cache
def figure(name: str) -> float:
    """A figure of vllm.toml by its dotted name: `gpu.bytes_per_logit`. Its source stands beside it."""
    device, _, key = name.partition(".")
    value: float = read_table("selfhost.plan.memory", "vllm.toml")[device][key]["value"]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The parts that are settled before the context is, per device. `unknowns` say which figure is a guess."""

    weights: int
    overhead: int
    kv_per_token: int
    block_tokens: int
    available: int
    free_now: int | None
    where: str
    margin: int
    """How far off the estimate may be: inside it the answer is `too close to call`."""
    measured: bool
    """Whether the overhead was ever measured on such a device."""
    unknowns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def kv_need(self, context: int) -> int:
        """KV cache that one request of `context` tokens needs; one block is vLLM's own null block."""
        return (math.ceil(context / self.block_tokens) + 2) * self.block_tokens * self.kv_per_token

    def tokens_in(self, kv_bytes: int) -> int:
        block = self.block_tokens * self.kv_per_token
        return kv_bytes // block * self.block_tokens if block else 0


def kv_bytes_per_token(geometry: Geometry, *, value_bytes: float) -> int:
    """Keys and values of every layer that keeps a cache, as vLLM groups them.

    Full and sliding layers share blocks in groups of equal size; an incomplete group is padded (vLLM 0.33.0,
    v1/core/kv_cache_planning.py). Windows are counted as full layers: more than needed, never less.
    """
    full, sliding = geometry.full_layers, geometry.sliding_layers
    if full and sliding:
        small, large = sorted((full, sliding))
        group = large if large < 1.5 * small else small
        layers = group * (math.ceil(full / group) + math.ceil(sliding / group))
    else:
        layers = full + sliding
    return int(layers * 2 * geometry.kv_heads * geometry.head_dim * value_bytes)


def weights_bytes(model: Model, precision: Precision) -> Fact[int]:
    """The weights in memory: those of the checkpoint, converted when another precision is served."""
    published = model.weights_bytes
    if isinstance(published, Unknown):
        if isinstance(model.params_b, Unknown):
            return published
        per = PLAIN.get(precision.own, 2.0)
        published = Known(int(model.params_b.value * 1e9 * per), "estimated from the number of parameters")
    if precision.weights == CHECKPOINT or precision.own not in PLAIN:
        return published
    if precision.weights in PLAIN:
        return Known(int(published.value * PLAIN[precision.weights] / PLAIN[precision.own]), published.how)
    return Known(
        _as_fp8(published.value, model, own_bytes=PLAIN[precision.own]), f"{published.how}, linear layers in FP8"
    )


def _as_fp8(published: int, model: Model, *, own_bytes: float) -> int:
    """Embedding and output head stay as they are; a model that shares them has one."""
    if isinstance(model.geometry, Unknown):
        return published
    shape = model.geometry.value
    kept = min(published, int((1 if shape.tie else 2) * shape.vocab * shape.hidden * own_bytes))
    return kept + int((published - kept) / own_bytes)


def budget(
    *,
    host: Host,
    model: Model,
    precision: Precision,
    devices: Devices,
    concurrency: int,
    passed: PassedOn,
) -> Budget:
    """The parts for this machine, with the user's own flags counted in or named as unknown."""
    weights = weights_bytes(model, precision)
    unknowns = [f"size of the weights: {weights.reason}"] if isinstance(weights, Unknown) else []
    geometry = model.geometry
    if isinstance(geometry, Unknown):
        unknowns.append(f"shape of the network: {geometry.reason}")
    unknowns += [f"what `{flag}` does to memory" for flag in passed.uncounted]
    per_token = (
        kv_bytes_per_token(geometry.value, value_bytes=precision.kv_value_bytes)
        if isinstance(geometry, Known)
        else int(figure("unknown.kv_bytes_per_token"))
    )
    notes = []
    if isinstance(geometry, Known) and not geometry.value.exact:
        notes.append("the cache of this architecture is computed as the nearest common form")
    size = weights.value if isinstance(weights, Known) else 0
    if devices.cards:
        return _gpu(
            devices, size=size, per_token=per_token, model=model, concurrency=concurrency, passed=passed,
            unknowns=unknowns, notes=notes,
        )  # fmt: skip
    available, free, where, said = cpu_memory(host)
    unknowns += [available.reason] if isinstance(available, Unknown) else []
    limit = available.value if isinstance(available, Known) else 0
    return Budget(
        weights=size,
        overhead=_cpu_overhead(model, concurrency=concurrency, passed=passed),
        kv_per_token=per_token,
        block_tokens=CPU_BLOCK,
        available=limit,
        free_now=free,
        where=where,
        margin=int(limit * figure("cpu.margin_share")),
        measured=True,
        unknowns=tuple(unknowns),
        notes=(*notes, *said),
    )


def _cpu_overhead(model: Model, *, concurrency: int, passed: PassedOn) -> int:
    """The engine's processes, one batch of activations and the logits of one step."""
    base = int((figure("cpu.engine_gib") + (figure("cpu.compiler_gib") if passed.compiles else 0)) * GIB)
    if isinstance(model.geometry, Unknown):
        return base
    shape = model.geometry.value
    activations = _batch_tokens(passed) * shape.hidden * 4 * figure("cpu.intermediates")
    logits = concurrency * shape.vocab * 4 * figure("cpu.logit_copies")
    return base + int(activations + logits)


def _batch_tokens(passed: PassedOn) -> int:
    return passed.count("--max-num-batched-tokens") or BATCH_TOKENS


def cpu_memory(host: Host) -> tuple[Fact[int], int | None, str, tuple[str, ...]]:
    """What an engine may take here, what is free now, in words, and remarks.

    Planned with the limit, not with what happens to be free: a plan must not change because its own engine runs.
    """
    limit, total, free = host.memory.limit, host.memory.total, host.memory.available
    known = [fact.value for fact in (limit, total) if isinstance(fact, Known)]
    if not known:
        return (
            Unknown(f"memory of this machine: {limit.reason if isinstance(limit, Unknown) else ''}"),
            None,
            "memory",
            (),
        )
    room, where, notes = min(known), "memory of this machine", []
    if isinstance(total, Known) and isinstance(limit, Known) and limit.value < total.value:
        where = "memory limit of this container"
    else:
        room -= min(GIB, room // 10)  # the system and its other programs
    if host.cpu.numa_nodes > 1:
        room //= host.cpu.numa_nodes
        notes.append(f"vLLM binds its memory to one of {host.cpu.numa_nodes} NUMA nodes")
    return Known(room, "limit"), free.value if isinstance(free, Known) else None, where, tuple(notes)


def _gpu(
    devices: Devices, *, size: int, per_token: int, model: Model, concurrency: int, passed: PassedOn,
    unknowns: list[str], notes: list[str],
) -> Budget:  # fmt: skip
    """One of `n` equal cards. Never measured by us: see vllm.toml for the public logs behind each part."""
    count, card = len(devices.cards), devices.cards[0]
    share = passed.fraction("--gpu-memory-utilization") or GPU_UTILIZATION
    batch_tokens = _batch_tokens(passed)
    total = card.memory_total.value if isinstance(card.memory_total, Known) else 0
    if isinstance(card.memory_total, Unknown):
        unknowns.append(f"memory of {card.name}: {card.memory_total.reason}")
    overhead = int(figure("gpu.one_card_mib" if count == 1 else "gpu.several_cards_mib") * MIB)
    if isinstance(model.geometry, Known):
        shape = model.geometry.value
        overhead += int(min(concurrency, batch_tokens) * shape.vocab * figure("gpu.bytes_per_logit"))
        overhead += int(figure("gpu.intermediates") * batch_tokens * shape.hidden * 2)
        captured = min(1.0, (2 * concurrency + 16) / 512)  # up to twice the concurrency, at most 512 (vLLM config)
        overhead += int(figure("gpu.graph_gib_per_layer") * GIB * shape.layers * captured)
    return Budget(
        weights=size // count,
        overhead=overhead,
        kv_per_token=max(1, per_token // count),
        block_tokens=GPU_BLOCK,
        available=int(total * share),
        free_now=card.memory_free.value if isinstance(card.memory_free, Known) else None,
        where=card.name if count == 1 else f"each {card.name}",
        margin=int(figure("gpu.margin_gib") * GIB + figure("gpu.margin_share") * total),
        measured=False,
        unknowns=tuple(unknowns),
        notes=(
            *notes,
            f"vLLM plans with {share:.0%} of {format_bytes(total)}; never run on a card by us",
        ),
    )
