"""Numbers as people type them: `8192`, and `32k` where the engine's own flags take it."""

import re

import typer

_PLAIN = re.compile(r"[+-]?\d+")
_SHORT = re.compile(r"(?P<digits>\d+(?:\.\d+)?)(?P<unit>[kKmM])")


def whole(text: str) -> int:
    """A whole number. Raises BadParameter, which becomes an InputError."""
    found = text.strip()
    if not _PLAIN.fullmatch(found):
        raise typer.BadParameter(f"`{text}` is not a whole number")
    return _in_bounds(found, text)


def short(text: str) -> int:
    """A whole number, or one such as `32k` (32,000), `32K` (32,768) or `1m`: as the engine reads its own flags."""
    found = text.strip()
    if not _SHORT.fullmatch(found):
        return whole(text)
    from selfhost.engines.vllm import count  # at use: most runs have no such number

    counted = count(found)
    if counted is None:
        raise typer.BadParameter(f"`{text}` is not a whole number")
    return counted


def _in_bounds(digits: str, text: str) -> int:
    if len(digits) > 18:
        raise typer.BadParameter(f"`{text[:18]}…` is too large a number")
    return int(digits)
