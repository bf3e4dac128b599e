"""SM6xx: several clients at once, and clients that go away."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Undecided, Verdict, check
from selfhost.smoke.metrics import counter, running
from selfhost.smoke.probe import Probe, Unanswered

WORDS = ("apple", "river", "candle", "seven", "window", "tiger", "music", "blue")
CLEARLY = 0.2
"""How much more alike another's answer must be before two are taken for mixed up."""
LONG_TOKENS = 1024
POLL_S = 0.05
SEEN_S = 5.0
FREED_S = 15.0


@check("SM600", "8 requests at once get their own answers", group="load", needs=("SM110",), budget_s=90)
def no_crosstalk(probe: Probe, capability: Capability) -> Verdict:
    """Each answer must be most like the one that the same request got alone; batches may round differently."""
    asks = [f"Say {word}" for word in WORDS]
    for tokens in (16, 48):
        fields = {"max_tokens": tokens, **capability.off_fields}
        alone = [probe.chat(ask, **fields).text for ask in asks]
        if len(set(alone)) == len(alone):
            break
    else:
        return Undecided(reason="the model answers different requests alike, so mixed-up answers would not show")

    def ask_one(ask: str) -> str | Unanswered:
        try:
            return probe.chat(ask, **fields).text
        except Unanswered as error:
            return error

    with ThreadPoolExecutor(len(asks)) as pool:
        together = list(pool.map(ask_one, asks))
    for ask, answer in zip(asks, together, strict=True):
        if isinstance(answer, Unanswered):
            return Failed(what=f"of 8 requests at once `{ask}` failed: {answer.what}", evidence=answer.body[:300])
    texts = [answer for answer in together if isinstance(answer, str)]
    return _compare(asks, alone, texts)


def _compare(asks: list[str], alone: list[str], texts: list[str]) -> Verdict:
    for place, text in enumerate(texts):
        likeness = [SequenceMatcher(None, text, other, autojunk=False).ratio() for other in alone]
        nearest = max(range(len(alone)), key=likeness.__getitem__)
        if likeness[nearest] > likeness[place] + CLEARLY:
            return Failed(
                what=f"of 8 requests at once `{asks[place]}` got the answer to `{asks[nearest]}`",
                why="Users would read each other's answers.",
                evidence=f"alone {alone[place]!r}\nat once {text!r}",
            )
    same = sum(text == other for text, other in zip(texts, alone, strict=True))
    return Passed(note=f"{same} of 8 word for word as alone")


@check(
    "SM610",
    "a client that goes away frees its slot",
    group="load",
    needs=("SM200",),
    abilities=("metrics",),
    budget_s=60,
)
def slot_is_freed(probe: Probe, capability: Capability) -> Verdict:
    """Two long streams are dropped; the engine must stop them well before their end."""
    before = _settled(probe)
    if before is None:
        return Undecided(reason="other requests are running, so a freed slot would not show")
    tokens = min(LONG_TOKENS, (capability.context or LONG_TOKENS) // 2)
    generated = counter(probe, "generation_tokens_total")
    body = probe.chat_body(
        "Count from one to one thousand.", {"max_tokens": tokens, "ignore_eos": True, "stream": True}
    )
    seen = 0
    for _ in range(2):
        with probe.client.stream("chat/completions", body, timeout_s=probe.clock.left_s()) as answer:
            if answer.status != 200:
                return Undecided(reason=f"a long stream was answered {answer.status}")
            chunks = answer.chunks()
            next(chunks, b"")
            next(chunks, b"")
            seen = max(seen, _until(probe, lambda now: now > before, within_s=SEEN_S))
    left = _until(probe, lambda now: now <= before, within_s=FREED_S)
    made = counter(probe, "generation_tokens_total") - generated
    if left > before:
        return Failed(
            what=f"{left - before} of 2 dropped requests still run {FREED_S:.0f} s after their clients left",
            why="Each such client takes one of the engine's slots until its answer is complete; a few block everyone.",
            fix=("behind a proxy, let it close the connection to the engine when the client goes",),
        )
    if seen <= before or (generated >= 0 and made >= 2 * tokens):
        return Undecided(reason="the engine was done before its clients could leave")
    return Passed(note=f"{made} of {2 * tokens} tokens were made" if generated >= 0 else "")


def _settled(probe: Probe) -> int | None:
    """How many requests run when smoke sends none; None when that number moves."""
    first = running(probe)
    time.sleep(POLL_S)
    if first == 0:
        return 0
    left = _until(probe, lambda now: now == 0, within_s=SEEN_S)
    return 0 if left == 0 else None


def _until(probe: Probe, holds: Callable[[int], bool], *, within_s: float) -> int:
    """The number of running requests as soon as it `holds`, or when the time is up."""
    deadline = time.monotonic() + within_s
    while True:
        now = running(probe)
        if holds(now) or time.monotonic() >= deadline:
            return now
        time.sleep(POLL_S)
