"""SM61x: clients that go away."""

import time
from collections.abc import Callable

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Undecided, Verdict, check
from selfhost.smoke.metrics import GENERATED, counter, running
from selfhost.smoke.probe import Probe

LONG_TOKENS = 1024
DROPPED = 2
POLL_S = 0.05
SEEN_S = 2.0
FREED_S = 15.0


@check(
    "SM610",
    "a client that goes away frees its slot",
    group="load",
    needs=("SM200",),
    abilities=("metrics",),
    budget_s=60,
)
def slot_is_freed(probe: Probe, capability: Capability) -> Verdict:
    """Two long streams are dropped; the engine must stop them well before their end."""
    before = _settled(probe)
    if before is None:
        return Undecided(reason="other requests are running, so a freed slot would not show")
    tokens = min(LONG_TOKENS, (capability.context or LONG_TOKENS) // 2)
    generated = counter(probe, GENERATED)
    fields = {"max_tokens": tokens, "ignore_eos": True, "stream": True}
    path, body = probe.any_body("Count from one to one thousand.", fields)
    seen = 0
    for _ in range(DROPPED):
        with probe.client.stream(path, body, timeout_s=probe.clock.left_s()) as answer:
            if answer.status != 200:
                return Undecided(reason=f"a long stream was answered {answer.status}")
            chunks = answer.chunks()
            next(chunks, b"")
            next(chunks, b"")
            seen = max(seen, _until(probe, lambda now: now > before, within_s=SEEN_S))
    left = _until(probe, lambda now: now <= before, within_s=FREED_S)
    made = counter(probe, GENERATED) - generated
    if left >= before + DROPPED:
        return Failed(
            what=f"{DROPPED} dropped requests still run {FREED_S:.0f} s after their clients left",
            why="Each such client takes one of the engine's slots until its answer is complete; a few block everyone.",
            fix=("behind a proxy, let it close the connection to the engine when the client goes",),
        )
    if left > before:
        return Undecided(reason="one request still runs, which may be somebody else's")
    if seen <= before or (generated >= 0 and made >= DROPPED * tokens):
        return Undecided(reason="the engine was done before its clients could leave")
    return Passed(note=f"{made} of {DROPPED * tokens} tokens were made" if generated >= 0 else "")


def _settled(probe: Probe) -> int | None:
    """How many requests run when smoke sends none; None when that number moves."""
    first = running(probe)
    time.sleep(POLL_S)
    if first == 0:
        return 0
    left = _until(probe, lambda now: now == 0, within_s=SEEN_S)
    return 0 if left == 0 else None


def _until(probe: Probe, holds: Callable[[int], bool], *, within_s: float) -> int:
    """The number of running requests as soon as it `holds`, or when the time is up."""
    deadline = time.monotonic() + within_s
    while True:
        now = running(probe)
        if holds(now) or time.monotonic() >= deadline:
            return now
        time.sleep(POLL_S)
