"""NVML's facts (hosts/nvml, or a snapshot's `nvml`) as an Answer. A snapshot may be of another hand: no key is sure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from selfhost.hosts.nvidia_failure import meaning
from selfhost.hosts.nvidia_reading import (
    NOT_SAID,
    Answer,
    Reading,
    Slice,
    architecture_of,
    bus_address,
    clique,
    device_id,
    fabric,
    version,
)
from selfhost.shapes.host import Fact, Known, Tenant, Unknown

_PROFILE = re.compile(r"(?:\d+c\.)?\d+g\.\d+gb(?:\+\S+)?")


def answer_of(facts: Mapping[str, Any]) -> Answer:
    """Cards and versions; `failure` when NVML could not be reached, nothing at all for {}."""
    failure = _text(facts, "failure", "error")
    devices = _list(facts, "devices", "gpus")
    driver = version(_text(facts, "driver_version", "driver"))
    cuda = _cuda(facts)
    cards = tuple(_card(device, driver) for device in devices if not _handle_error(device))
    said = failure or next((_handle_error(device) for device in devices), "")
    code = facts.get("code")
    return Answer(
        cards=cards,
        failure="" if cards else _because(said, has_answered=bool(facts)),
        meaning="" if cards else meaning(code if isinstance(code, int) else 0, said),
        remarks=tuple(
            f"NVML has no handle for card {device.get('index', '?')}: {_handle_error(device)}"
            for device in devices
            if _handle_error(device) and cards
        ),
        driver=driver,
        driver_how="NVML" if driver else "",
        library=_library(facts),
        cuda=Known(cuda, "NVML") if cuda else NOT_SAID,
        links=_links(facts, devices),
        is_hung=facts.get("timed_out") is True,
    )


def _because(said: str, *, has_answered: bool) -> str:
    if said:
        return said if said.startswith("NVML") else f"NVML answers: {said}"
    return "NVML lists no card" if has_answered else ""


def _handle_error(device: Mapping[str, Any]) -> str:
    errors = device.get("errors")
    return _text(errors, "handle") if isinstance(errors, Mapping) else ""


def _card(device: Mapping[str, Any], driver: str) -> Reading:
    memory, errors = _map(device, "memory"), _map(device, "errors")
    pci = _map(device, "pci")
    silent = Unknown(f"NVML answers {_text(errors, 'memory')}") if _text(errors, "memory") else NOT_SAID
    mig = _map(device, "mig")
    mode = _text(device, "mig", "mig_mode") or _text(mig, "current")
    woven = _map(device, "fabric")
    return Reading(
        tool="NVML",
        index=_whole(device, "index"),
        name=_text(device, "name"),
        uuid=_text(device, "uuid"),
        bus_id=bus_address(_text(pci, "bus_id") or _text(device, "pci", "bus_id", "pci_bus_id")),
        device_id=device_id(_text(pci, "device_id")),
        minor=_whole(device, "minor", "minor_number"),
        memory_total=_bytes(memory, device, "total", silent),
        memory_free=_bytes(memory, device, "free", silent),
        memory_used=_bytes(memory, device, "used", silent),
        arch=_arch(device),
        driver=driver,
        mig={"1": "Enabled", "0": "Disabled", "True": "Enabled", "False": "Disabled"}.get(mode, mode),
        slices=_slices(device),
        virtualization=_text(device, "virtualization", "virtualization_mode"),
        licence=_text(device, "licence", "license"),
        fabric=fabric(_text(woven, "state"), _text(woven, "status")),
        clique=clique(_text(woven, "state"), _text(woven, "cluster"), _text(woven, "clique")),
        tenants=_tenants(device),
        fault=next((said for said in map(str, errors.values()) if re.search(r"GPU is lost|requires re", said)), ""),
    )


def _arch(device: Mapping[str, Any]) -> Fact[str]:
    for key in ("compute_capability", "cuda_compute_capability", "compute_cap"):
        value = device.get(key)
        if isinstance(value, list | tuple) and len(value) == 2:
            return architecture_of(f"{value[0]}.{value[1]}", "NVML compute capability")
        if value is not None:
            return architecture_of(str(value), "NVML compute capability")
    return NOT_SAID


def _bytes(memory: Mapping[str, Any], device: Mapping[str, Any], name: str, silent: Unknown) -> Fact[int]:
    for where, key in ((memory, name), (device, f"memory_{name}"), (device, f"memory_{name}_bytes")):
        value = where.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0 - (name != "total"):
            return Known(value, "NVML")
    return silent


def _slices(device: Mapping[str, Any]) -> tuple[Slice, ...] | None:
    if not any(isinstance(device.get(key), list | tuple) for key in ("slices", "mig_devices")):
        return None
    found: list[Slice] = []
    for place, part in enumerate(_list(device, "slices", "mig_devices")):
        profile = _PROFILE.search(_text(part, "profile", "name"))
        index = _whole(part, "index")
        found.append(
            Slice(
                index=place if index is None else index,
                profile=profile[0] if profile else "",
                uuid=_text(part, "uuid"),
                memory=_bytes(_map(part, "memory"), part, "total", NOT_SAID),
                instance=f"{_text(part, 'gpu_instance')}/{_text(part, 'compute_instance')}".strip("/"),
            )
        )
    return tuple(found)


def _tenants(device: Mapping[str, Any]) -> tuple[Tenant, ...] | None:
    if not isinstance(device.get("processes"), list | tuple):
        return None
    found: list[Tenant] = []
    for process in _list(device, "processes"):
        pid, used = _whole(process, "pid"), _whole(process, "used", "used_memory")
        memory: Fact[int] = Unknown("NVML does not say") if used is None else Known(used, "NVML")
        if pid is not None:
            found.append(Tenant(pid=pid, name=_text(process, "name"), memory=memory))
    return tuple(found)


def _links(facts: Mapping[str, Any], devices: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str, str, str], ...]:
    """Pairs by uuid: numbers do not leave this file."""
    uuids = {_whole(device, "index"): _text(device, "uuid") for device in devices}
    found: list[tuple[str, str, str, str]] = []
    for link in _list(facts, "links"):
        a, b = uuids.get(_whole(link, "a"), ""), uuids.get(_whole(link, "b"), "")
        if a and b and _text(link, "kind"):
            found.append((a, b, _text(link, "kind"), _text(link, "peer_access")))
    return tuple(found)


def _library(facts: Mapping[str, Any]) -> str:
    """NVML writes the driver's version behind that of CUDA: `13.580.95.05`."""
    parts = _text(facts, "nvml_version").split(".")
    tail = ".".join(parts[1:] if len(parts) > 2 and len(parts[0]) == 2 else parts)
    return version(tail)


def _cuda(facts: Mapping[str, Any]) -> str:
    for key in ("cuda_version", "cuda_driver_version"):
        value = facts.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1000:
            return f"{value // 1000}.{value % 1000 // 10}"
        if isinstance(value, str) and version(value):
            return value
    return ""


def _text(where: Mapping[str, Any], *keys: str) -> str:
    """The first of `keys` that holds text or a number."""
    values = (where.get(key) for key in keys)
    return next((str(value).strip() for value in values if isinstance(value, str | int)), "")


def _whole(where: Mapping[str, Any], *keys: str) -> int | None:
    values = (where.get(key) for key in keys)
    whole = (value for value in values if isinstance(value, int) and not isinstance(value, bool) and value >= 0)
    return next(whole, None)


def _map(where: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = where.get(key)
    return value if isinstance(value, Mapping) else {}


def _list(where: Mapping[str, Any], *keys: str) -> list[Mapping[str, Any]]:
    for key in keys:
        value = where.get(key)
        if isinstance(value, list | tuple):
            return [item for item in value if isinstance(item, Mapping)]
    return []
