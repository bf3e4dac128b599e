"""SM15x: tokens are counted right."""

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Verdict, check
from selfhost.smoke.checks.endings import CUT_TOKENS, LONG_ASK
from selfhost.smoke.probe import Probe, Unanswered


@check("SM150", "usage counts what /tokenize counts", group="answers", needs=("SM101",), abilities=("chat", "tokenize"))
def usage_agrees(probe: Probe, capability: Capability) -> Verdict:
    """The switch is sent on both sides, because /tokenize does not know the server's own default."""
    body = probe.chat_body(LONG_ASK, capability.thinking.off_fields)
    answer = probe.chat(LONG_ASK, max_tokens=CUT_TOKENS, **capability.thinking.off_fields)
    if answer.usage is None:
        return Failed(what="the answer has no usage", why="Clients and gateways count tokens by it.")
    reply = probe.post(f"{probe.root}/tokenize", body)
    if not reply.ok or not isinstance(reply.json, dict):
        raise Unanswered(f"/tokenize was answered {reply.status}", status=reply.status, body=reply.text)
    count, usage = int(reply.json["count"]), answer.usage
    if usage.prompt != count:
        return Failed(what=f"usage says {usage.prompt} prompt tokens, /tokenize says {count}")
    if answer.finish == "length" and usage.completion != CUT_TOKENS:
        return Failed(what=f"usage says {usage.completion} completion tokens for an answer cut at {CUT_TOKENS}")
    if usage.total != usage.prompt + usage.completion:
        return Failed(what=f"usage says {usage.total} tokens in all, {usage.prompt} + {usage.completion} were used")
    return Passed(note=f"{usage.prompt} + {usage.completion} tokens")
