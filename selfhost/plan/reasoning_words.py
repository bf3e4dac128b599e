"""Why a reasoning mode is what it is, and what a client that sends nothing gets."""

from selfhost.engines.names import shown
from selfhost.plan.reasoning_wire import Wire
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import ReasoningPlan
from selfhost.shapes.service import ReasoningMode

ROOM_FOR_THINKING = 16_384
"""Tokens of context below which thinking often leaves no room for the answer (model cards ask for 16k to 32k)."""


def reason(*, model: Model, plan: ReasoningPlan, wire: Wire, engine: str, context: int, asked: bool) -> str:
    parts = [] if asked else [_default_words(model, plan)]
    parts.append(_who_gets_it(plan, wire, engine))
    if not wire.parser:
        parts.append(_unsplit(model, engine))
    if wire.budget_key and plan.budget_tokens is not None:
        parts.append("the model was trained to keep to its budget; nothing cuts it off")
    if wire.note:
        parts.append(wire.note)
    if plan.mode is not ReasoningMode.OFF and plan.budget_tokens is None and context < ROOM_FOR_THINKING:
        parts.append(f"{context:,} tokens are little room for thinking: a reply may end before its answer begins")
    if isinstance(model.has_chat_template, Known) and not model.has_chat_template.value:
        parts.append("the model has no chat template, so nothing switches")
    return "; ".join(parts)


def _who_gets_it(plan: ReasoningPlan, wire: Wire, engine: str) -> str:
    if plan.unsent == "served":
        return "served to a client that sends nothing"
    sent = ", ".join(f"{key}={value}" for key, value in plan.client_extras.items())
    only = f"only when the client asks ({sent})"
    if wire.client:
        return f"{only}: {shown(engine)} drops the marks of a thought otherwise, and it stands in the answer"
    without = "thinking is unlimited" if plan.budget_tokens is not None else "the model's own level counts"
    return f"{only}: {shown(engine)} keeps no such default; without it {without}"


def _unsplit(model: Model, engine: str) -> str:
    others = [shown(name) for name in model.family.reasoning_parser if name != engine]
    aside = f"; {' and '.join(others)} sets them apart" if others else ""
    return f"{shown(engine)} has no parser for its thoughts: they stand in the text of the answer{aside}"


def _default_words(model: Model, plan: ReasoningPlan) -> str:
    if model.family.default_mode in ("auto", "split", "explicit"):
        return f"its template has no single default, so {plan.mode.value} is written down"
    return f"the family's own default ({model.family.note})" if model.family.note else "the family's own default"
