"""SM0xx: the server is there, under the right name, and really answers."""

from dataclasses import replace
from urllib.parse import urlsplit

from selfhost.smoke.capability import Capability
from selfhost.smoke.check import Failed, Passed, Verdict, check
from selfhost.smoke.probe import Probe, Unanswered
from selfhost.smoke.wire import Answer


@check("SM001", "models lists exactly {model}", group="reach", budget_s=15)
def lists_the_model(probe: Probe, _: Capability) -> Verdict:
    """A server of ours lists one name; a foreign one may list more, ours must be among them."""
    reply = probe.get("models")
    if reply.status == 0:
        return Failed(what=f"nothing answers at {probe.endpoint.base_url}: {reply.error}", fix=_look(probe))
    if reply.status in (401, 403):
        return _refused(probe, reply.status)
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
def generates(probe: Probe, capability: Capability) -> Verdict:
    """Green health says that the HTTP server runs; only a token shows that the model does."""
    health = probe.get(f"{probe.root}/health")
    green = f"/health answers {health.status}" if health.status else "/health does not answer"
    try:
        answer = _one_answer(probe, capability)
    except Unanswered as error:
        return Failed(
            what=f"no generation works: {error.what}",
            why=f"{green}; that says nothing about the model behind it.",
            evidence=error.body[:300],
            fix=_look(probe),
        )
    return Passed(note=f"{green}, finish {answer.finish or 'unknown'}")


def _one_answer(probe: Probe, capability: Capability) -> Answer:
    """A chat; a plain completion where the model has no chat template, known or said by the refusal."""
    if capability.chats:
        try:
            return probe.chat("Say hello", max_tokens=8)
        except Unanswered as error:
            if error.status not in (400, 422) or "chat template" not in error.body:
                raise
            probe.endpoint = replace(probe.endpoint, chat=False)
    return probe.complete("Hello", max_tokens=8)[0]


def _refused(probe: Probe, status: int) -> Failed:
    """At an address of ours the key is right, so it is the server that is another."""
    if not probe.endpoint.runtime:
        return Failed(what=f"the key was refused ({status})", fix=("name the file with the right key: --key-file",))
    port = urlsplit(probe.endpoint.base_url).port
    return Failed(
        what=f"our own key was refused ({status})",
        why="The engine was started with this key, so another server may be on its port.",
        fix=(
            f"see who listens there:\nss -ltnp 'sport = :{port}'",
            f"and whether the engine runs:\nselfhost status {probe.endpoint.name}",
        ),
    )


def _look(probe: Probe) -> tuple[str, ...]:
    if not probe.endpoint.runtime:
        return ("check the address, and that the server has finished loading",)
    return (f"read the engine's log:\nselfhost logs {probe.endpoint.name}",)


def _first(names: list[str]) -> str:
    return names[0] if names else "NAME"
