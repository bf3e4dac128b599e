"""SM3xx: thinking is where clients look for it, and off means off."""

from selfhost.shapes.service import ReasoningMode
from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Skipped, Undecided, Verdict, check
from selfhost.smoke.exhausted import exhausted
from selfhost.smoke.probe import Probe
from selfhost.smoke.thinking import THINKING_ASKS
from selfhost.smoke.wire import Answer

ASK = THINKING_ASKS[0]
BUDGET_SLACK_TOKENS = 16
"""What a parser's closing words may add to a budget."""
NO_ANSWER = "Clients show message.content: with nothing in it the endpoint looks broken."
MISMATCH = (
    "The parser and the chat template disagree about the mode: one of them was told that the model thinks, the other "
    "that it does not."
)


@check(
    "SM300",
    "thinking is where it should be",
    group="reasoning",
    needs=("SM101", "SM110"),
    budget_s=180,
    abilities=("chat",),
)
def thinking_in_its_place(probe: Probe, capability: Capability) -> Verdict:
    """Asked with thinking on, and off; off also as a stream, because parsers take another path there."""
    if not capability.thinking.can_think:
        return _never_thinks(probe, capability)
    thinking = capability.thinking.example
    if thinking is not None:
        verdict = _on(thinking[1], probe)
        if not isinstance(verdict, Passed):
            return verdict
    if not capability.thinking.off_fields and thinking is not None:
        return Passed(note="on; this model can't be switched")
    ask = _ask(capability)
    plain = probe.chat(ask, **capability.thinking.off_fields, **capability.room())
    streamed = probe.stream(ask, **capability.thinking.off_fields, **capability.room()).answer
    for answer, how in ((plain, ""), (streamed, " as a stream")):
        problem = _off(answer, how)
        if problem is not None:
            return problem
    return Passed(note="off" if thinking is None else "on and off")


def _never_thinks(probe: Probe, capability: Capability) -> Verdict:
    answer = probe.chat(ASK, max_tokens=24, **capability.thinking.off_fields)
    return _off(answer, "") or Passed(note="this model does not think, and nothing is taken for thinking")


def _on(answer: Answer, probe: Probe) -> Verdict:
    if answer.tags:
        return Failed(
            what=f"thinking leaks into message.content ({answer.tags[0]})",
            why="The server has no reasoning parser for this model's tags, or the wrong one.",
            evidence=answer.content[:200],
            fix=("start it with the family's parser: --reasoning-parser",),
        )
    if answer.exhausted:
        return Undecided(reason="all tokens went into thinking, twice", finding=exhausted(answer, probe.endpoint))
    if not answer.reasoning.strip():
        return Failed(what="thinking was switched on and there is none", why=MISMATCH, evidence=answer.content[:200])
    if not answer.content.strip():
        return Failed(
            what=f"the whole answer is taken for thinking: content is empty, finish_reason `{answer.finish}`",
            why=f"{NO_ANSWER} {MISMATCH}",
            evidence=answer.reasoning[:200],
        )
    counted = answer.usage.reasoning if answer.usage else None
    return Passed(note="" if counted is None else f"{counted} tokens of thinking")


def _off(answer: Answer, how: str) -> Failed | None:
    if answer.tags:
        return Failed(
            what=f"thinking is off, and its tags are in message.content{how} ({answer.tags[0]})",
            why=MISMATCH,
            evidence=answer.content[:200],
        )
    if answer.reasoning.strip() and answer.content.strip():
        return Failed(
            what=f"thinking is off, and the model thinks{how}",
            why="The switch does not reach the chat template: each family reads another key.",
            evidence=answer.reasoning[:200],
        )
    if answer.reasoning.strip():
        return Failed(
            what=f"thinking is off, and the whole answer is taken for thinking{how}: content is empty",
            why=f"{NO_ANSWER} {MISMATCH}",
            evidence=answer.reasoning[:200],
        )
    if not answer.content.strip():
        return Failed(what=f"thinking is off, and the answer is empty{how} (finish_reason `{answer.finish}`)")
    return None


