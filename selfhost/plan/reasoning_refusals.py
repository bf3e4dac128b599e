"""What cannot be had, said before the start, with the nearest thing that can."""

from collections.abc import Sequence

from selfhost.core.errors import InputError
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.service import ReasoningAsk

_SIBLINGS = {
    "F01": "Qwen/Qwen3-4B-Thinking-2507",
    "F02": "Qwen/Qwen3-4B-Instruct-2507",
    "F06": "qwen3-32b",
    "F07": "deepseek-ai/DeepSeek-V3.1",
    "F16": "moonshotai/Kimi-K2.5",
    "F17": "moonshotai/Kimi-K2.5",
    "F40": "allenai/Olmo-3-7B-Instruct",
}
"""A sibling checkpoint in the other mode, or one that can be switched."""


def _up(model: Model, mode: str) -> str:
    return f"selfhost up {model.ref} --reasoning {mode}"


def _first_without_or(fix: Sequence[str]) -> list[str]:
    return [fix[0].removeprefix("or "), *fix[1:]] if fix else []


def _sibling(model: Model) -> list[str]:
    other = _SIBLINGS.get(model.family.id)
    return [f"or a sibling that can:\nselfhost up {other}"] if other else []


def does_not_think(model: Model, ask: ReasoningAsk) -> InputError:
    return InputError(
        f"{model.id} does not think, so `--reasoning {ask}` cannot be had",
        why="It was not trained to; a reasoning parser would take its whole answers for thoughts.",
        fix=[f"leave --reasoning out:\nselfhost up {model.ref}", *_sibling(model)],
        id="PL021",
    )


def cannot_stop(model: Model, *, has_budget: bool, levels: Sequence[str]) -> InputError:
    fix = []
    if "low" in levels:
        fix.append(f"think little:\n{_up(model, 'effort=low')}")
    if has_budget:
        fix.append(f"or cut thinking off at once, which it was never trained for:\n{_up(model, 'budget=0')}")
    fix += _sibling(model)
    return InputError(
        f"{model.id} always thinks; `--reasoning off` cannot be had",
        why="Its chat template has no switch for it.",
        fix=_first_without_or(fix) or [f"leave --reasoning out:\nselfhost up {model.ref}"],
        id="PL020",
    )


def no_budget(model: Model, ask: ReasoningAsk, *, levels: Sequence[str], can_stop: bool) -> InputError:
    fix = [f"think little:\n{_up(model, 'effort=low')}"] if "low" in levels else []
    fix += [f"or not at all:\n{_up(model, 'off')}"] if can_stop else []
    return InputError(
        f"{model.id} takes no thinking budget on vLLM, so `--reasoning {ask}` cannot be had",
        why="Its parser does not say where thinking begins and ends; vLLM answers 400 to a request with a budget.",
        fix=_first_without_or(fix) or [f"leave --reasoning out:\nselfhost up {model.ref}"],
        id="PL022",
    )


def no_such_effort(model: Model, ask: ReasoningAsk, *, levels: Sequence[str], has_budget: bool) -> InputError:
    tokens = {"low": 1024, "medium": 4096, "high": 16384}[ask.effort or "medium"]
    if isinstance(model.context_native, Known):
        tokens = min(tokens, model.context_native.value // 2)
    known = f"it knows {', '.join(levels)}" if levels else "it was trained without levels"
    fix = [f"use a level it knows:\n{_up(model, f'effort={levels[0]}')}"] if levels else []
    if has_budget:
        fix.append(f"or limit thinking by tokens instead:\n{_up(model, f'budget={tokens}')}")
    return InputError(
        f"{model.id} has no effort `{ask.effort}`: {known}",
        why="A level that a model was not trained for is ignored, or its chat template stops with an error.",
        fix=_first_without_or(fix) or [f"leave --reasoning out:\nselfhost up {model.ref}"],
        id="PL023",
    )


def budget_too_large(model: Model, ask: ReasoningAsk, *, context: int, kept_tokens: int) -> InputError:
    most = max(0, context - kept_tokens)
    need = (ask.budget_tokens or 0) + 2048
    return InputError(
        f"{ask.budget_tokens:,} tokens of thinking leave no room for an answer in {context:,} tokens of context",
        why=f"Prompt, thinking and reply share the context; {kept_tokens:,} tokens are kept for prompt and reply.",
        fix=[
            f"a smaller budget:\n{_up(model, f'budget={most}')}",
            f"or more context:\nselfhost up {model.ref} --reasoning {ask} --context {need}",
        ],
        id="PL024",
    )
