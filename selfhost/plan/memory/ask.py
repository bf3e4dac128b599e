"""From what was decided so far to the question for the memory arithmetic."""

import math
from collections.abc import Sequence
from dataclasses import replace

from selfhost.hosts.cards import seen_by_engine
from selfhost.models.per_rank import Cut, per_rank
from selfhost.plan.memory.fits import reserve_of
from selfhost.plan.memory.question import Question, Room, Spread, Weights
from selfhost.plan.memory.vllm import cpu_memory
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision import Precision
from selfhost.shapes.geometry import Geometry
from selfhost.shapes.host import Accelerator, Fact, Host, Known, Unknown
from selfhost.shapes.model import Model
from selfhost.shapes.plan import EngineBuild

ESTIMATED = "estimated"
"""How the catalog's own sizes are known: parameters times bytes."""


def question_of(  # noqa: PLR0913 - every earlier decision is in the question
    host: Host,
    model: Model,
    build: EngineBuild,
    cards: Sequence[Accelerator],
    precision: Precision,
    *,
    geometry: Geometry,
    spread: Spread,
    concurrency: int,
    context: int | None,
    passed: PassedOn,
    kv_bytes: int | None = None,
) -> Question:
    """One start as planned; what the user passes on counts before what was planned."""
    # Planned as if it were free: a plan must not change because its own engine runs. The verdict says what is free now.
    room = replace(room_of(host, cards), free=None)
    return Question(
        engine=build.engine,
        version=build.version,
        backend=build.backend,
        geometry=geometry,
        weights=weights_of(model, precision, geometry=geometry, spread=spread),
        room=room,
        spread=spread,
        kv=precision.cache.counted,
        computed=precision.computed,
        kv_skip_layers=precision.cache.skip_layers,
        context=context,
        native=model.context_native.value if isinstance(model.context_native, Known) else None,
        utilization=passed.fraction("--gpu-memory-utilization") or utilization_of(room, build.engine),
        kv_bytes=passed.count("--kv-cache-memory-bytes") or kv_bytes,
        max_seqs=concurrency,
        batch_tokens=passed.count("--max-num-batched-tokens"),
        eager=build.backend == "cpu" or passed.flags.get("--enforce-eager") == "true",
    )


def utilization_of(room: Room, engine: str) -> float | None:
    """Where the host computes in the same memory, the share that leaves it its reserve; else the engine's default."""
    if not room.unified or not room.total:
        return None
    return math.floor((room.total - reserve_of(room)) / room.total * 100) / 100 - (0.05 if engine == "sglang" else 0.0)


def weights_of(model: Model, precision: Precision, *, geometry: Geometry, spread: Spread) -> Weights:
    """What is known of the size: tensor by tensor, else the checkpoint as a whole, else the number of parameters."""
    size, parameters = model.weights_bytes, model.params_b
    counted = isinstance(size, Known) and not size.how.startswith(ESTIMATED)
    return Weights(
        by_rule=_by_rule(model, precision, geometry=geometry, spread=spread),
        checkpoint=size.value if isinstance(size, Known) and (counted or isinstance(parameters, Unknown)) else None,
        parameters=parameters.value * 1e9 if isinstance(parameters, Known) else None,
        scheme=precision.scheme,
        published=precision.published,
    )


def _by_rule(model: Model, precision: Precision, *, geometry: Geometry, spread: Spread) -> int | None:
    if model.tensors is None:
        return None
    cut = Cut(
        tp=spread.tensor, pp=spread.pipeline, data=spread.data, expert=spread.expert,
        scheme="" if precision.scheme == precision.published else precision.scheme, computed=precision.computed,
    )  # fmt: skip
    return per_rank(model.tensors, geometry, cut)


def room_of(host: Host, cards: Sequence[Accelerator]) -> Room:
    """The smallest of the cards, or the machine's memory."""
    if not cards:
        available, free, where, _ = cpu_memory(host)
        return Room(name=where, total=available.value if isinstance(available, Known) else 0, free=free)
    card = min(cards, key=lambda one: _known(total_of(host, one)))
    free = card.memory_free.value if isinstance(card.memory_free, Known) else None
    if card.unified and free is None and isinstance(host.memory.available, Known):
        free = host.memory.available.value
    return Room(
        name=card.name,
        total=_known(total_of(host, card)),
        free=free,
        arch=card.arch.value if isinstance(card.arch, Known) else "",
        unified=card.unified,
        linked=bool(card.link_group) or linked(host, cards),
    )


def total_of(host: Host, card: Accelerator) -> Fact[int]:
    """What the engine sees of a card; of one that shares the machine's memory, at most that."""
    total = seen_by_engine(card)
    if not card.unified:
        return total
    whole = host.memory.total
    if isinstance(whole, Unknown):
        return total
    return whole if isinstance(total, Unknown) else Known(min(total.value, whole.value), f"{total.how}; {whole.how}")


def linked(host: Host, cards: Sequence[Accelerator]) -> bool:
    """Whether every pair is joined directly."""
    chosen = {card.index for card in cards}
    pairs = {(link.a, link.b) for link in host.links if link.kind.startswith(("NV", "XGMI"))}
    wanted = {(a, b) for a in chosen for b in chosen if a < b}
    return bool(wanted) and all(pair in pairs or pair[::-1] in pairs for pair in wanted)


def _known(fact: Fact[int]) -> int:
    return fact.value if isinstance(fact, Known) else 0
