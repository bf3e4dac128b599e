"""From bytes of KV cache to tokens and back, to the block, as vLLM counts them."""

from dataclasses import dataclass

from selfhost.plan.memory.batch import in_flight
from selfhost.plan.memory.groups import Grouping, Kind, grouped
from selfhost.plan.memory.layers_vllm import layers_of
from selfhost.plan.memory.pages import form_of
from selfhost.plan.memory.question import Question
from selfhost.plan.memory.releases import Release

BY_REQUEST_SINCE: Release = (0, 20)
"""From here on the engine prints concurrency × context; before, blocks of one group × their tokens
(vllm-project/vllm#40694, after 0.19)."""
NULL_BLOCK_SINCE: Release = (0, 32)
"""The pool's own block is kept out of the check from here on; read in 0.32.0 and 0.33.0."""
STAGES_SINCE: Release = (0, 16)
"""Before, the check before start counted the layers of all pipeline stages (vllm-project/vllm#34076)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmCache:
    """The pool of one rank, without its size."""

    grouping: Grouping
    """Of the whole model; a pipeline stage holds its share of every group."""
    question: Question
    version: Release
    in_flight: int
    block_bytes: int
    checked_block_bytes: int
    """What the check before start takes a block for."""
    exact: bool

    @property
    def null(self) -> int:
        return 1 if self.version >= NULL_BLOCK_SINCE else 0

    @property
    def block_tokens(self) -> int:
        full = [kind.block for kind in self.grouping.kinds if kind.kind is Kind.FULL]
        return full[0] if full else self.grouping.smallest_block

    def blocks(self, kv_bytes: int) -> int:
        return max(0, kv_bytes // self.block_bytes) if self.block_bytes else 0

    def need_blocks(self, length: int) -> int:
        return self.grouping.need(length, self.in_flight)

    def need(self, length: int) -> int:
        """Bytes that one request of `length` tokens must find, the pool's own block included."""
        return (self.need_blocks(length) + self.null) * self.checked_block_bytes

    def said_need(self, length: int) -> int:
        """The same as the engine's refusal states it."""
        return self.need_blocks(length) * self.checked_block_bytes

    def concurrency(self, blocks: int, length: int) -> float:
        return blocks / self.need_blocks(length)

    def tokens(self, blocks: int, length: int) -> int:
        """As the start-up line has it."""
        if self.version >= BY_REQUEST_SINCE:
            return int(self.concurrency(blocks, length) * length)
        return blocks // self.grouping.groups * self.grouping.smallest_block

    def longest(self, kv_bytes: int, ceiling: int) -> int:
        """The largest length of one request that fits; 0 when not even one token does."""
        if ceiling < 1 or self.need(1) > kv_bytes:
            return 0
        low, high = 1, ceiling
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.need(middle) <= kv_bytes else (low, middle - 1)
        return low


def vllm_cache(question: Question, version: Release, *, last_stage: bool = True) -> VllmCache:
    grouping = grouped(layers_of(question, version))
    stages = question.spread.pipeline
    stage = grouping.of_stage(stages, last=last_stage)
    checked = stage if version >= STAGES_SINCE else grouping
    shape = question.geometry
    return VllmCache(
        grouping=grouping,
        question=question,
        version=version,
        in_flight=in_flight(question, version),
        block_bytes=stage.block_bytes,
        checked_block_bytes=checked.block_bytes,
        exact=shape.exact and form_of(question.kv, question.computed).known,
    )
