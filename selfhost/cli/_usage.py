"""Wrong usage, as typer reports it, in our words."""

from typing import Any

from typer import TyperException

# typer 0.28 vendors click; these kinds have no public name there (docs/decisions/002)
from typer._click.exceptions import BadParameter, MissingParameter, NoSuchOption, UsageError

from selfhost.core.errors import InputError


def translate(wrong: TyperException) -> InputError:
    """The error that a person reads: what was wrong, a near name if there is one, and where the options are listed."""
    context = wrong.ctx if isinstance(wrong, UsageError) else None
    path = context.command_path if context is not None else "selfhost"
    see = f"all options:\n{path} --help"
    match wrong:
        case NoSuchOption():
            import difflib  # at use: only a wrong name needs it

            near = difflib.get_close_matches(wrong.option_name, _options(context), n=3, cutoff=0.7)
            what = f"`{path}` has no option `{wrong.option_name}`"
            return InputError(what, fix=(*(f"perhaps `{option}`" for option in near), see), id="CF091")
        case MissingParameter():
            return InputError(f"`{path}` needs {_named(wrong)}", fix=(see,), id="CF093")
        case BadParameter():
            return InputError(f"{_named(wrong)}: {_sentence(wrong.message)}", fix=(see,), id="CF092")
        case _:
            return InputError(f"`{path}`: {_sentence(wrong.format_message())}", fix=(see,), id="CF093")


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
    return message[:1].lower() + message[1:]
