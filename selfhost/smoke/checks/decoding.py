"""SM13x: generating token by token gives what reading the same tokens at once gives."""

from dataclasses import dataclass
from statistics import median

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Undecided, Verdict, check
from selfhost.smoke.likelihood import prompt_rows
from selfhost.smoke.probe import Probe, Unanswered

# Healthy SmolLM2-135M on vLLM's CPU backend, eager and compiled: share of rank 1 0.88 to 1.0, largest rank 4, largest
# difference 0.18 nats. Rounding moves near ties; a broken decode path moves everything.
LEAST_FIRST = 0.7
MOST_MEDIAN = 0.3
MOST_FAR = 0.15
FAR_NATS = 1.0
FAR_RANK = 20
TOKENS = 24
ASKS = ("Say hello", "What is the capital of France?", "Say apple")


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token: its log-probability while decoding, and log-probability and rank in prefill."""

    decoded: float
    prefilled: float
    rank: int

    @property
    def apart(self) -> float:
        return abs(self.decoded - self.prefilled)


@check(
    "SM130", "decoding agrees with prefill", group="answers", needs=("SM002",), abilities=("completions",), budget_s=60
)
def decoding_agrees(probe: Probe, capability: Capability) -> Verdict:
    """Any model can be judged: it is compared with itself."""
    steps: list[Token] = []
    try:
        for ask in ASKS:
            steps += _steps(probe, _prompt(probe, capability, ask))
    except Unanswered as error:
        if error.status not in (400, 404, 422):
            raise
        return Undecided(reason="the server gives no log-probabilities by token id")
    if len(steps) < 2 * len(ASKS):
        return Undecided(reason=f"only {len(steps)} tokens were generated")
    first = sum(step.rank == 1 for step in steps) / len(steps)
    far = sum(step.apart > FAR_NATS or step.rank > FAR_RANK for step in steps) / len(steps)
    middle, most = median(step.apart for step in steps), max(step.apart for step in steps)
    seen = (
        f"{len(steps)} tokens, {first:.0%} of rank 1, largest rank {max(step.rank for step in steps)}, "
        f"difference {middle:.2f} nats in the middle, {most:.2f} at most"
    )
    if first >= LEAST_FIRST and far <= MOST_FAR and middle <= MOST_MEDIAN:
        return Passed(note=seen)
    return Failed(
        what="greedy decoding chose tokens that reading the same text finds unlikely",
        why="Prefill and decode run different kernels over one KV cache; one of the three computes wrongly.",
        evidence=seen,
        fix=("try without the optimisations, one at a time: --enforce-eager, --kv-cache-dtype auto, no speculation",),
    )


def _prompt(probe: Probe, capability: Capability, ask: str) -> str | list[int]:
    """The chat as token ids where the server renders it, else the bare text."""
    if not capability.chats or capability.lacks("tokenize"):
        return ask
    body = probe.chat_body(ask, capability.thinking.off_fields)
    reply = probe.post(f"{probe.root}/tokenize", body)
    tokens = reply.json.get("tokens") if reply.ok and isinstance(reply.json, dict) else None
    return list(tokens) if tokens else ask


def _steps(probe: Probe, prompt: str | list[int]) -> list[Token]:
    answer, choice = probe.complete(prompt, max_tokens=TOKENS, logprobs=1, return_token_ids=True)
    before = list(prompt) if isinstance(prompt, list) else list(choice.get("prompt_token_ids") or ())
    if not before or not answer.token_ids or len(answer.token_ids) != len(answer.logprobs):
        return []
    _, read = probe.complete([*before, *answer.token_ids], max_tokens=1, prompt_logprobs=0)
    rows = {place: (logprob, rank) for place, logprob, rank in prompt_rows(read)}
    return [
        Token(decoded, *rows[place])
        for place, decoded in enumerate(answer.logprobs, start=len(before))
        if place in rows
    ]
