"""SM60x: several clients at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Undecided, Verdict, check
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
        return _try(lambda: probe.chat(f"Say {word}", max_tokens=CHAT_TOKENS, **capability.thinking.off_fields).text)

    def continued(word: str) -> str | Unanswered:
        return _try(lambda: probe.complete(PATTERN.format(word=word), max_tokens=8)[0].content)

    ways = [asked] if capability.chats else []
    ways += [] if capability.lacks("completions") else [continued]
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
