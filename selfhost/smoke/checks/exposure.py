"""SM8xx: who may use the endpoint."""

from selfhost.core.http import Client, Reply  # smoke is running: httpx is needed anyway
from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Skipped, Undecided, Verdict, check
from selfhost.smoke.probe import Probe

WRONG_KEY = "sk-wrong-4f1d0c"


@check("SM801", "the key is enforced: none and wrong are refused, right is accepted", group="exposure", budget_s=20)
def key_is_enforced(probe: Probe, _: Capability) -> Verdict:
    """Tried on the list of models and on a generation, because proxies often guard only one of them."""
    if not probe.key:
        return Skipped(reason="no key was given, so none can be checked")
    with Client(probe.endpoint.base_url) as stranger:
        for name, key in (
            ("without a key", ""),
            ("with a wrong key", WRONG_KEY),
            ("with half the key", _half(probe.key)),
        ):
            for path, reply in _try_both(probe, stranger, key):
                problem = _let_in(f"{path} {name}", reply, probe.key)
                if problem is not None:
                    return problem
    right = probe.get("models")
    if right.status != 200:
        return Failed(what=f"the right key was answered {right.status}, expected 200", evidence=right.text[:300])
    if probe.key in right.text:
        return Failed(what="the list of models repeats the key", why="Answers end up in logs.")
    return Passed()


def _try_both(probe: Probe, stranger: Client, key: str) -> tuple[tuple[str, Reply], ...]:
    headers, left_s = {"Authorization": f"Bearer {key}"} if key else {}, probe.clock.left_s()
    path, body = probe.any_body("Say hello", {"max_tokens": 1})
    return (
        ("/v1/models", stranger.request("GET", "models", headers=headers, timeout_s=left_s)),
        (f"/v1/{path}", stranger.request("POST", path, body=body, headers=headers, timeout_s=left_s)),
    )


def _let_in(what: str, reply: Reply, key: str) -> Failed | Undecided | None:
    if reply.status == 0:
        return Undecided(reason=f"{what} got no answer: {reply.error}")
    if reply.status not in (401, 403):
        return Failed(
            what=f"{what} was answered {reply.status}, expected 401",
            why="Whoever reaches the port can use the model, and on a shared machine that is every user.",
            fix=("start the engine with its key (vLLM: environment variable VLLM_API_KEY)",),
        )
    if WRONG_KEY in reply.text or key in reply.text:
        return Failed(
            what=f"the refusal of {what} repeats the key that was sent",
            why="Keys that come back in error texts end up in logs.",
        )
    return None


def _half(key: str) -> str:
    return key[: len(key) // 2] or "x"
