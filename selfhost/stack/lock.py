"""selfhost.lock as text and back: the same entries give the same bytes; damage and newer forms are told apart."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place
from selfhost.stack.entry import Entry

SCHEMA: Final = "selfhost.stack-lock/1"
DAMAGED: Final = "CF023"
_KIND, _, _VERSION = SCHEMA.rpartition("/")
_AGAIN: Final = "write it anew, from what runs here:\nselfhost lock"


def to_text(entries: Mapping[str, Entry]) -> str:
    """Sorted, one value a line, no times: two locks of the same are the same file."""
    services = {name: _plain(entry) for name, entry in sorted(entries.items())}
    return json.dumps({"schema": SCHEMA, "services": services}, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def from_text(text: str, *, path: str) -> dict[str, Entry]:
    """The services of a lock. Raises InputError for what is none, and for a form of a later selfhost."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise _damaged(path, f"It is no JSON: {_first_line(error)}.", line) from None
    if not isinstance(raw, dict) or "schema" not in raw:
        raise _damaged(path, "It names no `schema`.", None)
    _check_schema(str(raw["schema"]), path)
    services = raw.get("services")
    if not isinstance(services, dict):
        raise _damaged(path, "It has no `services`.", None)
    unknown = sorted(raw.keys() - {"schema", "services"})
    if unknown:
        raise _damaged(path, f"`{unknown[0]}` is no key of this form.", None)
    return {name: _entry(name, body, path) for name, body in services.items()}


def _plain(entry: Entry) -> dict[str, Any]:
    body: dict[str, Any] = asdict(entry)
    return body


def _entry(name: str, body: object, path: str) -> Entry:
    from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

    try:
        closed = with_config(ConfigDict(extra="forbid", strict=True))(Entry)
        return TypeAdapter(closed).validate_json(json.dumps(body))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in ("services", name, *first["loc"]))
        raise _damaged(path, f"`{where}`: {first['msg'].lower()}.", None) from None
    except ValueError as error:  # half of a pair of UTF-16, which JSON can spell and no text holds
        raise _damaged(path, f"`services.{name}`: {_first_line(error)}.", None) from None


def _check_schema(schema: str, path: str) -> None:
    if schema == SCHEMA:
        return
    kind, _, number = schema.rpartition("/")
    if kind == _KIND and number.isdecimal() and int(number[:9]) > int(_VERSION):
        raise InputError(
            f"{path} was written by a newer selfhost (schema {schema}, this one reads {SCHEMA})",
            why="What it holds beyond that would be passed over, and the lock would promise less than it says.",
            fix=("upgrade selfhost in this environment, then run the command again",),
            id="CF024",
            place=Place(path=path),
        )
    raise InputError(
        f"{path} is no lock of services: its schema is {schema[:60]}",
        why=f"A lock that `selfhost lock` writes is of schema {SCHEMA}.",
        fix=("name the right file", _AGAIN),
        id=DAMAGED,
        place=Place(path=path),
    )


def _damaged(path: str, why: str, line: int | None) -> InputError:
    return InputError(
        f"{path} is damaged, or is no lock",
        why=why,
        fix=("take it back from version control", _AGAIN),
        id=DAMAGED,
        place=Place(path=path, line=line),
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["damaged"])[0][:200]
