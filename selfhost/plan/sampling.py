"""Sampling for a client that sends none: the model's own, or what its publisher advises for the mode."""

import json
from dataclasses import dataclass

from selfhost.core.table import read_table
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.plan import Decision, Evidence, ReasoningPlan

_FLAGS = ("--override-generation-config", "--generation-config")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The decision, and engine flags that carry it out."""

    decision: Decision
    flags: tuple[str, ...] = ()


def decide_sampling(*, model: Model, reasoning: ReasoningPlan, passed: PassedOn) -> Sampling:
    """Advice is followed for published checkpoints only: a folder of the same family may be another model."""
    flag = next((name for name in _FLAGS if name in passed.flags), None)
    if flag is not None:
        return Sampling(
            decision=Decision(field="sampling", value="your own", reason="passed on", source="user", by=passed.by(flag))
        )
    rows = read_table("selfhost.plan", "sampling.toml")["advice"] if model.origin is not Origin.FOLDER else []
    for row in rows:
        meant = row.get("family") == model.family.id or row.get("id") == model.id
        if meant and row["mode"] == reasoning.mode.value:
            values = json.dumps(row["values"], separators=(",", ":"), sort_keys=True)
            return Sampling(
                decision=Decision(
                    field="sampling",
                    value=", ".join(f"{key} {value:g}" for key, value in row["values"].items()),
                    reason="the publisher's advice; the model's generation_config.json does not say it",
                    source=row["source"],
                    evidence=Evidence.SEEN_ELSEWHERE,
                ),
                flags=("--override-generation-config", values),
            )
    return Sampling(
        decision=Decision(
            field="sampling",
            value="the model's own",
            reason="its generation_config.json holds for requests that say nothing; without that file temperature 1",
            source="vLLM 0.33.0 source, config/model.py",
            evidence=Evidence.READ_IN_CODE,
        )
    )
