"""What this server can do, found out by asking, never assumed from a name. Each is measured once."""

from functools import cached_property

from selfhost.smoke.probe import Fields, Probe, Unanswered
from selfhost.smoke.thinking import Thinking

GENEROUS_TOKENS = 2048
"""Room for thinking; probes with a few hundred tokens have flagged healthy reasoning models as down."""

NO_TEMPLATE = "the model has no chat template"


class Capability:
    """Answers are cached for one run of smoke."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self.thinking = Thinking(probe, room=self.room)

    def lacks(self, ability: str) -> str:
        """Empty when the server has `ability`, else the reason why a check that needs it can't run."""
        match ability:
            case "chat":
                return "" if self.chats else NO_TEMPLATE
            case "tokenize":
                return self._no_tokenize
            case "metrics":
                return self._no_metrics
            case "completions":
                return self._no_completions
        raise ValueError(ability)

    @property
    def context(self) -> int | None:
        return self._probe.context

    @property
    def chats(self) -> bool:
        return self._probe.endpoint.chat

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

    def room(self) -> Fields:
        """max_tokens that leaves room for thinking: min(2048, context - prompt).

        In a small context the server's own default, all that is left, is exactly that.
        """
        small = self.context is not None and self.context < GENEROUS_TOKENS + 512
        return {} if small else {"max_tokens": GENEROUS_TOKENS}

    def answer_fields(self, *, short: int) -> Fields:
        """Fields for a question whose answer is judged: no thinking and `short` tokens, or room for the thinking."""
        quiet = self.thinking.quiet
        return {**self.thinking.off_fields, "max_tokens": short} if quiet else self.room()
