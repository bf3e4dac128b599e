"""SM2xx: streamed answers are framed right and say the same."""

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Undecided, Verdict, check
from selfhost.smoke.probe import Probe, Unanswered
from selfhost.smoke.wire import Answer, Streamed

ASK = "What color is the sky on a clear day?"
TOKENS = 24
TRIES = 3
LETTERS = "naïve café, Grüße, Ελλάδα, 漢字, 🙂🚀"
"""Characters of two, three and four bytes; small vocabularies cut them into several tokens."""


@check(
    "SM200", "the stream is framed right: chunks, usage, [DONE]", group="stream", needs=("SM101",), abilities=("chat",)
)
def framed_right(probe: Probe, capability: Capability) -> Verdict:
    streamed = probe.stream(ASK, max_tokens=TOKENS, **capability.thinking.off_fields)
    problems = list(streamed.problems)
    answer = streamed.answer
    if answer.usage is not None and answer.usage.total != answer.usage.prompt + answer.usage.completion:
        problems.append("the usage chunk does not add up")
    if problems:
        return Failed(
            what=problems[0],
            why="Clients read event by event; the official ones wait for [DONE] and count by the usage chunk.",
            evidence="\n".join(problems[1:4]),
            fix=("without a proxy in between the fault is the engine's; behind one, switch its buffering off",),
        )
    if not answer.text.strip():
        return Undecided(reason="framed right, but the model says nothing to this question")
    return Passed(note=f"{len(streamed.pieces)} pieces")


@check(
    "SM201",
    "streamed text equals unstreamed text at temperature 0",
    group="stream",
    needs=("SM200",),
    budget_s=60,
    abilities=("chat",),
)
def says_the_same(probe: Probe, capability: Capability) -> Verdict:
    """Rounding may tip a near tie between two runs: one pair that agrees is enough, only a steady difference counts."""
    fields = {"max_tokens": TOKENS, **capability.thinking.off_fields}
    plain: list[tuple[str, str]] = []
    streams: list[tuple[str, str]] = []
    for _ in range(TRIES):
        plain.append(_parts(probe.chat(ASK, **fields)))
        streams.append(_parts(probe.stream(ASK, **fields).answer))
        if set(plain) & set(streams):
            return Passed(note="" if len(plain) == 1 else f"in try {len(plain)}")
    if len(set(plain)) > 1:
        return Undecided(reason="the same greedy prompt gives different texts even unstreamed")
    return Failed(
        what="the streamed text is not the unstreamed text of the same greedy prompt",
        why="Streams take another path through detokenizer and parsers; one of the two loses or changes text.",
        evidence=f"unstreamed {plain[0]!r}\nstreamed   {streams[0]!r}",
    )


def _parts(answer: Answer) -> tuple[str, str]:
    return answer.reasoning, answer.content


@check(
    "SM202",
    "characters survive the borders of chunks (UTF-8)",
    group="stream",
    needs=("SM200",),
    budget_s=60,
    abilities=("chat",),
)
def characters_survive(probe: Probe, capability: Capability) -> Verdict:
    """The text is forced where the engine can, so that any model says it; else the model is asked to repeat it."""
    whole, streamed = _forced(probe, capability) or _repeated(probe, capability)
    text, pieces = streamed.answer.said, len(streamed.pieces)
    if "\ufffd" in text or (LETTERS not in text and _skeleton(text) == _skeleton(LETTERS)):
        return Failed(
            what="characters of several bytes are damaged in the stream",
            why="A character whose bytes come in two tokens must be held back until it is whole.",
            evidence=f"sent {LETTERS!r}\ngot  {text!r}",
        )
    if LETTERS in text:
        return Passed(note=f"{pieces} pieces")
    if whole.strip() and whole == text and not text.isascii():
        return Passed(note=f"the model said other words, the same as unstreamed, in {pieces} pieces")
    return Undecided(reason="the engine can't be made to say such characters, and the model does not repeat them")


def _forced(probe: Probe, capability: Capability) -> tuple[str, Streamed] | None:
    """By vLLM's structured outputs with a single choice."""
    fields = {"max_tokens": 256, "structured_outputs": {"choice": [LETTERS]}, **capability.thinking.off_fields}
    try:
        streamed = probe.stream("Say hello", **fields)
    except (Unanswered, ConnectionError):
        return None  # an engine without structured outputs: ask the model instead
    forced = _skeleton(streamed.answer.said) == _skeleton(LETTERS)
    return (LETTERS, streamed) if forced and not streamed.problems else None


def _repeated(probe: Probe, capability: Capability) -> tuple[str, Streamed]:
    ask = f"Repeat exactly: {LETTERS}"
    fields = capability.answer_fields(short=256)
    return probe.chat(ask, **fields).said, probe.stream(ask, **fields)


def _skeleton(text: str) -> str:
    """The ASCII letters and marks: they stay when other characters are damaged."""
    return "".join(character for character in text if character.isascii())
