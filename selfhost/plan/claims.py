"""How fast it can be at best, and what a claimed rate implies: the roofline of one plan, in numbers and words."""

import re
from dataclasses import dataclass

from selfhost.core.errors import InputError
from selfhost.plan.memory.question import Question
from selfhost.plan.memory.weights import expert_padding
from selfhost.plan.roofline import Claim, Floor, Reached, Traffic, claim, floor, reached, traffic
from selfhost.shapes.plan import Verdict

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:tok(?:en)?s?(?:/s|ps)?|t/s|tps)?", re.IGNORECASE)
BATCHES = (1, 8, 32)
"""Requests at once whose floor is shown; a batch above the plan's concurrency is left out."""
PROMPT_TOKENS = 2048
"""Context at which the floor is shown, or the plan's own where that is shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """`bandwidth` of the data sheet in bytes per second, per rank; None where no row knows the card."""

    traffic: Traffic
    bandwidth: float | None
    share: Reached
    floors: tuple[Floor, ...]
    claim: Claim | None = None


def parse_rate(text: str) -> float:
    """`14tok/s`, `14`, `14.5 t/s` → tokens per second. Raises InputError."""
    found = _RATE.fullmatch(text.strip())
    rate = float(found[1]) if found else 0.0
    if not found or not 0 < rate < 1e6:
        raise InputError(
            f"`--claim {text}` is not a rate",
            why="It is tokens per second of one request at a time.",
            fix=("for instance: --claim 14tok/s",),
            id="CF032",
        )
    return rate


def speed_of(
    question: Question, *, weights: int, kv_per_token: float, expert_parameter: float, bandwidth: float | None,
    claimed: float | None = None,
) -> Speed:  # fmt: skip
    """The floor of decoding for this plan; `weights` are resident on one rank."""
    spread = question.spread
    if question.weights.scheme == "mxfp4":
        expert_parameter *= expert_padding(question.geometry)  # what is stored is what is read
    read = traffic(
        question.geometry,
        weights=weights,
        expert_parameter=expert_parameter,
        kv_per_token=kv_per_token,
        ranks=spread.tensor * spread.pipeline,
    )
    share = reached(unified=question.room.unified)
    context = min(PROMPT_TOKENS, question.context or PROMPT_TOKENS)
    batches = [batch for batch in BATCHES if batch <= (question.max_seqs or 1)] or [1]
    # A pipeline's stages read one after the other: the whole model is read for each token.
    floors = (
        tuple(
            floor(read, bandwidth=bandwidth / spread.pipeline, share=share, batch=batch, context=context)
            for batch in batches
        )
        if bandwidth
        else ()
    )
    once = read.bytes(batch=1, context=0) * spread.pipeline
    said = (
        claim(claimed, read=once * spread.tensor, bandwidth=(bandwidth or 0) * spread.tensor or None)
        if claimed
        else None
    )
    return Speed(traffic=read, bandwidth=bandwidth, share=share, floors=floors, claim=said)


def floor_words(one: Floor, share: Reached, *, bandwidth: float, ranks: int = 1, sparse: bool = False) -> str:
    """All axes on one line, because a rate without them says nothing.

    A batch of a sparse model has no bound: requests that are alike share experts, and read fewer than is assumed.
    """
    low, high = one.rates
    shared = sparse and one.batch > 1
    bound = "about" if shared else "at most"
    return (
        f"{bound} {low:.0f} to {high:.0f} tok/s for each request, {one.best * 1000:.1f} to {one.worst * 1000:.1f} ms a "
        f"token · C={one.batch}, ISL {one.context:,}, OSL 1, nothing cached · estimated, {share.low:.0%} to "
        f"{share.high:.0%} of {bandwidth / 1e9:,.0f} GB/s{' each, links not counted' if ranks > 1 else ''}"
        f"{', if each request picks its own experts' if shared else ''}"
    )


def claim_words(said: Claim, read: int) -> str:
    """What the claim implies, and whether the sheet allows it."""
    head = f"{said.rate:g} tok/s at C=1 would read {said.implied / 1e9:,.0f} GB/s ({read / 1e9:.2f} GB a token)"
    if said.share is None:
        return f"{head}; the bandwidth of this device is in no table"
    if said.share > 1:
        return f"{head}, {said.share:.0%} of the data sheet: not possible without speculation"
    return f"{head}, {said.share:.0%} of the data sheet"


def possible(said: Claim | None) -> Verdict | None:
    """As a verdict for the exit code; None without a claim."""
    if said is None or said.possible is None:
        return None
    return Verdict.FITS if said.possible else Verdict.DOES_NOT_FIT
