"""How fast decoding can be at best: every token reads the active weights and its own KV cache once.

A lower bound on time, never a prediction of a rate. Bytes and seconds, per rank.
"""

from dataclasses import dataclass

from selfhost.core.table import read_table
from selfhost.shapes.geometry import Geometry


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one rank reads from its memory for one step of decoding. Bytes."""

    dense: int
    """Read once a step, whatever the batch: attention, dense MLP, shared experts, router, norms, output head."""
    experts: int
    """All routed experts on this rank; 0 in a dense model."""
    count: int = 0
    top_k: int = 0
    kv_per_token: float = 0.0

    def touched(self, batch: int) -> float:
        """Share of the routed experts that a batch of `batch` tokens reads, if each picks its own `top_k` of `count`.

        count · (1 - (1 - k/count)^batch) experts are expected to be touched at least once.
        """
        if not self.count:
            return 0.0
        return float(1 - (1 - self.top_k / self.count) ** batch)

    def weights(self, batch: int = 1) -> int:
        return self.dense + int(self.experts * self.touched(batch))

    def bytes(self, *, batch: int = 1, context: int = 0) -> int:
        """Of one step: the active weights, and the cache of `batch` requests of `context` tokens each."""
        return self.weights(batch) + int(batch * context * self.kv_per_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The share of the data sheet's bandwidth that engines were seen to reach."""

    low: float
    high: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Least time of one step, in seconds, for both ends of the assumed share of the sheet's bandwidth."""

    batch: int
    context: int
    read: int
    best: float
    worst: float

    @property
    def rates(self) -> tuple[float, float]:
        """Tokens per second of one request, lower end first."""
        return 1 / self.worst, 1 / self.best


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A rate that somebody claims for one request at a time, and the bandwidth that it implies (bytes per second)."""

    rate: float
    implied: float
    share: float | None
    """Of the sheet; None where the sheet is unknown."""

    @property
    def possible(self) -> bool | None:
        """False above the data sheet; None when nobody knows the sheet."""
        return None if self.share is None else self.share <= 1


def expert_bytes(geometry: Geometry, *, per_parameter: float) -> int:
    """All routed experts of all sparse layers: three matrices of hidden × inter each."""
    experts = geometry.experts
    if experts is None:
        return 0
    layers = experts.layers or geometry.layers
    return int(layers * experts.count * 3 * geometry.hidden * experts.inter * per_parameter)


def routed_bytes(geometry: Geometry, *, per_parameter: float) -> int:
    """Of those, what one token reads: `top_k` experts in each sparse layer."""
    experts = geometry.experts
    if experts is None:
        return 0
    layers = experts.layers or geometry.layers
    return int(layers * experts.top_k * 3 * geometry.hidden * experts.inter * per_parameter)


def traffic(
    geometry: Geometry,
    *,
    weights: int,
    expert_parameter: float,
    kv_per_token: float,
    ranks: int = 1,
) -> Traffic:
    """From the resident `weights` of one rank: without what a token does not read.

    Left out: the input embedding (one row is read), per-layer embeddings, vision and audio towers. `ranks` are those
    that share one copy of the weights.
    """
    idle = geometry.layer_embeddings * 2 + (geometry.vision if geometry.vision > 1 else 0) * 2
    if not geometry.tie:
        idle += geometry.vocab * geometry.hidden * 2
    experts = min(weights, expert_bytes(geometry, per_parameter=expert_parameter) // ranks)
    dense = max(0, weights - experts - idle // ranks)
    known = geometry.experts
    return Traffic(
        dense=dense,
        experts=experts,
        count=known.count if known else 0,
        top_k=known.top_k if known else 0,
        kv_per_token=kv_per_token,
    )


def reached(*, unified: bool) -> Reached:
    """The assumption, from the table."""
    row = read_table("selfhost.plan", "roofline.toml")["unified" if unified else "discrete"]
    return Reached(low=row["low"], high=row["high"], source=row["source"])


def floor(read: Traffic, *, bandwidth: float, share: Reached, batch: int = 1, context: int = 0) -> Floor:
    """`bandwidth` of the data sheet in bytes per second."""
    total = read.bytes(batch=batch, context=context)
    return Floor(
        batch=batch,
        context=context,
        read=total,
        best=total / (bandwidth * share.high),
        worst=total / (bandwidth * share.low),
    )


def claim(rate: float, *, read: int, bandwidth: float | None) -> Claim:
    """`read` bytes are read for each of `rate` tokens per second."""
    implied = rate * read
    return Claim(rate=rate, implied=implied, share=implied / bandwidth if bandwidth else None)