@check(
    "SM301",
    "a client that sends nothing gets the configured mode",
    group="reasoning",
    needs=("SM300",),
    budget_s=120,
    abilities=("chat",),
)
def default_as_configured(probe: Probe, capability: Capability) -> Verdict:
    plan = capability.thinking.plan
    if plan is None:
        return Skipped(reason="which mode was configured is not known for a foreign address")
    if not plan.can_think:
        return Skipped(reason="this model does not think")
    if plan.unsent != "served" and plan.mode in (ReasoningMode.ON, ReasoningMode.OFF):
        return Skipped(reason=f"this server can't set a default; {plan.mode.value} holds {plan.unsent}")
    wanted = plan.mode is not ReasoningMode.OFF
    answer = probe.chat(_ask(capability), **capability.room())
    thinks = bool(answer.reasoning.strip()) or bool(answer.tags)
    if thinks is wanted and (answer.content.strip() or answer.exhausted):
        return Passed(note="thinks" if wanted else "does not think")
    if thinks is wanted:
        return Failed(
            what=f"a client that sends nothing gets no content (finish_reason `{answer.finish}`)", why=NO_ANSWER
        )
    return Failed(
        what=f"a client that sends nothing gets thinking {_word(thinks)}, configured is {_word(wanted)}",
        why="Most clients send no switch; the server's default is what they get.",
        evidence=answer.text[:200],
        fix=("set the default on the server: --default-chat-template-kwargs",),
    )


@check(
    "SM310",
    "an exhausted budget can be told from an empty answer",
    group="reasoning",
    needs=("SM300",),
    budget_s=120,
    abilities=("chat",),
)
def exhausted_is_explained(probe: Probe, capability: Capability) -> Verdict:
    """Thinking is cut in its middle: the first half of what the same greedy question needs."""
    if capability.thinking.example is None:
        return Skipped(
            reason="thinking is off for good" if capability.thinking.can_think else "this model does not think"
        )
    ask, whole = capability.thinking.example
    need = _thinking_tokens(whole)
    if need < 4:
        return Undecided(reason=f"it thinks for {need} tokens only, which can't be cut in the middle")
    cut = probe.chat(ask, **capability.thinking.on_fields, max_tokens=max(2, min(16, need // 2)))
    if cut.tags:
        return Failed(
            what=f"thinking cut by max_tokens leaks into message.content ({cut.tags[0]})", evidence=cut.content[:200]
        )
    if cut.finish != "length":
        return Failed(
            what=f"an answer cut inside its thinking has finish_reason `{cut.finish or 'null'}`, expected length",
            why=f"{NO_ANSWER} By finish_reason alone can a client tell a spent budget from a broken server.",
        )
    return (
        _misplaced(cut)
        or _budget(ask, probe, capability)
        or Passed(note="finish length, thinking, no content", finding=exhausted(cut, probe.endpoint, on_purpose=True))
    )


def _misplaced(cut: Answer) -> Failed | None:
    """Where the thinking of a cut answer stands, when it is not where clients look for it."""
    if cut.content.strip():
        return Failed(
            what="thinking that was cut stands in message.content",
            why="Without its closing tag the parser took thinking for the answer.",
            evidence=cut.content[:200],
        )
    if not cut.reasoning.strip():
        return Failed(
            what="an answer cut inside its thinking shows neither thinking nor content",
            why="The tokens were made and paid for; a client sees nothing of them.",
        )
    return None


def _budget(ask: str, probe: Probe, capability: Capability) -> Failed | None:
    """The planned budget, when there is one, as a client sends it."""
    plan = capability.thinking.plan
    if plan is None or plan.mode is not ReasoningMode.BUDGET or plan.budget_tokens is None or not plan.client_extras:
        return None
    answer = probe.chat(ask, **plan.client_extras, **capability.room())
    if not answer.content.strip():
        return Failed(what=f"under a budget of {plan.budget_tokens} tokens the answer is empty", why=NO_ANSWER)
    used = answer.usage.reasoning if answer.usage else None
    if used is not None and used > plan.budget_tokens + BUDGET_SLACK_TOKENS:
        return Failed(
            what=f"a budget of {plan.budget_tokens} tokens of thinking gave {used}",
            why="The engine accepted the field and did not act on it.",
        )
    return None


def _ask(capability: Capability) -> str:
    return capability.thinking.example[0] if capability.thinking.example else capability.thinking.own_ask or ASK


def _thinking_tokens(answer: Answer) -> int:
    """As counted by the server; where it doesn't, by its share of the text."""
    if answer.usage is None:
        return len(answer.reasoning.split())
    if answer.usage.reasoning:
        return answer.usage.reasoning
    share = len(answer.reasoning) / max(1, len(answer.text))
    return int(answer.usage.completion * share)


def _word(thinks: bool) -> str:  # noqa: FBT001 - the one thing it is about
    return "on" if thinks else "off"
