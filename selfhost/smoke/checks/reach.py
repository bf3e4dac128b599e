"""SM0xx: the server is there, under the right name, and really answers."""

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Verdict, check
from selfhost.smoke.probe import Probe, Unanswered


@check("SM001", "models lists exactly {model}", group="reach", budget_s=15)
def lists_the_model(probe: Probe, _: Capability) -> Verdict:
    """A server of ours lists one name; a foreign one may list more, ours must be among them."""
    reply = probe.get("models")
    if reply.status == 0:
        return Failed(what=f"nothing answers at {probe.endpoint.base_url}: {reply.error}", fix=_look(probe))
    if reply.status in (401, 403):
        return Failed(
            what=f"the key was refused ({reply.status})", fix=("name the file with the right key: --key-file",)
        )
    if not reply.ok:
        return Failed(what=f"/v1/models was answered {reply.status}", evidence=reply.text[:300])
    body = reply.json
    rows = body.get("data") if isinstance(body, dict) else None
    names = [str(row.get("id")) for row in rows or () if isinstance(row, dict)]
    wanted, ours = probe.endpoint.model, bool(probe.endpoint.runtime)
    if names == [wanted] or (wanted in names and not ours):
        return Passed(note=f"{len(names)} models listed" if len(names) > 1 else "")
    return Failed(
        what=f"/v1/models lists {', '.join(names) or 'nothing'}, expected {wanted}",
        why="Clients must name a model exactly as it is listed, so every request under the other name fails.",
        fix=("serve it under one name: --served-model-name",) if ours else (f"perhaps --model {_first(names)}",),
    )


@check("SM002", "ready: a generation works, not only /health", group="reach", budget_s=120)
def generates(probe: Probe, _: Capability) -> Verdict:
    """Green health says that the HTTP server runs; only a token shows that the model does."""
    health = probe.get(f"{probe.root}/health")
    green = f"/health answers {health.status}" if health.status else "/health does not answer"
    try:
        answer = probe.chat("Say hello", max_tokens=8)
    except Unanswered as error:
        return Failed(
            what=f"no generation works: {error.what}",
            why=f"{green}; that says nothing about the model behind it.",
            evidence=error.body[:300],
            fix=_look(probe),
        )
    return Passed(note=f"{green}, finish {answer.finish or 'unknown'}")


def _look(probe: Probe) -> tuple[str, ...]:
    if not probe.endpoint.runtime:
        return ("check the address, and that the server has finished loading",)
    return (f"read the engine's log:\nselfhost logs {probe.endpoint.name}",)


def _first(names: list[str]) -> str:
    return names[0] if names else "NAME"
