"""What pydantic found, in words of the file's author: the key, what stands there, what is expected."""

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from selfhost.core.names import slug
from selfhost.core.redact import mask
from selfhost.core.tree import Tree
from selfhost.shapes.workload import Spot
from selfhost.stack.problems import Problem

_EXPECTED: Final = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "string_unicode": "a text",
    "string_pattern_mismatch": "a text on one line, without blanks around it",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "too_short": "at least one",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
}
_ELSEWHERE: Final = {
    "gpu": "devices", "gpus": "devices", "cuda_visible_devices": "devices", "device_ids": "devices",
    "max_model_len": "context", "context_length": "context", "max_num_seqs": "concurrency",
    "gpu_memory_utilization": "share", "mem_fraction_static": "share", "quantization": "precision",
    "dtype": "precision", "kv_cache": "precision", "kv_cache_dtype": "precision", "thinking": "reasoning",
    "environment": "engine_env", "env": "engine_env", "args": "engine_args", "command": "engine_args",
    "extra_args": "engine_args", "ports": "port", "host_port": "port", "tag": "image", "model_id": "model",
    "budget": "budget_tokens", "level": "effort", "tokens": "budget_tokens",
}  # fmt: skip
"""Words that engines, Compose and charts have for the same."""

Keys = Mapping[str, Sequence[str]]
Loc = tuple[str | int, ...]


def problem_of(error: Mapping[str, Any], root: Tree, *, keys: Keys, examples: Mapping[str, str]) -> Problem:
    """One of pydantic's errors. `keys` has the known ones of each form, `examples` a line for each key."""
    loc: Loc = tuple(error["loc"])
    kind = str(error["type"])
    if loc[-1:] == ("[key]",):
        return _name(error, loc[:-1], root)
    if kind == "said":
        said: Mapping[str, Any] = error["ctx"]
        spot = spot_of((*loc, str(said["key"])), root)
        return Problem(spot=spot, what=said["words"], id="CF005", fix=(said["cure"],))
    if kind == "extra_forbidden":
        return _unknown(loc, root, keys)
    if kind == "missing":
        return _missing(loc, root, examples)
    key = key_of(loc)
    tree = root.at(*loc)
    expected = _expected(kind, error)
    return Problem(
        spot=(tree.spot if tree is not None and tree.is_scalar else spot_of(loc, root)),
        what=f"`{key}` is {shown(tree)}, expected {expected}",
        id="CF005",
        fix=_cure(key, tree, examples),
    )


def spot_of(loc: Loc, root: Tree) -> Spot:
    """Where the key at the end of `loc` stands; the nearest value above it when there is none."""
    parent = root.at(*loc[:-1]) if loc else None
    last = loc[-1] if loc else ""
    if parent is not None and isinstance(last, str) and last in parent.keys:
        return parent.key_spot(last)
    tree = root.at(*loc)
    if tree is not None:
        return tree.spot
    return spot_of(loc[:-1], root) if loc else root.spot


def key_of(loc: Loc) -> str:
    """The last word that is a key: an element of a list is named by its list."""
    return next((part for part in reversed(loc) if isinstance(part, str)), "")


def place_of(loc: Loc) -> str:
    """`in service `chat``, `in `reasoning` of service `chat``, at the top."""
    words = [part for part in loc if isinstance(part, str)]
    if words[:1] == ["services"] and len(words) > 1:
        whose = f"service `{_cut(words[1])}`"
        rest = words[2:]
    elif words:
        whose, rest = f"`{words[0]}`", words[1:]
    else:
        return "at the top of the file"
    inside = f"`{'.'.join(rest)}` of " if rest else ""
    return f"in {inside}{whose}"


def shown(tree: Tree | None) -> str:
    """A value as it stands in the file, short and without secrets."""
    if tree is None or tree.is_null:
        return "empty"
    if tree.map is not None:
        return "a map" if tree.map else "an empty map"
    if tree.list is not None:
        return f"[{', '.join(_cut(one.text) for one in tree.list[:3])}{', …' if len(tree.list) > 3 else ''}]"
    text = mask(_cut(tree.text))
    return json.dumps(text, ensure_ascii=False) if tree.quoted or not isinstance(tree.scalar, int | float) else text


def nearest(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """What `name` may have been meant for, best first, or how others call it."""
    own = _ELSEWHERE.get(name.lower().replace("-", "_"))
    if own is not None and own in known:
        return (own,)
    return tuple(difflib.get_close_matches(name, known, n=3, cutoff=0.7))


def _unknown(loc: Loc, root: Tree, keys: Keys) -> Problem:
    name = str(loc[-1])
    known = keys[_form(loc[:-1])]
    near = nearest(name, known)
    listed = f"known here: {', '.join(f'`{key}`' for key in known)}"
    return Problem(
        spot=spot_of(loc, root),
        what=f"unknown key `{_cut(name)}` {place_of(loc[:-1])}",
        id="CF002",
        fix=(f"perhaps {' or '.join(f'`{one}`' for one in near)}",) if near else (listed,),
    )


def _form(loc: Loc) -> str:
    """Which of the forms stands at `loc`, by the key that holds it."""
    if loc[:1] == ("services",) and len(loc) == 2:
        return "service"
    return {"": "top", "defaults": "service"}.get(key_of(loc), key_of(loc))


def _missing(loc: Loc, root: Tree, examples: Mapping[str, str]) -> Problem:
    name = str(loc[-1])
    return Problem(
        spot=spot_of(loc, root),
        what=f"`{name}` is missing {place_of(loc[:-1])}",
        id="CF004",
        fix=(f"add it, for instance:\n{examples[name]}",) if name in examples else (),
    )


def _name(error: Mapping[str, Any], loc: Loc, root: Tree) -> Problem:
    name = str(loc[-1])
    if error["type"] == "name":
        return Problem(
            spot=spot_of(loc, root),
            what=f"`{_cut(name)}` cannot name a service",
            why="A name becomes a folder and a container: 1 to 63 of a-z 0-9 . _ -, letters or digits at both ends.",
            id="CF039",
            fix=(f"perhaps `{slug(name) or 'my-model'}`",),
        )
    return Problem(
        spot=spot_of(loc, root),
        what=f"`{_cut(name)}` stands {place_of(loc[:-1])}, expected {_expected(str(error['type']), error)}",
        id="CF005",
    )


def _expected(kind: str, error: Mapping[str, Any]) -> str:
    told: Mapping[str, Any] = error.get("ctx") or {}
    if kind == "spelling":
        return str(told["expected"])
    if kind == "literal_error":
        return str(told["expected"]).replace("'", "`")
    if kind in _EXPECTED:
        return _EXPECTED[kind].format(**{name: _number(value) for name, value in told.items()})
    return str(error["msg"]).lower()


def _cure(key: str, tree: Tree | None, examples: Mapping[str, str]) -> tuple[str, ...]:
    text = tree.text if tree is not None and tree.is_scalar else ""
    if "${" in text:
        return ("variables are not filled in here; write the value itself",)
    outside, colon, _ = text.rpartition(":")
    if key == "port" and colon:
        port = outside.rpartition(":")[2]
        return (f"selfhost publishes on 127.0.0.1 by itself; write:\nport: {port if port.isdigit() else 8000}",)
    return (f"for instance:\n{examples[key]}",) if key in examples else ()


def _number(value: object) -> str:
    """A bound as a person writes it: 1.0 is 1, 65535 is 65,535."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}…"
