"""The chart as data: its values with those of a plan over them as Helm merges them, its scripts and its number."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from selfhost.core.resources import resource
from selfhost.core.yaml import documents

NAME = "selfhost-model"
FOLDER = f"helm/{NAME}"
Values = dict[str, Any]


def merged(values: Mapping[str, Any]) -> Values:
    """The chart's defaults with `values` over them: maps are merged, null takes a key out (Helm, Values Files)."""
    return over(defaults(), values)


@cache
def _defaults() -> Values:
    return dict(_parsed("values.yaml"))


def defaults() -> Values:
    return over(_defaults(), {})


def over(below: Mapping[str, Any], above: Mapping[str, Any], *, keep_null: bool = False) -> Values:
    """`keep_null`: of two files for the same chart, whose null is for the chart's own values."""
    found: Values = {key: over(value, {}) if isinstance(value, Mapping) else value for key, value in below.items()}
    for key, value in above.items():
        under = found.get(key)
        if isinstance(value, Mapping):
            found[key] = over(under if isinstance(under, Mapping) else {}, value, keep_null=keep_null)
        elif value is None and not keep_null and found.get(key) is not None:
            del found[key]
        else:
            found[key] = value
    return found


@cache
def chart() -> Mapping[str, Any]:
    """Chart.yaml."""
    return _parsed("Chart.yaml")


@cache
def script(name: str) -> str:
    """A file of the chart's `files`, as its pods get it."""
    return resource("templates", f"{FOLDER}/files/{name}").read_text(encoding="utf-8").strip() + "\n"


def files() -> dict[str, str]:
    """Every file of the chart by its path in it, in a stable order."""
    base = resource("templates", FOLDER)
    found = sorted(path for path in base.rglob("*") if path.is_file())
    return {path.relative_to(base).as_posix(): path.read_text(encoding="utf-8") for path in found}


@cache
def _parsed(name: str) -> Mapping[str, Any]:
    text = resource("templates", f"{FOLDER}/{name}").read_text(encoding="utf-8")
    found = documents(text, path=name)[0].data
    if not isinstance(found, Mapping):
        raise TypeError(f"{name} is no map")
    return found
