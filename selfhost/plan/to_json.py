"""A plan as JSON (schema selfhost.plan/1): readable at the top, whole under `plan`, and back again."""

import json
from dataclasses import asdict
from typing import Any

from selfhost.plan.digest import digest_of
from selfhost.shapes.host import Known
from selfhost.shapes.plan import Plan, Verdict

SCHEMA = "selfhost.plan/1"


def command_of(plan: Plan) -> tuple[str, ...]:
    """The whole command, in a container that behind its entrypoint; `python` is that of the managed environment."""
    if plan.container is not None or plan.cluster is not None:
        return (*(plan.image.command if plan.image is not None else ()), *plan.argv)
    return ("python", "-m", plan.build.module, *plan.argv)


def _image(plan: Plan) -> str | None:
    if plan.cluster is not None:
        return plan.cluster.image
    return plan.container.image if plan.container is not None else None


def to_json(plan: Plan) -> dict[str, object]:
    """Plain data. `argv` is the whole command, `env` what is added to its environment; neither holds the key."""
    memory = plan.memory
    body = {
        "schema": SCHEMA,
        "ok": plan.verdict is Verdict.FITS,
        "verdict": plan.verdict,
        "name": plan.name,
        "digest": digest_of(plan),
        "model": {
            "ref": plan.model.ref,
            "id": plan.model.id,
            "served_name": plan.model.served_name,
            "revision": plan.model.revision.value if isinstance(plan.model.revision, Known) else None,
            "demonstration": plan.model.demonstration,
        },
        "engine": {"name": plan.build.engine, "version": plan.build.version, "backend": plan.build.backend},
        "runtime": plan.runtime,
        "image": _image(plan),
        "device": plan.device,
        "endpoint": plan.base_url,
        "context": plan.context,
        "concurrency": plan.concurrency,
        "decisions": [asdict(decision) for decision in plan.decisions],
        "differs": [decision.field for decision in plan.differs],
        "reasoning": asdict(plan.reasoning),
        "memory": {**asdict(memory), "need": memory.need, "kind": "estimated"},
        "argv": list(command_of(plan)),
        "env": dict(plan.env),
        "plan": asdict(plan),
    }
    plain: dict[str, object] = json.loads(json.dumps(body, ensure_ascii=False))
    return plain


def from_json(raw: dict[str, object]) -> Plan:
    """The plan back, without loss. Raises ValueError that names the field of a mistake."""
    from pydantic import TypeAdapter  # at use: 100 ms

    if not isinstance(raw.get("plan"), dict):
        raise ValueError("plan: expected an object")  # noqa: TRY004 - every mistake in the file is one kind
    plan = TypeAdapter(Plan).validate_json(json.dumps(raw["plan"]), strict=True)
    wrong = _first_difference(raw, to_json(plan), path="")
    if wrong:
        raise ValueError(f"{wrong}: not what this plan says")
    return plan


def _first_difference(found: Any, expected: Any, *, path: str) -> str:
    """Where `found` has something that `expected` has not, or has otherwise; what is absent took its default."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key, value in found.items():
            here = f"{path}.{key}" if path else str(key)
            if key not in expected:
                return here
            inner = _first_difference(value, expected[key], path=here)
            if inner:
                return inner
        return ""
    if isinstance(found, list) and isinstance(expected, list):
        if len(found) != len(expected):
            return path
        pairs = enumerate(zip(found, expected, strict=True))
        return next((w for i, (f, e) in pairs if (w := _first_difference(f, e, path=f"{path}[{i}]"))), "")
    return "" if found == expected else path
