"""A Helm template: how one is known, and what to do with it, for it is no manifest before it is rendered."""

import re
import shlex
from pathlib import PurePosixPath

from selfhost.core.errors import InputError
from selfhost.core.redact import mask
from selfhost.shapes.finding import Place

_VALUES = re.compile(
    r"\{\{[^{}\n]{0,200}?(?:\.(?:Values|Release|Chart)\b|\b(?:include|template)\s+[\"`])",
)
"""What only Helm fills in. Chat templates in a ConfigMap have braces too, and are none of Helm's."""


def is_template(text: str) -> bool:
    """Whether a manifest still waits for `helm template`."""
    return "{{" in text and _first(text) is not None


def _first(text: str) -> int | None:
    """Where Helm's first word stands outside of comments."""
    for found in _VALUES.finditer(text):
        if not text[text.rfind("\n", 0, found.start()) + 1 : found.start()].lstrip().startswith("#"):
            return found.start()
    return None


def not_rendered(text: str, path: str) -> InputError:
    line = text.count("\n", 0, _first(text) or 0) + 1
    shown = text.split("\n", line)[line - 1].strip()
    chart = PurePosixPath(path)
    folder = next((parent.parent for parent in chart.parents if parent.name == "templates"), PurePosixPath("CHART"))
    return InputError(
        "this is a Helm template, not yet a manifest",
        why="Values, conditions and loops decide what it asks for, so nothing can be told before it is rendered.",
        fix=(f"render the chart with your values and judge the result:\n{_command(folder)}",),
        evidence=f"{line} | {mask(shown[:100])}",
        id="CF059",
        place=Place(path=path, line=line),
    )


def not_filled_in(text: str, path: str, line: int) -> InputError:
    shown = text.split("\n", line)[line - 1].strip()
    return InputError(
        "this is a template with a place-holder, not yet a manifest",
        why="A cluster reads the braces as a map, which belongs nowhere here; what they stand for cannot be told.",
        fix=("render it first",),
        evidence=f"{line} | {mask(shown[:100])}",
        id="CF059",
        place=Place(path=path, line=line),
    )


def _command(folder: PurePosixPath) -> str:
    return f"helm template {shlex.quote(str(folder))} -f values.yaml | selfhost lint -"
