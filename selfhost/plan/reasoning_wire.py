"""How a family's thinking is switched on the wire: one entry per class, details per family in reasoning.toml."""

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.shapes.model import Family, ReasoningClass

Fields = dict[str, object]

BOTH_ON: Fields = {"enable_thinking": True, "thinking": True}
BOTH_OFF: Fields = {"enable_thinking": False, "thinking": False}
"""Both spellings, always: templates drop the one they do not know, and each parser reads at least one."""
THINK_STRINGS = {"reasoning_start_str": "<think>", "reasoning_end_str": "</think>"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWords:
    """What an engine calls things, and what it keeps by itself: a row of reasoning.toml."""

    response_field: str
    """Where a thought stands in an answer's message, and in a stream's delta."""
    budget_fields: tuple[str, ...]
    """Path of the request field with the tokens that a thought may have."""
    budget_flags: tuple[str, ...] = ()
    """Switches of the server that a budget needs."""
    budget_variable: str = ""
    """Environment variable with a budget for every request that sends none; empty where there is none."""
    no_budget: str = ""
    """What happens to a budget that the parser does not support."""
    clashes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Engine flag → values with which a budget stops the server."""
    deaf: frozenset[str] = frozenset()
    """Parsers that expect a thought in every answer, whatever the request says."""

    def budget(self, tokens: int) -> Fields:
        """The request fields of a budget."""
        value: object = tokens
        for name in reversed(self.budget_fields):
            value = {name: value}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Fields that put a family into each mode. `on` and `off` are None where that mode cannot be asked for.

    `top_level`: they are fields of the request itself, not of `chat_template_kwargs`.
    """

    parser: str
    """Empty where the engine has none: thoughts then stay in the text."""
    engine: EngineWords
    on: Fields | None = None
    off: Fields | None = None
    can_switch: bool = False
    """One request field is enough to change the mode."""
    top_level: bool = False
    server_reads_effort: bool = True
    effort_key: str = ""
    efforts: dict[str, str] = field(default_factory=dict)
    """What may be asked → the family's own word for it."""
    has_budget: bool = False
    budget_key: str = ""
    """Template variable of a budget that the model was trained to keep."""
    client: Fields = field(default_factory=dict)
    """Request fields without which thoughts are not found in this family's answers."""
    flags: tuple[str, ...] = ()
    note: str = ""

    @property
    def on_fields(self) -> Fields:
        return self.on or {}

    def server(self, fields: Fields | None) -> Fields:
        return dict(fields or {})

    def request(self, fields: Fields | None) -> Fields:
        if not fields:
            return dict(self.client) if fields is not None else {}
        told: Fields = dict(fields) if self.top_level else {"chat_template_kwargs": dict(fields)}
        return {**told, **self.client}

    @property
    def possible(self) -> tuple[str, ...]:
        """Every mode that could be asked for."""
        told = self.can_switch and not self.budget_key  # a budget of 0 still writes a thought into the prompt
        off = ["off"] if self.off is not None and (self.parser or told) else []
        if not self.parser:
            return tuple(off)
        modes = ["on", *off] + (["budget=N"] if self.has_budget else [])
        return (*modes, *(f"effort={level}" for level in self.efforts))


@cache
def _table() -> dict[str, Any]:
    return read_table("selfhost.plan", "reasoning.toml")


@cache
def words_of(engine: str) -> EngineWords:
    """Raises KeyError for an engine that the table does not know."""
    row = _table()["engine"][engine]
    return EngineWords(
        response_field=row["response_field"],
        budget_fields=tuple(row["budget_fields"]),
        budget_flags=tuple(row.get("budget_flags", ())),
        budget_variable=row.get("budget_variable", ""),
        no_budget=row["no_budget"],
        clashes={flag: tuple(values) for flag, values in row.get("clashes", {}).items()},
        deaf=frozenset(row["deaf"]),
    )


@cache
def _details() -> dict[str, dict[str, Any]]:
    return {row["family"]: row for row in _table()["family"]}


def wire_of(family: Family, *, engine: str) -> Wire:
    """The wire of `family` on `engine`; of the class alone where the family has no row of its own."""
    shared = _details().get(family.id, {})
    details = {**shared, **shared.get(engine, {})}
    budget = family.budget.get(engine, "none")
    kind = family.reasoning_class
    mode = _MODES.get(kind, {})
    key = details.get("effort_key", "reasoning_effort" if kind in _EFFORT else "")
    flags: tuple[str, ...] = ("--reasoning-config", json.dumps(THINK_STRINGS)) if budget == "config" else ()
    if "effort_map" in details:
        flags += ("--reasoning-effort-map", json.dumps(details["effort_map"]))
    return Wire(
        parser=family.reasoning_parser.get(engine, ""),
        engine=words_of(engine),
        on=details.get("on", mode.get("on")),
        off=details.get("off", mode.get("off")),
        can_switch=kind in _SWITCHED,
        top_level=details.get("top_level", False),
        server_reads_effort=details.get("server_reads_effort", True),
        effort_key=key,
        efforts=dict(details.get("efforts", {})),
        has_budget=budget != "none",
        budget_key=details.get("budget_key", ""),
        client=dict(details.get("client", {})),
        flags=flags,
        note=details.get("note", ""),
    )


_EFFORT = (ReasoningClass.EFFORT, ReasoningClass.EFFORT_SWITCH, ReasoningClass.TOGGLE_EFFORT)
_SWITCHED = (
    ReasoningClass.TOGGLE_ENABLE,
    ReasoningClass.TOGGLE_THINKING,
    ReasoningClass.TOGGLE_EFFORT,
    ReasoningClass.EFFORT_SWITCH,
    ReasoningClass.MODE_WORD,
    ReasoningClass.TEMPLATE_BUDGET,
)
_MODES: dict[ReasoningClass, dict[str, Fields]] = {
    ReasoningClass.TOGGLE_ENABLE: {"on": BOTH_ON, "off": BOTH_OFF},
    ReasoningClass.TOGGLE_THINKING: {"on": BOTH_ON, "off": BOTH_OFF},
    ReasoningClass.TOGGLE_EFFORT: {"on": BOTH_ON, "off": BOTH_OFF},
    ReasoningClass.MODE_WORD: {"on": {"thinking_mode": "enabled"}, "off": {"thinking_mode": "disabled"}},
    ReasoningClass.SYSTEM_PROMPT: {"on": {"enable_thinking": True}, "off": {"enable_thinking": False}},
    ReasoningClass.EFFORT_SWITCH: {"on": {"reasoning_effort": "high"}, "off": {"reasoning_effort": "none"}},
    ReasoningClass.TEMPLATE_BUDGET: {
        "on": {"thinking_budget": -1},
        "off": {"thinking_budget": 0, "enable_thinking": False},
    },
}
"""ALWAYS and EFFORT are absent on purpose: a toggle sent to them only blinds their parser."""
