"""What a person should know about an estimate, in short."""

from selfhost.plan.memory.fits import host_reserve
from selfhost.plan.memory.groups import Kind
from selfhost.plan.memory.kv_vllm import VllmCache
from selfhost.plan.memory.pages import attention_ranks
from selfhost.plan.memory.question import Question
from selfhost.plan.memory.releases import Release, is_said
from selfhost.plan.memory.weights import Sized
from selfhost.shapes.units import format_bytes


def remarks_of(question: Question, version: Release, cache: VllmCache, requested: int) -> tuple[str, ...]:
    """`requested`: bytes that the engine plans with."""
    left, reserve = question.room.total - requested, host_reserve(question)
    shape, ranks = question.geometry, attention_ranks(question.spread)
    return tuple(
        said
        for applies, said in (
            (
                shape.latent is not None and ranks > 1,
                f"latent attention: each of {ranks} ranks keeps the whole cache",
            ),
            (
                shape.latent is None and ranks > shape.kv_heads > 0,
                f"{shape.kv_heads} KV heads on {ranks} ranks: they are copied, more cards add no room for tokens",
            ),
            (
                left < reserve,
                f"{format_bytes(left)} are left to the system in this memory, {format_bytes(reserve)} are safe",
            ),
            (bool(shape.linear_layers), f"a block holds {cache.block_tokens:,} tokens so that a state fits into one"),
            (
                any(kind.kind in (Kind.SLIDING, Kind.CHUNKED) for kind in cache.grouping.kinds),
                f"windowed layers keep {cache.in_flight:,} tokens of running batches beside their window",
            ),
            (not shape.exact, f"computed as the nearest common form: {shape.note or 'this architecture is not known'}"),
            (version < (0, 21) and not question.eager and question.backend != "cpu", "graphs come on top of the plan"),
        )
        if applies
    )


def unknowns_of(question: Question, weights: Sized, form_known: bool) -> tuple[str, ...]:  # noqa: FBT001
    return tuple(
        said
        for applies, said in (
            (weights.rank == 0, "size of the weights"),
            (not question.room.total, f"memory of {question.room.name}"),
            (not form_known, f"how `{question.kv}` stores a token: counted as 16-bit"),
            (not is_said(question.version), f"release of {question.engine} `{question.version}`: the newest counts"),
        )
        if applies
    )
