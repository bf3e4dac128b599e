"""What cannot be asked of a family's thinking on an engine: refused before the start."""

from collections.abc import Sequence

from selfhost.plan import reasoning_refusals as refusals
from selfhost.plan.reasoning_wire import Wire
from selfhost.shapes.model import Model
from selfhost.shapes.service import ReasoningMode, Service

REPLY_TOKENS = 1024
"""What a reply needs behind a thinking budget."""


def reply_room(context: int) -> int:
    return min(REPLY_TOKENS, context // 2)


def prompt_room(context: int) -> int:
    """The chat template and a short question."""
    return min(256, context // 8)


def refuse_impossible(*, model: Model, service: Service, wire: Wire, engine: str, context: int) -> None:
    """Raises InputError for a mode that this family, or this engine with these flags, cannot keep."""
    ask = service.reasoning
    _refuse_deaf_parser(model=model, service=service, wire=wire, engine=engine)
    if ask is None:
        return
    if not wire.parser and ask.mode.value not in wire.possible:
        raise refusals.no_parser(model, service, engine=engine, can_stop="off" in wire.possible)
    if ask.mode is ReasoningMode.OFF and wire.off is None:
        raise refusals.cannot_stop(model, service, has_budget=wire.has_budget, levels=tuple(wire.efforts))
    if ask.mode is ReasoningMode.EFFORT and (ask.effort or "") not in wire.efforts:
        raise refusals.no_such_effort(
            model, service, ask.effort or "", levels=tuple(wire.efforts), has_budget=wire.has_budget
        )
    if ask.mode is ReasoningMode.BUDGET:
        _refuse_budget(ask.budget_tokens or 0, model=model, service=service, wire=wire, engine=engine, context=context)


def _refuse_budget(
    tokens: int, *, model: Model, service: Service, wire: Wire, engine: str, context: int
) -> None:  # fmt: skip
    if not wire.has_budget:
        raise refusals.no_budget(
            model, service, engine=engine, why=wire.engine.no_budget, levels=tuple(wire.efforts),
            can_stop=wire.off is not None,
        )  # fmt: skip
    for flag, values in wire.engine.clashes.items():
        if (said := value_of(service.engine_args, flag)) in values:
            raise refusals.budget_clashes(service, engine=engine, clash=f"{flag} {said}")
    kept = reply_room(context) + prompt_room(context)
    if tokens + kept > context:
        raise refusals.budget_too_large(model, service, tokens, context=context, kept_tokens=kept)


def _refuse_deaf_parser(*, model: Model, service: Service, wire: Wire, engine: str) -> None:
    """A parser of the user's own that expects thoughts from a family that was told not to think."""
    own = value_of(service.engine_args, "--reasoning-parser")
    off = service.reasoning is not None and service.reasoning.mode is ReasoningMode.OFF
    if off and own in wire.engine.deaf and wire.can_switch:
        raise refusals.deaf_parser(model, service, engine=engine, own=own or "", ours=wire.parser)


def value_of(engine_args: Sequence[str], flag: str) -> str | None:
    """The last value of `flag` among the user's engine flags, in either spelling."""
    found = None
    for token, following in zip(engine_args, [*engine_args, ""][1:], strict=True):
        name, glued, value = token.partition("=")
        if name.replace("_", "-") == flag:
            found = value if glued else following
    return found
