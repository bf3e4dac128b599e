"""SM14x: answers end where they were told to."""

from collections import Counter

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Undecided, Verdict, check
from selfhost.smoke.probe import Probe

LONG_ASK = "What color is the sky on a clear day?"
COUNTING = "One, two, three, four, five, six,"
CUT_TOKENS = 4


@check(
    "SM140",
    "max_tokens and stop end the answer with the right finish_reason",
    group="answers",
    needs=("SM101",),
    abilities=("chat",),
)
def ends_as_told(probe: Probe, capability: Capability) -> Verdict:
    cut = probe.chat(LONG_ASK, max_tokens=CUT_TOKENS, **capability.thinking.off_fields)
    used = cut.usage.completion if cut.usage else None
    if used is not None and used > CUT_TOKENS:
        return Failed(what=f"max_tokens {CUT_TOKENS} gave {used} tokens")
    if used is not None and used < CUT_TOKENS:
        return Undecided(reason=f"the answer ended by itself after {used} tokens")
    if cut.finish != "length":
        return Failed(
            what=f"an answer cut by max_tokens has finish_reason `{cut.finish or 'null'}`, expected length",
            why="Clients continue or warn by this field; with it wrong a cut answer looks complete.",
        )
    return _stops(probe, capability)


def _stops(probe: Probe, capability: Capability) -> Verdict:
    """The stop string is one that this model is seen to say, so that any model can be judged."""
    full = _say(probe, capability, {})
    stop = stop_for(full.content)
    if not stop:
        return Undecided(reason="the model says too little to stop it in the middle")
    answer = _say(probe, capability, {"stop": [stop]})
    if stop in answer.content:
        return Failed(
            what=f"the stop string {stop!r} is in the answer",
            why="A stop string ends the answer before itself, unless include_stop_str_in_output is asked for.",
            evidence=answer.content[:120],
        )
    if answer.finish != "stop":
        if len(answer.content) >= len(full.content):
            return Undecided(reason="the same greedy prompt gave another text, so the stop string never came")
        return Failed(
            what=f"an answer ended by a stop string has finish_reason `{answer.finish or 'null'}`, expected stop"
        )
    return Passed()


class _Text:
    """Text and finish of either kind of request."""

    def __init__(self, content: str, finish: str) -> None:
        self.content, self.finish = content, finish


def _say(probe: Probe, capability: Capability, fields: dict[str, object]) -> _Text:
    """By raw completion, where no thinking can interfere; by chat on a server without it."""
    if not capability.lacks("completions"):
        answer, _ = probe.complete(COUNTING, max_tokens=24, **fields)
    else:
        answer = probe.chat(LONG_ASK, max_tokens=24, **capability.thinking.off_fields, **fields)
    return _Text(answer.content, answer.finish)


def stop_for(text: str) -> str:
    """The letter or mark that `text` repeats most, which does not begin it; empty when there is none."""
    body = text.strip()
    counts = Counter(character for character in body[2:] if character not in body[:2] and not character.isspace())
    return counts.most_common(1)[0][0] if counts else ""
