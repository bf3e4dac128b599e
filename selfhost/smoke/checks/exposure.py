"""SM8xx: who may use the endpoint."""

from selfhost.core.http import Client, Reply  # smoke is running: httpx is needed anyway
from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Skipped, Verdict, check
from selfhost.smoke.probe import Probe

WRONG_KEY = "sk-wrong-4f1d0c"


@check("SM801", "the key is enforced: none and wrong are refused, right is accepted", group="exposure", budget_s=20)
def key_is_enforced(probe: Probe, capability: Capability) -> Verdict:  # noqa: ARG001 - one signature for all checks
    """Tried on the list of models and on a generation, because proxies often guard only one of them."""
    if not probe.key:
        return Skipped(reason="no key was given, so none can be checked")
    for name, key in (("without a key", ""), ("with a wrong key", WRONG_KEY), ("with half the key", _half(probe.key))):
        with Client(probe.endpoint.base_url, key=key or None) as stranger:
            for path, reply in _try_both(probe, stranger):
                if reply.status not in (401, 403):
                    return Failed(
                        what=f"{path} {name} was answered {reply.status}, expected 401",
                        why="Whoever reaches the port can use the model, and on a shared machine that is every user.",
                        fix=("start the engine with its key (vLLM: environment variable VLLM_API_KEY)",),
                    )
                if WRONG_KEY in reply.text or probe.key in reply.text:
                    return Failed(
                        what=f"the refusal of {path} {name} repeats the key that was sent",
                        why="Keys that come back in error texts end up in logs.",
                    )
    right = probe.get("models")
    if right.status != 200:
        return Failed(what=f"the right key was answered {right.status}, expected 200", evidence=right.text[:300])
    if probe.key in right.text:
        return Failed(what="the list of models repeats the key", why="Answers end up in logs.")
    return Passed()


def _try_both(probe: Probe, stranger: Client) -> tuple[tuple[str, Reply], ...]:
    left_s = probe.clock.left_s()
    body = probe.chat_body("Say hello", {"max_tokens": 1})
    return (
        ("/v1/models", stranger.get("models", timeout_s=left_s)),
        ("/v1/chat/completions", stranger.post("chat/completions", body, timeout_s=left_s)),
    )


def _half(key: str) -> str:
    return key[: len(key) // 2] or "x"
