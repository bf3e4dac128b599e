"""SM5xx: the context's end."""

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Skipped, Verdict, check
from selfhost.smoke.probe import Probe, Unanswered

MOST_TOKENS = 1_100_000
REFUSALS = (400, 413, 422)


@check(
    "SM500",
    "an input over the context is refused with 400, and the server lives",
    group="context",
    needs=("SM002",),
    budget_s=60,
)
def overlong_is_refused(probe: Probe, capability: Capability) -> Verdict:
    context = capability.context
    if context is None:
        return Skipped(reason="neither the plan nor /v1/models says how long the context is")
    if context > MOST_TOKENS:
        return Skipped(reason=f"a context of {context:,} tokens is too long to overfill quickly")
    path, body = probe.any_body("word " * (context + 64), {"max_tokens": 4})
    reply = probe.post(path, body)
    if reply.ok:
        return Failed(
            what=f"an input of more than {context:,} tokens was accepted",
            why="The server cut it silently: answers then ignore part of what was sent, and nobody is told.",
        )
    try:
        if capability.chats:
            probe.chat("Say hello", max_tokens=4)
        else:
            probe.complete("Hello", max_tokens=4)
    except Unanswered as error:
        return Failed(
            what="an input over the context stopped the server",
            why="Any client can end the service for all by one long request.",
            evidence=f"it was answered {reply.status or reply.error}; afterwards {error.what}",
        )
    if reply.status not in REFUSALS:
        seen = reply.status or reply.error
        return Failed(what=f"an input over the context was answered {seen}, expected 400", evidence=reply.text[:300])
    return Passed(note=f"answered {reply.status} for more than {context:,} tokens")
