"""What FP8 weights become on a card: computed in FP8, only kept in it, unproven, or refused; by form and engine."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from selfhost.core.table import read_table
from selfhost.core.versions import numbers


class Form(StrEnum):
    """Over which values of a weight one scale reaches."""

    CHANNEL = "channel"
    TENSOR = "tensor"
    BLOCK = "block"

    @property
    def words(self) -> str:
        return {"channel": "per channel", "tensor": "per tensor", "block": "in blocks of 128"}[self.value]


class Native(StrEnum):
    """How a precision is computed on a card, best first."""

    NATIVE = "native"
    MEMORY_ONLY = "memory only"
    UNPROVEN = "unproven"
    REFUSED = "refused"


RANK = tuple(Native)
MADE_AS = {Form.CHANNEL: "fp8", Form.TENSOR: "fp8_per_tensor", Form.BLOCK: "fp8_per_block"}
"""Form → the name by which an engine module is told to make it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """FP8 in one form on one card with one engine."""

    form: Form
    native: Native
    why: str
    source: str
    logs: tuple[str, ...] = ()
    """Texts of the engine's log, any of which proves that it is so."""
    experts_logs: tuple[str, ...] = ()
    """Likewise for the experts of a sparse model, whose kernels are chosen apart."""
    warning: str = ""
    """A line that the engine prints beside it, when weights are widened to compute."""
    note: str = ""
    switch: str = ""
    """Engine flags after which it is computed natively."""


def support(
    *, engine: str, backend: str, arch: str, form: Form, version: str = "", while_loading: bool, sparse: bool,
    flags: Mapping[str, str] | None = None,
) -> Support:  # fmt: skip
    """What `form` is worth on `arch`; `flags` are the user's own, `sparse` a model with experts.

    `while_loading`: the engine makes it of 16-bit weights. A card or an engine that the table does not know is
    unproven: nobody says that it works, and nobody that it does not.
    """
    row = _row(engine, backend, arch)
    if row is None:
        why = f"FP8 with {engine} on {arch or 'this card'} is in no table of this version"
        return Support(form=form, native=Native.UNPROVEN, why=why, source="selfhost")
    native, why, source = (
        Native(_state(row, form, while_loading=while_loading)),
        row.get(f"why_{form.value}", row["why"]),
        row["source"],
    )
    switch = row.get("switch", {}) if row.get("switch", {}).get("form") == form.value else {}
    if switch and _given(switch["flags"], flags or {}):
        native, why = Native(switch["becomes"]), row["why"]
    if sparse:
        native = max(native, Native(row["moe"]), key=RANK.index)
    broken = _defect(engine, backend, arch, version)
    if broken is not None and not _given(broken["flags"], flags or {}):
        native, why, source = Native.REFUSED, f"{broken['why']}; `{broken['flags']}` avoids it", broken["source"]
    useful = switch.get("becomes") == Native.NATIVE and native is not Native.NATIVE
    return Support(
        form=form,
        native=native,
        why=why,
        source=source,
        logs=() if native is Native.REFUSED else _logs(engine, row, form, while_loading=while_loading),
        experts_logs=_experts_logs(engine, native) if sparse else (),
        warning=row.get("warning", "") if native is Native.MEMORY_ONLY else "",
        note=row.get("note", ""),
        switch=switch["flags"] if useful else "",
    )


def made_while_loading(*, engine: str, backend: str, arch: str) -> Form | None:
    """The form that selfhost has the engine make of 16-bit weights on this card; None where none is possible."""
    row = _row(engine, backend, arch)
    if row is None or "online" not in row:
        return None
    return Form(row["online"])


def known_version(engine: str) -> str:
    """The version whose code the table was read from; empty for an engine that it does not know."""
    return str(_table()["engine"].get(engine, {}).get("version", ""))


@cache
def _table() -> dict[str, Any]:
    return read_table("selfhost.plan", "fp8.toml")


def _row(engine: str, backend: str, arch: str) -> dict[str, Any] | None:
    return next((row for row in _table()["card"] if _is_for(row, engine, backend, arch)), None)


def _is_for(row: Mapping[str, Any], engine: str, backend: str, arch: str) -> bool:
    same = (row["engine"], row["backend"]) == (engine, backend)
    return same and re.fullmatch(row["arch"], arch) is not None


def _state(row: Mapping[str, Any], form: Form, *, while_loading: bool) -> str:
    published: str = row[form.value]
    return str(row.get(f"online_{form.value}", published)) if while_loading else published


def _defect(engine: str, backend: str, arch: str, version: str) -> dict[str, Any] | None:
    """A defect of this very version; none when it is not said or has no numbers."""
    mine = numbers(version)
    if not mine:
        return None
    for row in _table()["defect"]:
        if _is_for(row, engine, backend, arch) and numbers(row["since"]) <= mine < numbers(row["before"]):
            found: dict[str, Any] = row
            return found
    return None


def _given(wanted: str, flags: Mapping[str, str]) -> bool:
    name, _, value = wanted.partition(" ")
    return flags.get(name) == value


def _logs(engine: str, row: Mapping[str, Any], form: Form, *, while_loading: bool) -> tuple[str, ...]:
    spoken = _table()["engine"][engine]
    if not spoken["line"]:
        return ()
    method = spoken["online"].get(form.value, "") if while_loading else ""
    lines = (spoken["line"].format(kernel=kernel) for kernel in row.get("kernels", {}).get(form.value, ()))
    return tuple(f"{line} {method}".rstrip() for line in lines)


def _experts_logs(engine: str, native: Native) -> tuple[str, ...]:
    spoken = _table()["engine"][engine]
    return tuple(spoken["experts_line"].format(backend=name) for name in spoken["experts"].get(native.value, ()))
