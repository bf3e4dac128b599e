"""The one Jinja environment: a value reaches a file only through a filter that escapes it."""

from functools import cache
from typing import TYPE_CHECKING

from selfhost.core.resources import resource
from selfhost.render import escape
from selfhost.render.escape import Escaped
from selfhost.render.lines import shell_line, unit_line, yaml_line

if TYPE_CHECKING:
    from jinja2 import Environment

_FILTERS = {
    "shell": escape.shell,
    "shell_words": escape.shell_words,
    "name": escape.shell_name,
    "comment": escape.comment,
    "line": escape.comment,
    "systemd": escape.systemd,
    "systemd_text": escape.systemd_text,
    "systemd_value": escape.systemd_value,
    "systemd_word": escape.systemd_word,
    "yaml": escape.yaml,
    "compose": escape.compose,
    "yaml_line": yaml_line,
    "unit_line": unit_line,
    "shell_line": shell_line,
}


def refuse_unescaped(value: object) -> object:
    """Raise TypeError for a value that no filter escaped: found by the first test, not by a user."""
    if not isinstance(value, Escaped):
        raise TypeError(f"{value!r} reached the template without an escaping filter")
    return value


@cache
def environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # at use: 116 ms

    made = Environment(
        loader=FunctionLoader(lambda name: resource("templates", name).read_text(encoding="utf-8")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - no HTML is written; `finalize` refuses whatever is not escaped
        finalize=refuse_unescaped,
    )
    made.filters.update(_FILTERS)
    return made
