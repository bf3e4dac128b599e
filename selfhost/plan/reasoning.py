"""The reasoning mode: `on|off|budget=N|effort=LEVEL`, resolved for a family into server defaults and request fields."""

from dataclasses import dataclass, replace

from selfhost.core.errors import InputError
from selfhost.plan import reasoning_refusals as refusals
from selfhost.plan.origin import by
from selfhost.plan.reasoning_limits import prompt_room, refuse_impossible, reply_room
from selfhost.plan.reasoning_wire import Fields, Wire, wire_of
from selfhost.plan.reasoning_words import ROOM_FOR_THINKING, reason
from selfhost.shapes.model import Model, ReasoningClass
from selfhost.shapes.plan import Decision, EnforcedBy, Evidence, ReasoningPlan
from selfhost.shapes.service import ReasoningAsk, ReasoningMode, Service

EFFORTS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDecision:
    """The mode, why, and engine flags that it needs beside the planned ones."""

    plan: ReasoningPlan
    decision: Decision
    flags: tuple[str, ...] = ()


def parse(text: str) -> ReasoningAsk:
    """Read `on`, `off`, `budget=N` (tokens, 0 or more) or `effort=low|medium|high`. Raises InputError."""
    word, has_value, value = text.strip().lower().partition("=")
    if word in ("on", "off") and not has_value:
        return ReasoningAsk(mode=ReasoningMode(word))
    digits = value.replace("_", "")
    if word == "budget" and digits.isascii() and digits.isdigit() and len(digits) <= 9:
        return ReasoningAsk(mode=ReasoningMode.BUDGET, budget_tokens=int(digits))
    if word == "effort" and value in EFFORTS:
        return ReasoningAsk(mode=ReasoningMode.EFFORT, effort=value)
    why = {
        "budget": "A budget is a whole number of tokens, 0 or more.",
        "effort": f"The levels are {', '.join(EFFORTS)}.",
    }.get(word, "It is one of: on, off, budget=N (tokens), effort=low|medium|high.")
    raise InputError(
        f"`--reasoning {text}` is not a reasoning mode",
        why=why,
        fix=("for instance:\n--reasoning on", "or with at most 2048 tokens of thinking:\n--reasoning budget=2048"),
        id="CF020",
    )


def decide_reasoning(*, model: Model, service: Service, engine: str, context: int) -> ReasoningDecision:
    """The mode asked for, or the family's own default; always explicit. Raises InputError for the impossible."""
    ask = service.reasoning
    wire = wire_of(model.family, engine=engine)
    if model.family.reasoning_class is ReasoningClass.NONE:
        return _without(model=model, service=service)
    refuse_impossible(model=model, service=service, wire=wire, engine=engine, context=context)
    mode = ask.mode if ask is not None else default_mode(model)
    plan = _resolve(mode=mode, ask=ask, wire=wire, context=context)
    decision = Decision(
        field="reasoning",
        value=str(ask) if ask is not None else mode.value,
        reason=reason(model=model, plan=plan, wire=wire, engine=engine, context=context, asked=ask is not None),
        source=model.family.source,
        evidence=Evidence.READ_IN_CODE,
        evidence_note=f"family {model.family.id}, class {model.family.reasoning_class}; {engine}'s parser registry",
        enforced_by=_enforced_by(plan, wire),
        by=by(service, "reasoning", ask),
        alternatives=wire.possible,
    )
    return ReasoningDecision(plan=plan, decision=decision, flags=wire.flags if plan.parser else ())


def _enforced_by(plan: ReasoningPlan, wire: Wire) -> EnforcedBy:
    """Who holds the model to the mode: a budget in the template is a wish, one in the request is a cut."""
    if plan.unsent != "served":
        return EnforcedBy.CLIENT
    soft = plan.budget_tokens is not None and bool(wire.budget_key)
    return EnforcedBy.NOBODY if soft else EnforcedBy.SERVER


