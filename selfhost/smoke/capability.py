"""What this server and this model can do, found out by asking, never assumed from a name. Each is measured once."""

from functools import cached_property

from selfhost.shapes.plan import ReasoningPlan
from selfhost.shapes.service import ReasoningMode
from selfhost.smoke.probe import Fields, Probe, Unanswered
from selfhost.smoke.prose import brought
from selfhost.smoke.wire import Answer

GENEROUS_TOKENS = 2048
"""Room for thinking; probes with a few hundred tokens have flagged healthy reasoning models as down."""

THINKING_ASKS = ("Which is larger, 9.11 or 9.8?", "Say hello", "Think 20 steps")

_BOTH_KEYS_OFF: Fields = {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}
_BOTH_KEYS_ON: Fields = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
_MEASURING_TOKENS = 48


class Capability:
    """Answers are cached for one run of smoke."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def lacks(self, ability: str) -> str:
        """Empty when the server has `ability`, else the reason why a check that needs it can't run."""
        return {"tokenize": self._no_tokenize, "metrics": self._no_metrics, "completions": self._no_completions}[
            ability
        ]

    @cached_property
    def context(self) -> int | None:
        """Tokens of prompt and answer together: as planned, else as /v1/models says; None when nobody says."""
        if self._probe.endpoint.context:
            return self._probe.endpoint.context
        body = self._probe.get("models").json
        rows = body.get("data") if isinstance(body, dict) else None
        for row in rows or ():
            if row.get("id") == self._probe.endpoint.model and isinstance(row.get("max_model_len"), int):
                return int(row["max_model_len"])
        return None

    @cached_property
    def _no_tokenize(self) -> str:
        reply = self._probe.post(f"{self._probe.root}/tokenize", {"model": self._probe.endpoint.model, "prompt": "a b"})
        known = reply.ok and isinstance(reply.json, dict) and isinstance(reply.json.get("tokens"), list)
        return "" if known else f"the server has no /tokenize (HTTP {reply.status})"

    @cached_property
    def _no_metrics(self) -> str:
        reply = self._probe.get(f"{self._probe.root}/metrics")
        known = reply.ok and ("num_requests_running" in reply.text or "num_running_reqs" in reply.text)
        return "" if known else f"/metrics does not say how many requests run (HTTP {reply.status})"

    @cached_property
    def _no_completions(self) -> str:
        try:
            self._probe.complete("One, two, three,", max_tokens=1)
        except Unanswered as error:
            return f"the server has no /v1/completions ({error.what})"
        return ""

    # ---- thinking

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
    def thinking(self) -> tuple[str, Answer] | None:
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
        answer = self._probe.chat(ask, **self.on_fields, **self.room())
        if answer.exhausted:
            # Greedy decoding can turn a thinking model in circles; its own sampling is what it is meant to run with.
            answer = self._probe.chat(ask, **self.on_fields, **self.room(), temperature=None)
        return answer

    # ---- room

    def room(self) -> Fields:
        """max_tokens that leaves room for thinking: min(2048, context - prompt).

        In a small context the server's own default, all that is left, is exactly that.
        """
        small = self.context is not None and self.context < GENEROUS_TOKENS + 512
        return {} if small else {"max_tokens": GENEROUS_TOKENS}

    def answer_fields(self, *, short: int) -> Fields:
        """Fields for a question whose answer is judged: no thinking and `short` tokens, or room for the thinking."""
        return {**self.off_fields, "max_tokens": short} if self.quiet else self.room()


def _thought(answer: Answer) -> bool:
    return bool(answer.reasoning.strip()) or answer.content.lstrip().startswith(("<think>", "[THINK]", "◁think▷"))
