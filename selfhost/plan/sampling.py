"""Sampling for a client that sends none: the model's own, or what its publisher advises for the mode."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from selfhost.core.table import read_table
from selfhost.engines.names import shown
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.plan import Decision, EnforcedBy, Evidence, ReasoningPlan
from selfhost.shapes.service import ReasoningMode

_FLAGS = ("--override-generation-config", "--generation-config", "--sampling-defaults")
_SERVED = {"vllm": "--override-generation-config"}
"""Engine → its flag for defaults that hold in every chat; an engine without one leaves them to the client."""
_OWN = {
    "vllm": "vLLM 0.33.0: config/model.py",
    "sglang": "SGLang 0.5.23: srt/entrypoints/openai/protocol.py, srt/arg_groups/fields/serving.py",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The decision, and who carries it out: engine flags, or fields that a client has to send."""

    decision: Decision
    flags: tuple[str, ...] = ()
    client: dict[str, object] = field(default_factory=dict)
    """Request fields, where the engine takes no such default for chats (SGLang)."""


def decide_sampling(*, model: Model, reasoning: ReasoningPlan, passed: PassedOn, engine: str = "vllm") -> Sampling:
    """Advice is followed for published checkpoints only: a folder of the same family may be another model."""
    flag = next((name for name in _FLAGS if name in passed.flags), None)
    if flag is not None:
        return Sampling(
            decision=Decision(field="sampling", value="your own", reason="passed on", source="user", by=passed.by(flag))
        )
    row = _advice(model, reasoning)
    if row is None:
        return Sampling(
            decision=Decision(
                field="sampling",
                value="the model's own",
                reason="its generation_config.json holds for requests that say nothing; without it temperature 1",
                source=_OWN.get(engine, ""),
                evidence=Evidence.READ_IN_CODE,
            )
        )
    return _followed(row, engine=engine)


def _advice(model: Model, reasoning: ReasoningPlan) -> dict[str, Any] | None:
    mode = "off" if reasoning.mode is ReasoningMode.OFF else "on"
    rows = read_table("selfhost.plan", "sampling.toml")["advice"] if model.origin is not Origin.FOLDER else []
    for row in rows:
        if row["mode"] == mode and (row.get("family") == model.family.id or row.get("id") == model.id):
            found: dict[str, Any] = row
            return found
    return None


def _followed(row: Mapping[str, Any], *, engine: str) -> Sampling:
    values: dict[str, object] = dict(row["values"])
    flag = _SERVED.get(engine, "")
    reason = "the publisher's advice for this mode; the model's generation_config.json does not say it"
    if not flag:
        reason += f". {shown(engine)} keeps no such default for chats: the client has to send it"
    return Sampling(
        decision=Decision(
            field="sampling",
            value=", ".join(f"{key} {value:g}" for key, value in row["values"].items()),
            reason=reason,
            source=row["source"],
            evidence=Evidence.SEEN_ELSEWHERE,
            enforced_by=EnforcedBy.SERVER if flag else EnforcedBy.CLIENT,
            alternatives=(f"the model's own: -- {flag} {{}}",) if flag else (),
        ),
        flags=(flag, json.dumps(values, separators=(",", ":"), sort_keys=True)) if flag else (),
        client={} if flag else values,
    )
