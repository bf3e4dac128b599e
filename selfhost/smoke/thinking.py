"""How this model thinks, and how it is switched: as planned for a server of ours, else measured."""

from collections.abc import Callable
from functools import cached_property

from selfhost.shapes.plan import ReasoningPlan
from selfhost.shapes.service import ReasoningMode
from selfhost.smoke.probe import Fields, Probe, Unanswered
from selfhost.smoke.probes_file import brought
from selfhost.smoke.wire import Answer

THINKING_ASKS = ("Which is larger, 9.11 or 9.8?", "Say hello", "Think 20 steps")

_BOTH_KEYS_OFF: Fields = {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}
_BOTH_KEYS_ON: Fields = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
_MEASURING_TOKENS = 48


class Thinking:
    """Answers are cached for one run of smoke. `room` gives the fields that leave room for thinking."""

    def __init__(self, probe: Probe, *, room: Callable[[], Fields]) -> None:
        self._probe = probe
        self._room = room

    @property
    def plan(self) -> ReasoningPlan | None:
        return self._probe.endpoint.reasoning

    @cached_property
    def off_fields(self) -> Fields:
        """Request fields that switch thinking off; empty when that is impossible or needless."""
        if self.plan is not None:
            return self.plan.request_off if self.plan.can_switch else {}
        if not self.can_think:
            return {}
        answer = self._try(_BOTH_KEYS_OFF)
        return _BOTH_KEYS_OFF if answer is not None and not answer.reasoning and answer.content else {}

    @cached_property
    def on_fields(self) -> Fields:
        """Request fields that switch thinking on; empty when the model always thinks, or never."""
        if self.plan is not None:
            return self.plan.request_on if self.plan.can_switch else {}
        return {} if self._thinks_unasked else _BOTH_KEYS_ON

    @cached_property
    def can_think(self) -> bool:
        if not self._probe.endpoint.chat:
            return False
        if self.plan is not None:
            return self.plan.can_think
        if self._thinks_unasked:
            return True
        answer = self._try(_BOTH_KEYS_ON)
        return answer is not None and _thought(answer)

    @cached_property
    def quiet(self) -> bool:
        """Whether an answer asked for with `off_fields` comes without thinking."""
        if not self.can_think or self.off_fields:
            return True
        return self.plan is not None and self.plan.mode is ReasoningMode.OFF

    @cached_property
    def _thinks_unasked(self) -> bool:
        answer = self._try({})
        return answer is not None and _thought(answer)

    def _try(self, fields: Fields) -> Answer | None:
        try:
            return self._probe.chat("Say hello", max_tokens=_MEASURING_TOKENS, **fields)
        except Unanswered:
            return None  # a server that refuses the switch does not have it

    @cached_property
    def example(self) -> tuple[str, Answer] | None:
        """A question that makes this model think, and the whole answer; None when it can't be made to think here.

        A model that brings probes is asked in its own language. Of the others most think about numbers, toys may not.
        """
        if not self.can_think:
            return None
        if not self.on_fields and self.plan is not None and self.plan.mode is ReasoningMode.OFF:
            return None
        asks = (self.own_ask,) if self.own_ask else THINKING_ASKS
        answers = []
        for ask in asks:
            answer = self._think(ask)
            if answer.reasoning.strip() and answer.content.strip():
                return ask, answer
            answers.append((ask, answer))
        return answers[0]

    @cached_property
    def own_ask(self) -> str:
        own = brought(self._probe.endpoint.model_dir)
        return own.questions[0].ask if own is not None and own.questions else ""

    def _think(self, ask: str) -> Answer:
        answer = self._probe.chat(ask, **self.on_fields, **self._room())
        if answer.exhausted:
            # Greedy decoding can turn a thinking model in circles; its own sampling is what it is meant to run with.
            answer = self._probe.chat(ask, **self.on_fields, **self._room(), temperature=None)
        return answer


def _thought(answer: Answer) -> bool:
    return bool(answer.reasoning.strip()) or answer.content.lstrip().startswith(("<think>", "[THINK]", "◁think▷"))
