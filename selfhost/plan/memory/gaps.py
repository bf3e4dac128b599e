"""Why a token costs more than its own bytes: the parts, which add up."""

from collections.abc import Iterator

from selfhost.plan.memory.groups import Kind, Layers
from selfhost.plan.memory.kv_vllm import BY_REQUEST_SINCE, VllmCache
from selfhost.plan.memory.question import Gap

ROUNDING, STATES, PADDING, PAGES, WINDOWS = (
    "block rounding",
    "state pages",
    "padding layers",
    "padded pages",
    "windowed layers",
)
_NOTHING = 1e-9
FLOOR, FLOOR_ON_TOP = "floor of blocks", "floor of blocks, on the parts above"


def raw_per_token(cache: VllmCache) -> float:
    """Bytes of one token in the layers that keep all of them; in the windowed ones where there are no others."""
    return sum(kind.count * kind.net / kind.block for kind in _growing(cache)) * _scale(cache)


def gaps_of(cache: VllmCache, available: int, length: int) -> tuple[Gap, ...]:
    """Shares of the raw bytes, for a request of `length` tokens; up to 0.19 for one block of each group."""
    raw = raw_per_token(cache)
    blocks = cache.blocks(available)
    tokens = cache.tokens(blocks, length)
    if not raw or not tokens:
        return ()
    found: dict[str, float] = {}
    for name, share in _shares(cache, raw, length):
        found[name] = found.get(name, 0.0) + share
    found[FLOOR] = available / (blocks * cache.block_bytes) - 1
    found[FLOOR_ON_TOP] = available / tokens / raw - 1 - sum(found.values())
    return tuple(Gap(name=name, share=share) for name, share in found.items() if abs(share) > _NOTHING)


def _shares(cache: VllmCache, raw: float, length: int) -> Iterator[tuple[str, float]]:
    grouping, growing = cache.grouping, _growing(cache)
    for kind in grouping.kinds:
        blocks = kind.blocks(length, cache.in_flight) / length
        if cache.version < BY_REQUEST_SINCE:
            blocks = 1 / grouping.smallest_block
        slots = kind.count if grouping.together else grouping.size * grouping.groups_of(kind)
        page = kind.page if grouping.together else grouping.page
        unit = blocks * _scale(cache) / raw
        yield PADDING, (slots - kind.count) * page * unit
        if kind in growing:
            yield PAGES, kind.count * (page - kind.net) * unit
            yield (
                WINDOWS if kind.kind is not Kind.FULL else ROUNDING,
                kind.count * kind.net * (unit - _scale(cache) / kind.block / raw),
            )
        else:
            yield STATES if kind.kind is Kind.STATE else WINDOWS, kind.count * page * unit


def _growing(cache: VllmCache) -> tuple[Layers, ...]:
    full = tuple(kind for kind in cache.grouping.kinds if kind.kind is Kind.FULL)
    return full or tuple(kind for kind in cache.grouping.kinds if kind.kind is not Kind.STATE)


def _scale(cache: VllmCache) -> float:
    """The share of all layers that a pipeline stage holds."""
    return cache.block_bytes / cache.grouping.block_bytes