def default_mode(model: Model) -> ReasoningMode:
    """What the family's template does when nothing is sent, where that is one thing; thinking on where it is not."""
    default = model.family.default_mode
    if default.startswith("on("):  # `on(0.8B,2B off)`: sizes that start in the other mode
        sizes = default.removeprefix("on(").removesuffix("off)").replace(" ", "").split(",")
        name = model.id.lower()
        return ReasoningMode.OFF if any(f"-{size.lower()}" in name for size in sizes) else ReasoningMode.ON
    return ReasoningMode.OFF if default == "off" else ReasoningMode.ON


def _without(*, model: Model, service: Service) -> ReasoningDecision:
    ask = service.reasoning
    if ask is not None and ask.mode is not ReasoningMode.OFF:
        raise refusals.does_not_think(model, service)
    note = f" ({model.family.note})" if model.family.note else ""
    return ReasoningDecision(
        plan=ReasoningPlan(mode=ReasoningMode.OFF),
        decision=Decision(
            field="reasoning",
            value="none",
            reason=f"not a reasoning model{note}: no parser, or whole answers would be taken for thoughts",
            source=model.family.source,
            evidence=Evidence.READ_IN_CODE if model.family.source else Evidence.ASSUMED,
            by=by(service, "reasoning", ask),
        ),
    )


def _resolve(*, mode: ReasoningMode, ask: ReasoningAsk | None, wire: Wire, context: int) -> ReasoningPlan:
    base = ReasoningPlan(
        mode=mode,
        parser=wire.parser,
        request_on=wire.request(wire.on),
        request_off=wire.request(wire.off),
        can_think=True,
        can_switch=wire.can_switch and bool(wire.parser),
        response_field=wire.engine.response_field if wire.parser else "",
    )
    if mode is ReasoningMode.OFF:
        return replace(base, template_defaults=wire.server(wire.off))
    room = max(0, min(ROOM_FOR_THINKING, context - prompt_room(context)))
    served = replace(base, template_defaults=wire.server(wire.on), answer_budget=room)
    if ask is not None and mode is ReasoningMode.EFFORT:
        return _with_effort(served, effort=ask.effort or "", wire=wire)
    if ask is not None and mode is ReasoningMode.BUDGET:
        return _with_budget(served, tokens=ask.budget_tokens or 0, wire=wire, context=context)
    return _kept_by_client(served, wire.client)


def _kept_by_client(plan: ReasoningPlan, fields: Fields) -> ReasoningPlan:
    """Where thoughts are only found when the request says so."""
    if not fields:
        return plan
    return replace(plan, client_extras={**plan.client_extras, **fields}, unsent="only when asked")


def _with_effort(plan: ReasoningPlan, *, effort: str, wire: Wire) -> ReasoningPlan:
    level = {**wire.on_fields, wire.effort_key: wire.efforts[effort]}
    plan = replace(plan, effort=effort, request_on=wire.request(level))
    if wire.server_reads_effort:
        return _kept_by_client(replace(plan, template_defaults=wire.server(level)), wire.client)
    return replace(plan, client_extras=wire.request(level), unsent="only when asked")


def _with_budget(plan: ReasoningPlan, *, tokens: int, wire: Wire, context: int) -> ReasoningPlan:
    """A budget is the client's to send on vLLM, with room for the reply behind it; SGLang keeps one for everybody."""
    room: Fields = {"max_tokens": tokens + reply_room(context)}
    plan = replace(plan, budget_tokens=tokens, answer_budget=tokens + reply_room(context))
    if wire.budget_key:  # the template itself knows a budget: the server default holds, softly
        told = {**plan.template_defaults, wire.budget_key: tokens}
        return replace(plan, template_defaults=told, client_extras=room)
    if wire.engine.budget_variable:
        kept = replace(
            plan,
            client_extras=room,
            server_flags=wire.engine.budget_flags,
            env={wire.engine.budget_variable: str(tokens)},
        )
        return _kept_by_client(kept, wire.client)
    return replace(plan, client_extras={**wire.engine.budget(tokens), **room}, unsent="only when asked")
