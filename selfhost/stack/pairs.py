"""Two things that are right by themselves and not together, in one service. What a model can do, the plan knows."""

from typing import TYPE_CHECKING

from selfhost.shapes.units import format_tokens
from selfhost.stack.asked import Asked
from selfhost.stack.problems import Problems

if TYPE_CHECKING:
    from selfhost.stack import schema

ID = "CF006"


def check(asked: Asked, problems: Problems) -> None:
    if not asked.given.get("model") and "model" not in asked.wrong:
        problems.add(
            asked.spot,
            f"service `{asked.name}` names no model",
            id="CF004",
            fix=("add it, for instance:\nmodel: qwen3-4b",),
        )
    _reasoning(asked, problems)
    _lengths(asked, problems)
    _cluster(asked, problems)
    if asked.given.get("runtime") == "process" and "image" in asked.given:
        problems.add(
            asked.spot_of("image"),
            f"`image` of `{asked.name}` is for a container, and its runtime is `process`",
            why="A process runs from an environment that selfhost installs; an image is never pulled for it.",
            id=ID,
            fix=("run it in a container:\nruntime: docker", "or take `image` out"),
        )


def _reasoning(asked: Asked, problems: Problems) -> None:
    form: schema.Reasoning | None = asked.given.get("reasoning")
    if form is None:
        return
    if form.mode == "budget" and form.budget_tokens is None:
        problems.add(
            asked.spot_of("reasoning", "mode"),
            f"mode `budget` of `{asked.name}` says no number of tokens",
            id=ID,
            fix=("say how long it may think:\nreasoning: {mode: budget, budget_tokens: 2048}",),
        )
    if form.mode == "effort" and form.effort is None:
        problems.add(
            asked.spot_of("reasoning", "mode"),
            f"mode `effort` of `{asked.name}` says no level",
            id=ID,
            fix=("name one:\nreasoning: {mode: effort, effort: low}",),
        )
    if form.mode != "budget" and form.budget_tokens is not None:
        problems.add(
            asked.spot_of("reasoning", "budget_tokens"),
            f"`budget_tokens` of `{asked.name}` stands beside mode `{form.mode}`",
            why=_WHY_NO_BUDGET[form.mode],
            id=ID,
            fix=(f"make it the mode:\nreasoning: {{mode: budget, budget_tokens: {form.budget_tokens}}}",
                 "or take `budget_tokens` out"),
        )  # fmt: skip
    if form.mode != "effort" and form.effort is not None:
        problems.add(
            asked.spot_of("reasoning", "effort"),
            f"`effort` of `{asked.name}` stands beside mode `{form.mode}`",
            why="A level of effort is a mode of its own; no engine takes both.",
            id=ID,
            fix=(f"make it the mode:\nreasoning: {{mode: effort, effort: {form.effort}}}", "or take `effort` out"),
        )


def _cluster(asked: Asked, problems: Problems) -> None:
    form: schema.Kubernetes | None = asked.given.get("kubernetes")
    if form is None:
        return
    if form.host and not form.tls_secret:
        problems.add(
            asked.spot_of("kubernetes", "host"),
            f"`host` of `{asked.name}` has no `tls_secret`",
            why="The key that clients send must not travel in the clear.",
            id=ID,
            fix=(
                "make it:\nkubectl create secret tls NAME --cert=tls.crt --key=tls.key",
                f"and name it:\nkubernetes: {{host: {form.host}, tls_secret: NAME}}",
            ),
        )
    if form.sub_path and not form.existing_claim:
        problems.add(
            asked.spot_of("kubernetes", "sub_path"),
            f"`sub_path` of `{asked.name}` stands without `existing_claim`",
            why="It is a folder inside a claim that is there already; in one of its own selfhost chooses the folder.",
            id=ID,
            fix=("name the claim, or take `sub_path` out",),
        )


_WHY_NO_BUDGET = {
    "off": "A model that does not think has no thoughts to count; with a budget it thinks, up to that length.",
    "on": "With `on` it thinks as long as it likes; a limit is a mode of its own.",
    "effort": "A level and a limit are two ways of saying how long; engines take one of them.",
}


def _lengths(asked: Asked, problems: Problems) -> None:
    given = asked.given
    context: int | None = given.get("context")
    if context is None:
        return
    form: schema.Reasoning | None = given.get("reasoning")
    if form is not None and form.mode == "budget" and (form.budget_tokens or 0) >= context:
        problems.add(
            asked.spot_of("reasoning", "budget_tokens"),
            f"a budget of {format_tokens(form.budget_tokens or 0)} tokens leaves no room in the context of "
            f"`{asked.name}`, {format_tokens(context)} (line {asked.spot_of('context').line})",
            why="Prompt, thoughts and answer share one context.",
            id=ID,
            fix=("lower `budget_tokens`, or raise `context`",),
        )
    ceiling: int | None = given.get("context_ceiling")
    if ceiling is not None and ceiling >= context:
        problems.add(
            asked.spot_of("context_ceiling"),
            f"a ceiling of {format_tokens(ceiling)} added tokens leaves no room in the context of `{asked.name}`, "
            f"{format_tokens(context)} (line {asked.spot_of('context').line})",
            id=ID,
            fix=("lower `context_ceiling`, or raise `context`",),
        )
    envelope: schema.Envelope | None = given.get("envelope")
    if envelope is not None and (envelope.isl or 0) + (envelope.osl or 0) > context:
        need = (envelope.isl or 0) + (envelope.osl or 0)
        problems.add(
            asked.spot_of("context"),
            f"the context of `{asked.name}`, {format_tokens(context)}, is shorter than its envelope: "
            f"{format_tokens(envelope.isl or 0)} in + {format_tokens(envelope.osl or 0)} out = {format_tokens(need)}",
            id=ID,
            fix=(f"raise it, or leave it out:\ncontext: {need}",),
        )
