"""Wrong usage, as typer reports it, in our words."""

import re
from typing import Any

from typer import TyperException

# typer 0.28 vendors click; these kinds have no public name there (docs/decisions/002)
from typer._click.exceptions import (
    BadOptionUsage,
    BadParameter,
    MissingParameter,
    NoSuchOption,
    UsageError,
)

from selfhost.core.errors import InputError

_EXTRA = re.compile(r"unexpected extra arguments?(?:\(s\))? \((?P<words>.*)\)\.?$", re.DOTALL)
_WORDS = (
    (re.compile(r"is not a valid (?:int|integer)\b"), "is not a whole number"),
    (re.compile(r"is not a valid float\b"), "is not a number"),
    (re.compile(r"is not in the range x>=(\S+)"), r"is too small, the least is \1"),
    (re.compile(r"is not in the range x>(\S+)"), r"is too small, it must be more than \1"),
    (re.compile(r"is not in the range (\S+)<=x<=(\S+)"), r"is not between \1 and \2"),
)
"""The parser's words, and the same for people who are no programmers."""


def translate(wrong: TyperException, *, command: str = "selfhost") -> InputError:
    """The error that a person reads: what was wrong, a near name if there is one, and where the options are listed.

    `command` is what was called, for where the parser does not say it.
    """
    context = wrong.ctx if isinstance(wrong, UsageError) else None
    path = context.command_path if context is not None else command
    see = f"all options:\n{path} --help"
    match wrong:
        case NoSuchOption():
            return _no_such_option(path, wrong.option_name, context)
        case MissingParameter():
            return InputError(f"`{path}` needs {_named(wrong)}", fix=(see,), id="CF093")
        case BadParameter():
            return InputError(f"{_named(wrong)}: {_sentence(wrong.message)}", fix=(see,), id="CF092")
        case _:
            return InputError(_other(path, context, wrong), fix=(see,), id="CF093")


def _no_such_option(path: str, option: str, context: Any) -> InputError:
    import difflib  # at use: only a wrong name needs it

    near = difflib.get_close_matches(option, _options(context), n=3, cutoff=0.7)
    hints = ("the version:\nselfhost --version",) if option == "--version" else (f"perhaps `{name}`" for name in near)
    return InputError(f"`{path}` has no option `{option}`", fix=(*hints, f"all options:\n{path} --help"), id="CF091")


def _other(path: str, context: Any, wrong: TyperException) -> str:
    message = wrong.format_message()
    if isinstance(wrong, BadOptionUsage):
        lacks = "requires an argument" in message
        return f"`{wrong.option_name}` {'needs a value behind it' if lacks else 'takes no value'}"
    extra = _EXTRA.search(message)
    if extra is None or context is None:
        return f"`{path}`: {_sentence(message)}"
    takes = [param for param in context.command.params if param.param_type_name == "argument"]
    allowed = f"one {takes[0].make_metavar(context).strip('[]')} only" if takes else "no names or files"
    return f"`{path}` takes {allowed}; too many: {extra['words']}"


def _named(wrong: BadParameter) -> str:
    hint = wrong.param_hint
    if hint is None and wrong.param is not None and wrong.ctx is not None:
        hint = wrong.param.get_error_hint(wrong.ctx)
    return (hint if isinstance(hint, str) else " / ".join(hint or ())).replace("'", "`")


def _options(context: Any) -> list[str]:
    if context is None:
        return []
    return [name for param in context.command.get_params(context) for name in param.opts if name.startswith("--")]


def _sentence(message: str) -> str:
    message = message.strip().removesuffix(".").replace("'", "`")
    for theirs, ours in _WORDS:
        message = theirs.sub(ours, message)
    return message[:1].lower() + message[1:]
