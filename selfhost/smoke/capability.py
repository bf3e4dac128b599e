"""What this server can do, found out by asking, never assumed from a name. Each is measured once."""

from functools import cached_property

from selfhost.smoke.probe import Fields, Probe, Unanswered
from selfhost.smoke.thinking import Thinking

GENEROUS_TOKENS = 2048
"""Room for thinking; probes with a few hundred tokens have flagged healthy reasoning models as down."""


class Capability:
    """Answers are cached for one run of smoke."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self.thinking = Thinking(probe, room=self.room)

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
