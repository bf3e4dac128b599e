"""From trees to the forms of schema.py: everything that is sound, and a problem for everything that is not."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from selfhost.core.tree import Tree
from selfhost.stack.problems import Problems
from selfhost.stack.words import Loc, place_of, problem_of, spot_of

if TYPE_CHECKING:
    from selfhost.stack.schema import SelfhostYaml

_RAW: Final = ("engine_args", "engine_env")
"""Passed on as written: `1.10` is not 1.1 there."""
_FREE: Final = "x-"
"""Keys at the top that belong to the user, for anchors, as in Compose."""


def read(root: Tree, problems: Problems) -> "SelfhostYaml | None":
    """What is sound in `root`; None when not even the outer form is."""
    from pydantic import ValidationError  # at use: 100 ms

    from selfhost.stack.schema import SelfhostYaml

    keys, examples = _known()
    data = _data(root, problems)
    while True:
        try:
            return SelfhostYaml.model_validate(data)
        except ValidationError as error:
            wrong = error.errors(include_url=False)
        problems.found += [problem_of(one, root, keys=keys, examples=examples) for one in wrong]
        if not _pruned(data, [one["loc"] for one in wrong]):
            return None


def _data(root: Tree, problems: Problems) -> dict[str, Any]:
    """Plain data. What is empty is a problem here and not there: a value may have been forgotten."""
    data: dict[str, Any] = {}
    for key, tree in root.items():
        if key.startswith(_FREE):
            continue
        if key == "services" and tree.map is not None:
            data[key] = {
                name: _service(service, (key, name), root, problems) if service.map is not None else service.data
                for name, service in tree.items()
            }
            data[key] = {name: {} if service is None else service for name, service in data[key].items()}
        elif key == "defaults" and (tree.map is not None or tree.is_null):
            data[key] = _service(tree, (key,), root, problems)
        else:
            data[key] = tree.data
    return data


def _service(tree: Tree, loc: tuple[str, ...], root: Tree, problems: Problems) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in tree.items():
        for empty in _empty(value, (key,)) if key not in _RAW or value.is_null else ():
            spot = spot_of((*loc, *empty), root)
            problems.add(spot, f"`{empty[-1]}` {place_of(loc)} is empty", id="CF005", fix=("say it, or take it out",))
        if not value.is_null:
            data[key] = _raw(key, value) if key in _RAW else _filled(value)
    return data


def _empty(tree: Tree, loc: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if tree.is_null:
        yield loc
    for key, value in tree.items():
        yield from _empty(value, (*loc, key))


def _filled(tree: Tree) -> object:
    if tree.map is not None:
        return {key: _filled(value) for key, value in tree.items() if not value.is_null}
    return tree.data


def _raw(key: str, tree: Tree) -> object:
    """Words as written; only as flags in a map are `true`, `false` and nothing what they look like."""
    if tree.list is not None:
        return [_text(one) for one in tree.list]
    if tree.map is None:
        return tree.data
    return {name: _flag(one) if key == "engine_args" else _text(one) for name, one in tree.items()}


def _flag(tree: Tree) -> object:
    if tree.list is not None:
        return [_text(one) for one in tree.list]
    return tree.scalar if tree.is_scalar and isinstance(tree.scalar, bool) else _text(tree)


def _text(tree: Tree) -> object:
    return tree.text if tree.is_scalar and not tree.is_null else tree.data


def _pruned(data: dict[str, Any], wrong: Iterable[Loc]) -> bool:
    """Take out the keys of services, or else the whole, that `wrong` points into; False when nothing sound is left."""
    taken = False
    for loc in wrong:
        where = [str(part) for part in loc if part != "[key]"]
        if not where or where[0] == "version" or where == ["services"]:
            return False
        depth = min(len(where), 3 if where[0] == "services" else 2)
        holder: Any = data
        for part in where[: depth - 1]:
            holder = holder.get(part, {}) if isinstance(holder, dict) else {}
        if isinstance(holder, dict) and where[depth - 1] in holder:
            del holder[where[depth - 1]]
            taken = True
    return taken and bool(data.get("services"))


@cache
def _known() -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The keys of each form by the word it stands under, and a right line for each key."""
    import json

    from selfhost.stack import schema

    forms: dict[str, type[schema.Form]] = {
        "top": schema.SelfhostYaml, "service": schema.Service, "reasoning": schema.Reasoning,
        "precision": schema.Precision, "envelope": schema.Envelope, "ttft": schema.Latency, "tpot": schema.Latency,
        "kubernetes": schema.Kubernetes, "tolerations": schema.Toleration,
    }  # fmt: skip
    examples = {}
    for form in reversed(forms.values()):
        for name, field in form.model_fields.items():
            for example in (field.examples or ())[:1]:
                plain = example if isinstance(example, str) else json.dumps(example)
                examples[name] = f"{name}: {plain}"
    examples["services"] = "services:\n  chat:\n    model: qwen3-4b"
    return {word: tuple(form.model_fields) for word, form in forms.items()}, examples
