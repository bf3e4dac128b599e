"""How a model's family thinks and which parsers read it: by hub id, confirmed by the chat template."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.shapes.model import Family, ReasoningClass

_TOGGLES = (ReasoningClass.TOGGLE_ENABLE, ReasoningClass.TOGGLE_THINKING, ReasoningClass.TOGGLE_EFFORT)


@dataclass(frozen=True, slots=True)
class _Local:
    model_type: str
    template: tuple[str, ...]
    prefill: bool
    family: str
    source: str


@dataclass(frozen=True, slots=True)
class _Signs:
    """What a chat template tells by itself, and the family of one that is in no row."""

    switch: re.Pattern[str]
    opening: str
    closing: str
    texts: tuple[str, ...]
    family: Family


@cache
def families() -> tuple[tuple[re.Pattern[str], Family], ...]:
    return tuple(
        (re.compile(raw["regex"], re.IGNORECASE), _family(raw))
        for raw in read_table("selfhost.models", "families.toml")["family"]
    )


def _family(raw: Mapping[str, Any]) -> Family:
    return Family(
        id=raw["id"],
        reasoning_class=ReasoningClass(raw["class"]),
        default_mode=raw["default"],
        reasoning_parser=dict(raw["reasoning_parser"]),
        tool_parser=dict(raw["tool_parser"]),
        budget=dict(raw["budget"]),
        source=raw["source"],
    )


@cache
def _locals() -> tuple[_Local, ...]:
    return tuple(
        _Local(raw["model_type"], tuple(raw["template"]), raw.get("prefill", False), raw["family"], raw["source"])
        for raw in read_table("selfhost.models", "families.toml")["local"]
    )


@cache
def _signs() -> _Signs:
    raw = read_table("selfhost.models", "families.toml")["template"]
    return _Signs(
        switch=re.compile(rf"\b(?:{'|'.join(map(re.escape, raw['switches']))})\b"),
        opening=raw["opening"],
        closing=raw["closing"],
        texts=tuple(raw["all"]),
        family=_family(raw),
    )


def unknown_family(note: str) -> Family:
    """A family of which nothing is known: no parser, no switch."""
    return Family(id="none", reasoning_class=ReasoningClass.NONE, default_mode="off", note=note)


def family_of(
    model_id: str, *, model_type: str = "", architectures: Sequence[str] = (), template: str | None = None
) -> Family:
    """The family of a hub id (`org/name`), or of a local folder (`model_id` empty) by what its files say.

    `template` is None when nobody looked, empty when there is none. A family that the id names is confirmed against
    the chat template when there is one: a switch that the template does not have cannot be thrown.
    """
    named = next((family for regex, family in families() if model_id and regex.search(model_id)), None)
    if named is not None:
        return _confirmed(named, template)
    return _by_files(model_type, architectures, template)


def _confirmed(family: Family, template: str | None) -> Family:
    """The family as the template allows it."""
    if not template:
        return family
    if family.reasoning_class in _TOGGLES and not _signs().switch.search(template):
        if prefills_thinking(template):
            return replace(
                family,
                reasoning_class=ReasoningClass.ALWAYS,
                default_mode="on",
                note=f"family {family.id} has a switch, this template has none and opens {_signs().opening} itself",
            )
        return replace(
            family,
            reasoning_class=ReasoningClass.NONE,
            default_mode="off",
            reasoning_parser={},
            budget={},
            note=f"family {family.id} has a switch for thinking, this template has none",
        )
    if family.reasoning_class is ReasoningClass.NONE and "enable_thinking" in template:
        return replace(family, note=f"family {family.id} does not think, yet this template mentions enable_thinking")
    return family


def _by_files(model_type: str, architectures: Sequence[str], template: str | None) -> Family:
    kind = model_type or _type_of(architectures)
    text, signs = template or "", _signs()
    for row in _locals():
        if (
            re.fullmatch(row.model_type, kind)
            and all(sign in text for sign in row.template)
            and (not row.prefill or prefills_thinking(text))
        ):
            family = next(family for _, family in families() if family.id == row.family)
            signs_read = f"by model_type {kind}" + (" and the chat template" if text else "")
            return replace(family, source=f"{family.source}; {row.source}", note=signs_read)
    said = f"model_type {kind}" if kind else "a model of unknown type"
    if text and all(sign in text for sign in signs.texts):
        return replace(signs.family, note=f"{said} is in no table; its template has {' and '.join(signs.texts)}")
    if template is None:
        return unknown_family(f"{said}: its chat template was not read")
    return unknown_family(f"{said}: {'its chat template mentions no thinking' if text else 'it has no chat template'}")


def _type_of(architectures: Sequence[str]) -> str:
    """`Qwen3MoeForCausalLM` → `qwen3_moe`, as transformers names them."""
    if not architectures:
        return ""
    base = re.sub(r"(?:For\w+|LMHeadModel|Model)$", "", architectures[0])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", base).lower()


def prefills_thinking(template: str) -> bool:
    """Whether the generation prompt itself opens a think block, so that the model always thinks.

    The part after `add_generation_prompt` decides: earlier mentions only strip thoughts from the history.
    """
    _, found, tail = template.rpartition("add_generation_prompt")
    if not found:
        return False
    opened = tail.rfind(_signs().opening)
    return opened >= 0 and _signs().closing not in tail[opened:]
