"""How vLLM shares one pool of blocks among layers of different kinds (v1/core/kv_cache_planning.py of 0.33.0)."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum


class Kind(StrEnum):
    FULL = "full attention"
    SLIDING = "sliding window"
    CHUNKED = "chunked window"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Layers that look alike to the engine: `count` of them, each with pages of `page` bytes for `block` tokens."""

    kind: Kind
    count: int
    page: int
    block: int
    net: int
    """Bytes of a page that hold something; the rest pads it to the common size."""
    window: int = 0
    states: int = 0
    """Pages that one sequence keeps in each layer with a state."""

    def blocks(self, length: int, in_flight: int) -> int:
        """Blocks that one sequence of `length` tokens takes in one group of such layers."""
        if self.kind is Kind.STATE:
            return self.states
        if self.kind is Kind.FULL:
            return math.ceil(length / self.block)
        if self.kind is Kind.CHUNKED:
            return math.ceil(min(self.window + in_flight, length) / self.block)
        return math.ceil(min(self.window - 1 + in_flight, length) / self.block) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Groups of `size` layers each; a block holds one page of every layer of one group."""

    kinds: tuple[Layers, ...]
    size: int
    page: int
    together: bool = False
    """All layers form one group, also where their pages differ; `page` is then their sum."""

    def groups_of(self, kind: Layers) -> int:
        return 1 if self.together else math.ceil(kind.count / self.size)

    @property
    def groups(self) -> int:
        return 1 if self.together else sum(self.groups_of(kind) for kind in self.kinds)

    @property
    def block_bytes(self) -> int:
        return self.page if self.together else self.size * self.page

    @property
    def smallest_block(self) -> int:
        return min((kind.block for kind in self.kinds if kind.kind is not Kind.STATE), default=self.kinds[0].block)

    def need(self, length: int, in_flight: int) -> int:
        """Blocks of one sequence over all groups."""
        if self.together:
            return max(kind.blocks(length, in_flight) for kind in self.kinds)
        return sum(self.groups_of(kind) * kind.blocks(length, in_flight) for kind in self.kinds)

    def of_stage(self, stages: int, *, last: bool) -> "Grouping":
        """What one pipeline stage holds; the last one never gets the odd layer (distributed/utils.py)."""
        if stages == 1:
            return self
        if self.together:
            total = sum(kind.count for kind in self.kinds)
            own = total // stages if last else math.ceil(total / stages)
            return replace(self, page=self.page * own // total)
        return replace(self, size=self.size // stages if last else math.ceil(self.size / stages))


def grouped(kinds: tuple[Layers, ...]) -> Grouping:
    """One group for layers that all grow alike; else groups of equal size over pages of equal size."""
    alike = {(kind.kind, kind.window, kind.block) for kind in kinds}
    if len(alike) == 1 and kinds[0].kind is not Kind.STATE:
        return Grouping(kinds=kinds, size=1, page=sum(kind.count * kind.page for kind in kinds), together=True)
    kinds = _of_one_page(kinds)
    counts = [kind.count for kind in kinds]
    size = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
    return Grouping(kinds=kinds, size=size, page=kinds[0].page)


def _of_one_page(kinds: tuple[Layers, ...]) -> tuple[Layers, ...]:
    """Smaller pages take more tokens until they are as large; those that don't divide the largest are padded."""
    largest = max(kind.page for kind in kinds)
    return tuple(
        replace(kind, page=largest, block=kind.block * largest // kind.page, net=kind.net * largest // kind.page)
        if kind.kind is not Kind.STATE and largest % kind.page == 0
        else replace(kind, page=largest)
        for kind in kinds
    )
