"""SM6xx: several clients at once, and clients that go away."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Undecided, Verdict, check
from selfhost.smoke.metrics import counter, running
from selfhost.smoke.probe import Probe, Unanswered

WORDS = ("apple", "river", "candle", "seven", "window", "tiger", "music", "blue")
CHAT_TOKENS = 24
PATTERN = (
    "The box holds one {word}. The bag holds one {word}. The cup holds one {word}. The jar holds one {word}. "
    "The pot holds one {word}. The tin holds one"
)
"""Any model that was trained on text goes on with the word, also one that follows no instruction."""
TRIES = 3
Say = Callable[[str], str | Unanswered]

LONG_TOKENS = 1024
DROPPED = 2
POLL_S = 0.05
SEEN_S = 2.0
FREED_S = 15.0


@check("SM600", "8 requests at once get their own answers", group="load", needs=("SM110",), budget_s=90)
def no_crosstalk(probe: Probe, capability: Capability) -> Verdict:
    """Each request makes the model say a word of its own, and another's word must never come back.

    Likeness to an answer got alone would not do: batches round differently, and near ties tip, also when healthy.
    """
    say = _way_to_say(probe, capability)
    if say is None:
        return Undecided(reason="this model can't be made to say a given word, so mixed-up answers would not show")
    for _ in range(TRIES):
        with ThreadPoolExecutor(len(WORDS)) as pool:
            answers = list(pool.map(say, WORDS))
        verdict = _own_words(dict(zip(WORDS, answers, strict=True)))
        if not isinstance(verdict, Undecided):
            return verdict
    return verdict


def _way_to_say(probe: Probe, capability: Capability) -> Say | None:
    """A way of asking by which the model, alone, says each of the words and none of the others."""

    def asked(word: str) -> str | Unanswered:
        return _try(lambda: probe.chat(f"Say {word}", max_tokens=CHAT_TOKENS, **capability.off_fields).text)

    def continued(word: str) -> str | Unanswered:
        return _try(lambda: probe.complete(PATTERN.format(word=word), max_tokens=8)[0].content)

    ways = [asked] if capability.lacks("completions") else [asked, continued]
    for way in ways:
        if all(_is_own(way(word), word) for word in WORDS):
            return way
    return None


def _is_own(answer: str | Unanswered, word: str) -> bool:
    return isinstance(answer, str) and word in answer.lower() and not _others(answer, word)


def _others(answer: str, word: str) -> list[str]:
    return [other for other in WORDS if other != word and other in answer.lower()]


def _own_words(answers: dict[str, str | Unanswered]) -> Verdict:
    missing = []
    for word, answer in answers.items():
        if isinstance(answer, Unanswered):
            return Failed(
                what=f"of 8 requests at once the one for `{word}` failed: {answer.what}", evidence=answer.body[:300]
            )
        others = _others(answer, word)
        if others:
            return Failed(
                what=f"of 8 requests at once the one for `{word}` got the answer to `{others[0]}`",
                why="Users would read each other's answers.",
                evidence=answer[:200],
            )
        missing += [] if word in answer.lower() else [word]
    if missing:
        return Undecided(reason=f"under load the model no longer says {', '.join(missing)}, nor another's word")
    return Passed()


def _try(ask: Callable[[], str]) -> str | Unanswered:
    try:
        return ask()
    except Unanswered as error:
        return error


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
    for _ in range(DROPPED):
        with probe.client.stream("chat/completions", body, timeout_s=probe.clock.left_s()) as answer:
            if answer.status != 200:
                return Undecided(reason=f"a long stream was answered {answer.status}")
            chunks = answer.chunks()
            next(chunks, b"")
            next(chunks, b"")
            seen = max(seen, _until(probe, lambda now: now > before, within_s=SEEN_S))
    left = _until(probe, lambda now: now <= before, within_s=FREED_S)
    made = counter(probe, "generation_tokens_total") - generated
    if left >= before + DROPPED:
        return Failed(
            what=f"{DROPPED} dropped requests still run {FREED_S:.0f} s after their clients left",
            why="Each such client takes one of the engine's slots until its answer is complete; a few block everyone.",
            fix=("behind a proxy, let it close the connection to the engine when the client goes",),
        )
    if left > before:
        return Undecided(reason="one request still runs, which may be somebody else's")
    if seen <= before or (generated >= 0 and made >= DROPPED * tokens):
        return Undecided(reason="the engine was done before its clients could leave")
    return Passed(note=f"{made} of {DROPPED * tokens} tokens were made" if generated >= 0 else "")


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
