"""Reasoning modes that are not possible, said before the start, with the nearest ones that are."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from selfhost.core.errors import InputError
from selfhost.core.table import read_table
from selfhost.engines.names import shown
from selfhost.plan.command_line import command_line
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.service import Service


@cache
def _table() -> dict[str, Any]:
    return read_table("selfhost.plan", "reasoning.toml")


def _up(service: Service, mode: str | None) -> str:
    return command_line("up", service, change={"reasoning": mode})


def _without(service: Service) -> list[str]:
    return [f"leave --reasoning out:\n{_up(service, None)}"]


def _first_without_or(fix: Sequence[str]) -> list[str]:
    return [fix[0].removeprefix("or "), *fix[1:]] if fix else []


def _sibling(model: Model, service: Service) -> list[str]:
    others = (row["model"] for row in _table()["sibling"] if row["family"] == model.family.id)
    return [f"or a sibling that can:\n{command_line('up', service, model=other)}" for other in others]


def does_not_think(model: Model, service: Service) -> InputError:
    return InputError(
        f"{model.id} does not think, so `--reasoning {service.reasoning}` is not possible",
        why="It was not trained to; a reasoning parser would take its whole answers for thoughts.",
        fix=[*_without(service), *_sibling(model, service)],
        id="PL021",
    )


def cannot_stop(model: Model, service: Service, *, has_budget: bool, levels: Sequence[str]) -> InputError:
    fix = []
    if "low" in levels:
        fix.append(f"think little:\n{_up(service, 'effort=low')}")
    if has_budget:
        fix.append(f"or cut thinking off at once, which it was never trained for:\n{_up(service, 'budget=0')}")
    fix += _sibling(model, service)
    return InputError(
        f"{model.id} always thinks; `--reasoning off` is not possible",
        why="Its chat template has no switch for it.",
        fix=_first_without_or(fix) or _without(service),
        id="PL020",
    )


def no_budget(
    model: Model, service: Service, *, engine: str, why: str, levels: Sequence[str], can_stop: bool
) -> InputError:  # fmt: skip
    fix = [f"think little:\n{_up(service, 'effort=low')}"] if "low" in levels else []
    fix += [f"or not at all:\n{_up(service, 'off')}"] if can_stop else []
    fix += _other_engine(model, service, engine, budget=True)
    return InputError(
        f"{model.id} takes no thinking budget on {shown(engine)}, so `--reasoning {service.reasoning}` is not possible",
        why=why,
        fix=_first_without_or(fix) or _without(service),
        id="PL022",
    )


def no_parser(model: Model, service: Service, *, engine: str, can_stop: bool) -> InputError:
    fix = _other_engine(model, service, engine)
    fix += [f"or without thinking:\n{_up(service, 'off')}"] if can_stop else []
    return InputError(
        f"{shown(engine)} cannot set {model.id}'s thoughts apart, so `--reasoning {service.reasoning}` is not possible",
        why="It has no parser for their marks: they would stand in the answers, and nothing would limit them.",
        fix=_first_without_or(fix) or _without(service),
        id="PL025",
    )


def budget_clashes(service: Service, *, engine: str, clash: str) -> InputError:
    return InputError(
        f"{shown(engine)} does not start with `{clash}` and a thinking budget",
        why="The part that holds answers to a grammar keeps the budget too, and only the default one (xgrammar) can.",
        fix=(f"leave `{clash}` out", f"or think without a budget:\n{_up(service, 'on')}"),
        id="PL026",
    )


def deaf_parser(model: Model, service: Service, *, engine: str, own: str, ours: str) -> InputError:
    return InputError(
        f"`--reasoning-parser {own}` takes every answer of {model.id} for a thought while thinking is off",
        why="That parser reads no switch: it expects a thought in every answer, and the answer's text stays empty.",
        fix=(
            f"leave the flag out: selfhost gives {shown(engine)} the parser `{ours}`, which hears the switch",
            f"or let it think:\n{_up(service, 'on')}",
        ),
        id="PL027",
    )


def _other_engine(model: Model, service: Service, engine: str, *, budget: bool = False) -> list[str]:
    """The other engine, where it can."""
    able = [
        name
        for name in model.family.reasoning_parser
        if name != engine and (not budget or model.family.budget.get(name, "none") != "none")
    ]
    return [
        f"or with {shown(name)}, which can:\n{command_line('up', service, change={'engine': name})}" for name in able
    ]


def no_such_effort(
    model: Model, service: Service, asked: str, *, levels: Sequence[str], has_budget: bool
) -> InputError:
    tokens: int = next(row["tokens"] for row in _table()["effort_as_budget"] if row["effort"] == asked)
    if isinstance(model.context_native, Known):
        tokens = min(tokens, model.context_native.value // 2)
    known = f"it knows {', '.join(levels)}" if levels else "it was trained without levels"
    fix = [f"use a level it knows:\n{_up(service, f'effort={levels[0]}')}"] if levels else []
    if has_budget:
        fix.append(f"or limit thinking by tokens instead:\n{_up(service, f'budget={tokens}')}")
    return InputError(
        f"{model.id} has no effort `{asked}`: {known}",
        why="A level that a model was not trained for is ignored, or its chat template stops with an error.",
        fix=_first_without_or(fix) or _without(service),
        id="PL023",
    )


def budget_too_large(
    model: Model, service: Service, asked_tokens: int, *, context: int, kept_tokens: int
) -> InputError:
    most = max(0, context - kept_tokens)
    need = asked_tokens + 2048
    fix = [f"a smaller budget:\n{_up(service, f'budget={most}')}"]
    if not isinstance(model.context_native, Known) or need <= model.context_native.value:
        fix.append(f"or more context:\n{command_line('up', service, change={'context': str(need)})}")
    return InputError(
        f"{asked_tokens:,} tokens of thinking leave no room for an answer in {context:,} tokens of context",
        why=f"Prompt, thinking and reply share the context; {kept_tokens:,} tokens are kept for prompt and reply.",
        fix=fix,
        id="PL024",
    )
