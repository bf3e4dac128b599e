"""How likely a text is to the model, token by token, without generating anything."""

from dataclasses import dataclass
from typing import Any

from selfhost.smoke.probe import Probe, Unanswered
from selfhost.smoke.prose import Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood:
    """Mean log-probability per token in nats, over all tokens but the first."""

    mean: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Means over all pairs. `gain` is how much likelier, in nats per token, the texts are than their shuffled words."""

    mean: float
    gain: float
    least_gain: float
    characters_per_token: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.mean:.1f} nats per token, {self.gain:.1f} above the same words shuffled, {self.pairs} texts"


def compare(probe: Probe, pairs: tuple[Pair, ...]) -> Comparison:
    """Score every pair. Raises Unanswered when the server gives no log-probabilities of a prompt."""
    plain = [score(probe, pair.text) for pair in pairs]
    shuffled = [score(probe, pair.shuffled) for pair in pairs]
    gains = [one.mean - other.mean for one, other in zip(plain, shuffled, strict=True)]
    return Comparison(
        mean=sum(one.mean for one in plain) / len(plain),
        gain=sum(gains) / len(gains),
        least_gain=min(gains),
        characters_per_token=sum(len(pair.text) for pair in pairs) / sum(one.tokens for one in plain),
        pairs=len(pairs),
    )


def score(probe: Probe, text: str) -> Likelihood:
    """By vLLM's `prompt_logprobs` where it exists, else the older `echo` with `logprobs`."""
    try:
        _, choice = probe.complete(text, max_tokens=1, prompt_logprobs=0)
        values = [row[1] for row in prompt_rows(choice)]
    except Unanswered as error:
        if error.status not in (400, 422):
            raise
        values = []
    values = values or _echoed(probe, text)
    if not values:
        raise Unanswered("the server gives no log-probabilities of a prompt", status=400)
    return Likelihood(mean=sum(values) / len(values), tokens=len(values) + 1)


def prompt_rows(choice: Any) -> list[tuple[int, float, int]]:
    """Place, log-probability and rank of every prompt token but the first.

    Asked with `prompt_logprobs: 0` a row holds the token itself alone; with more, vLLM puts it first.
    """
    rows: list[tuple[int, float, int]] = []
    for place, row in enumerate(choice.get("prompt_logprobs") or ()):
        if row:
            own = next(iter(row.values()))
            rows.append((place, float(own["logprob"]), int(own.get("rank") or 0)))
    return rows


def _echoed(probe: Probe, text: str) -> list[float]:
    _, choice = probe.complete(text, max_tokens=1, echo=True, logprobs=1)
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs") or []
    return [float(value) for value in logprobs[1:-1] if value is not None]
