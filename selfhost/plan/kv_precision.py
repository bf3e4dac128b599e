"""In which numbers the KV cache is kept: a decision of its own, in every form that the pinned engine knows."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from selfhost.core.errors import InputError
from selfhost.core.table import read_table
from selfhost.engines.names import shown
from selfhost.plan.archs import archs_of
from selfhost.plan.command_line import command_line
from selfhost.plan.devices import Devices
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.precision import short_name
from selfhost.shapes.service import Service

AUTO = "auto"
_FLAG = "--kv-cache-dtype"
SLIDING = "sliding_window"


@dataclass(frozen=True, slots=True, kw_only=True)
class KvPrecision:
    """`name` as the engine spells it; `auto` keeps what is computed, or what the checkpoint has scales for."""

    name: str = AUTO
    bits: float = 0
    """Of one value; 0 when it is as computed."""
    proven: bool = True
    by: str = ""
    """The attention back end that takes it, with what it says of itself."""
    scaled: bool = False
    """The checkpoint ships scales for it."""
    caveats: tuple[str, ...] = ()
    skip_layers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """Engine flags beside the form itself."""
    logs: tuple[str, ...] = ()
    source: str = ""

    @property
    def rounded(self) -> bool:
        return 0 < self.bits < 16

    @property
    def counted(self) -> str:
        """The form that the cache really has, for the memory arithmetic."""
        return "fp8_e4m3" if self.name == AUTO and self.scaled else self.name


AS_COMPUTED = KvPrecision()


@cache
def _table() -> dict[str, Any]:
    return read_table("selfhost.plan", "kv_precision.toml")


def names(engine: str) -> tuple[str, ...]:
    """Every form of `engine`, `auto` first."""
    return (AUTO, *(row["name"] for row in _table()["form"] if row["engine"] == engine))


def choose_kv(
    *, model: Model, service: Service, devices: Devices, engine: str, passed: PassedOn, computed: str
) -> KvPrecision:
    """Raises InputError for a form that the engine does not know, or that these cards or this model do not take."""
    own = passed.text(_FLAG)
    asked = own or service.kv_cache or AUTO
    layers = _skipped(model, service, engine)
    if asked == AUTO:
        return _auto(model, engine, layers, service)
    row = _form(engine, asked)
    if row is None and own:
        return KvPrecision(name=own, proven=False, by="a form that selfhost does not know", bits=_guess(own))
    if row is None:
        raise _unknown(asked, engine, service)
    states = [_card(row, devices.backend, arch) for arch in archs_of(devices)]
    if own is None:
        _refuse_impossible(row, states, model=model, service=service, devices=devices, engine=engine, asked=asked)
    bits = float(row["bits"])
    if bits < 16 or not layers:
        return KvPrecision(
            name=own or row["name"],
            bits=0 if short_name(asked) == computed else bits,
            proven=all(state.get("state") == "works" for state in states),
            by=next((str(state["by"]) for state in states if state.get("by")), ""),
            scaled=bits < 16 and _ships_scales(model),
            caveats=tuple(_caveats(model, row)) if bits < 16 else (),
            skip_layers=layers,
            flags=_skip_flags(engine, layers),
            logs=_logs(engine, row) if bits < 16 else (),
            source=row["source"],
        )
    raise _nothing_to_skip(service)


def _auto(model: Model, engine: str, layers: tuple[str, ...], service: Service) -> KvPrecision:
    """Both engines take FP8 by themselves when the checkpoint says that it has scales for it."""
    spoken = _table()["engine"].get(engine, {})
    if not _ships_scales(model):
        if layers:
            raise _nothing_to_skip(service)
        return KvPrecision(source=spoken.get("source", ""))
    return KvPrecision(
        bits=8,
        scaled=True,
        skip_layers=layers,
        flags=_skip_flags(engine, layers),
        source=str(spoken.get("auto", "")),
    )


def _ships_scales(model: Model) -> bool:
    return model.kv_quant == "fp8"


def _form(engine: str, asked: str) -> dict[str, Any] | None:
    """The row of `asked` by the engine's name or by ours; one that is like another has that one's cards."""
    wanted = asked.lower()
    rows = {row["name"]: row for row in _table()["form"] if row["engine"] == engine}
    for row in rows.values():
        if wanted == row["name"] or short_name(wanted) in row["also"]:
            return {"cards": rows[row["like"]]["cards"], **row} if "like" in row else row
    return None


def _guess(name: str) -> float:
    return 8.0 if name.startswith(("fp8", "int8", "mxfp8")) else 0


def _card(row: Mapping[str, Any], backend: str, arch: str) -> Mapping[str, Any]:
    """What the row says of a card; empty when it names none like it. An unknown card is unproven."""
    if not arch and backend != "cpu":
        return {"state": "unproven", "by": "this card's architecture is unknown"}
    for card in row["cards"]:
        if re.fullmatch(card["backend"], backend) and re.fullmatch(card["arch"], arch):
            found: Mapping[str, Any] = card
            return found
    return {}


def _caveats(model: Model, row: Mapping[str, Any]) -> Iterator[str]:
    words = {caveat["on"]: caveat["words"] for caveat in _table()["caveat"]}
    if row.get("scales") == "checkpoint" and not _ships_scales(model):
        yield words["no scales"]
    if not isinstance(model.geometry, Known):
        return
    shape = model.geometry.value
    if 256 in (shape.head_dim, shape.full_head_dim) and shape.latent is None:
        yield words["head_dim 256"]
    if shape.sliding_layers and row["engine"] == "vllm":
        yield words["sliding"]
    if row["engine"] == "sglang" and shape.latent is not None:
        yield words["sglang latent"]


def _logs(engine: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(_table()["engine"][engine]["line"]).format(name=row["name"]),)


def _skip_flags(engine: str, layers: tuple[str, ...]) -> tuple[str, ...]:
    return (str(_table()["engine"][engine]["skip"]), *layers) if layers else ()


def _skipped(model: Model, service: Service, engine: str) -> tuple[str, ...]:
    """Layers whose cache stays as computed. Raises InputError for names that mean nothing here."""
    layers = service.kv_skip_layers
    if not layers:
        return ()
    if not _table()["engine"].get(engine, {}).get("skip"):
        raise _refusal(
            f"{shown(engine)} keeps every layer's cache in one form",
            why="It has no option to leave layers out.",
            fix=(
                f"leave the option out:\n{_up(service, kv_skip_layers=None)}",
                f"or serve it with vLLM, which can:\n{_up(service, engine='vllm')}",
            ),
        )
    count = model.geometry.value.layers if isinstance(model.geometry, Known) else None
    windows = not isinstance(model.geometry, Known) or bool(model.geometry.value.sliding_layers)
    wrong = [name for name in layers if not (name == SLIDING and windows) and not _is_layer(name, count)]
    if wrong:
        most = f"0 to {count - 1}" if count else "0, 1, 2…"
        raise _refusal(
            f"`--kv-skip-layers` names {', '.join(wrong)}, which is no layer of {model.id}",
            why=f"A layer is a number, here {most}, or `{SLIDING}` for all that look back through a window"
            f"{'' if windows else ', of which this model has none'}.",
            fix=(f"for instance:\n{_up(service, kv_skip_layers=SLIDING if windows else '0')}",),
        )
    return layers


def _is_layer(name: str, count: int | None) -> bool:
    return name.isascii() and name.isdigit() and (count is None or int(name) < count)


def _refuse_impossible(
    row: Mapping[str, Any], states: list[Mapping[str, Any]], *, model: Model, service: Service, devices: Devices,
    engine: str, asked: str,
) -> None:  # fmt: skip
    why = _contradicts_model(row, model)
    if not why and any(state.get("state", "refused") == "refused" for state in states):
        where = "a processor" if not devices.cards else ", ".join(archs_of(devices))
        said = next((str(state["by"]) for state in states if state.get("by")), "no attention kernel reads it there")
        why = f"On {where}: {said}."
    if not why:
        return
    raise _refusal(
        f"a KV cache in {asked} is not possible for {model.id} here with {shown(engine)}",
        why=why,
        fix=_ways_out(row, model=model, service=service, devices=devices, engine=engine),
    )


def _ways_out(
    row: Mapping[str, Any], *, model: Model, service: Service, devices: Devices, engine: str
) -> tuple[str, ...]:
    """The cache as computed, and the best rounded form that does work here."""
    fix = [f"keep it as computed:\n{_up(service, kv_cache=AUTO)}"]
    for name in names(engine)[1:]:
        other = _form(engine, name)
        if other is None or name == row["name"] or not row["bits"] <= other["bits"] < 16:
            continue
        if _contradicts_model(other, model):
            continue
        if all(_card(other, devices.backend, arch).get("state") == "works" for arch in archs_of(devices)):
            fix.append(f"or in another form that works here:\n{_up(service, kv_cache=name)}")
            break
    return tuple(fix)


def _contradicts_model(row: Mapping[str, Any], model: Model) -> str:
    if not isinstance(model.geometry, Known):
        return ""
    latent = model.geometry.value.latent
    if row["latent"] == "only" and latent is None:
        return "It is for models with latent attention (MLA), and this one has none."
    if row.get("indexed") and latent is not None and not latent.indexer_bytes:
        return "It is for sparse attention with an indexer (DSA), and this model has none."
    if row["latent"] == "no" and latent is not None:
        return "Its kernels take no latent attention (MLA), which this model has."
    return ""


def _unknown(asked: str, engine: str, service: Service) -> InputError:
    return InputError(
        f"`--kv-cache {asked}` is not a precision that selfhost knows",
        why=f"Known are {', '.join(names(engine))}. `auto` keeps what is computed.",
        fix=(f"leave it to selfhost:\n{_up(service, kv_cache=None)}",),
        id="PL007",
    )


def _nothing_to_skip(service: Service) -> InputError:
    return _refusal(
        "`--kv-skip-layers` is given, but no layer's cache is rounded",
        why="It keeps layers as computed while the others are rounded.",
        fix=(
            f"round the others:\n{_up(service, kv_cache='fp8')}",
            f"or leave it out:\n{_up(service, kv_skip_layers=None)}",
        ),
    )


def _up(service: Service, **change: str | None) -> str:
    return command_line("up", service, change=change)


def _refusal(what: str, *, why: str, fix: tuple[str, ...]) -> InputError:
    return InputError(what, why=why, fix=fix, id="PL009")
