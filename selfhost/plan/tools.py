"""Tool calls: the parser of the family on this engine, on by itself where there is one."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.engines.names import shown
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, EnforcedBy, Evidence

_OFF = "--enable-auto-tool-choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """`parser` is empty where tool calls are not read."""

    parser: str
    decision: Decision
    flags: tuple[str, ...] = ()
    """Switches, without values, that the engine needs beside the parser."""


@cache
def _table() -> dict[str, Any]:
    return read_table("selfhost.plan", "tools.toml")


def decide_tools(*, model: Model, engine: str, passed: PassedOn) -> Tools:
    """What the user passes on counts before the family's own parser."""
    own = passed.text("--tool-call-parser")
    if passed.text(_OFF) == "false":
        return _without(model, engine, reason="switched off", by=passed.by(_OFF))
    parser = own or model.family.tool_parser.get(engine, "")
    need = _need(model, engine)
    if not parser:
        return _without(model, engine, reason=_why_none(model, engine, need))
    missing = need.get("template", "") if "--chat-template" not in passed.flags and own is None else ""
    reason = "passed on" if own else "the family writes its tool calls in this form"
    if missing:
        reason += (
            f"; {shown(engine)} documents it with the chat template {missing}, which is in its repository and images "
            "and not in its wheel"
        )
    return Tools(
        parser=parser,
        flags=tuple(_table()["engine"].get(engine, {}).get("flags", ())),
        decision=Decision(
            field="tools",
            value=f"parser {parser}",
            reason=reason,
            source="user" if own else f"{model.family.source}; {need['source']}" if missing else model.family.source,
            evidence=Evidence.READ_IN_CODE,
            enforced_by=EnforcedBy.SERVER,
            by=passed.by("--tool-call-parser") if own else "selfhost",
            alternatives=(f"-- --chat-template {missing}",) if missing else (),
        ),
    )


def _need(model: Model, engine: str) -> Mapping[str, Any]:
    rows = (row for row in _table()["need"] if (row["family"], row["engine"]) == (model.family.id, engine))
    found: Mapping[str, Any] = next(rows, {})
    return found


def _why_none(model: Model, engine: str, need: Mapping[str, Any]) -> str:
    if need.get("plugin"):
        return f"its repository brings its own parser, {need['plugin']}: read it, then pass --tool-parser-plugin"
    others = [shown(name) for name in model.family.tool_parser if name != engine]
    if others:
        return f"{shown(engine)} has no parser for this family; {' and '.join(others)} has one"
    return "no parser is known for this family"


def _without(model: Model, engine: str, *, reason: str, by: str = "selfhost") -> Tools:
    return Tools(
        parser="",
        decision=Decision(
            field="tools",
            value="none",
            reason=reason,
            source=model.family.source or _table()["engine"].get(engine, {}).get("source", ""),
            evidence=Evidence.ASSUMED,
            by=by,
        ),
    )
