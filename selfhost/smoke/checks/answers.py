"""SM101: the endpoint answers a chat."""

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Undecided, Verdict, check
from selfhost.smoke.excerpt import excerpt
from selfhost.smoke.exhausted import exhausted
from selfhost.smoke.probe import Probe

SHORT_TOKENS = 32


@check(
    "SM101",
    "chat answers: text, role, finish_reason",
    group="answers",
    needs=("SM002",),
    budget_s=60,
    abilities=("chat",),
)
def chat_answers(probe: Probe, capability: Capability) -> Verdict:
    """Text in either field counts: where thinking belongs is judged by SM300."""
    answer = probe.chat("Say hello", **capability.answer_fields(short=SHORT_TOKENS))
    if answer.exhausted:
        return Undecided(reason="all tokens went into thinking", finding=exhausted(answer, probe.endpoint))
    if not answer.text.strip():
        return Failed(
            what=f"the answer is empty (finish_reason `{answer.finish}`)",
            why="The first token the model chose ends the answer: the chat template does not fit, or the weights are "
            "damaged.",
        )
    if answer.role != "assistant":
        return Failed(
            what=f"the answer's role is `{answer.role or 'null'}`, expected assistant",
            why="Clients append the answer to the conversation under its role; under another the model takes its own "
            "words for somebody else's.",
            fix=(_elsewhere(probe), "where a role was configured: let the engine choose it (vLLM: --response-role)"),
        )
    if answer.finish not in ("stop", "length"):
        return Failed(
            what=f"finish_reason is `{answer.finish or 'null'}`, expected stop or length",
            why="Clients tell by it whether an answer is whole or was cut; agents and gateways wait for it, or fail.",
            fix=(_elsewhere(probe), "look for a newer version of the engine; every client of it has this trouble"),
        )
    return Passed(note=excerpt(answer.said))


def _elsewhere(probe: Probe) -> str:
    """The first thing to find out: who changed the field."""
    if probe.endpoint.runtime:
        return f"no proxy is in between, so look at the engine's own warnings:\nselfhost logs {probe.endpoint.name}"
    return "ask the engine itself, without the proxy or gateway before it: that may have changed the answer"
