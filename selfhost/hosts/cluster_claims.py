"""Devices that a cluster hands out by claims (resource.k8s.io): classes, slices and what is allocated. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selfhost.hosts import cards, cluster
from selfhost.hosts.cluster import list_of, map_of
from selfhost.hosts.cluster_cards import CardKind
from selfhost.hosts.cluster_quantity import whole
from selfhost.shapes.fact import Vendor
from selfhost.shapes.units import MIB

Object = Mapping[str, Any]
DRIVERS = {"gpu.nvidia.com": Vendor.NVIDIA, "gpu.amd.com": Vendor.AMD, "gpu.intel.com": Vendor.INTEL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One device of a ResourceSlice. An empty node is every node."""

    name: str
    pool: str
    node: str
    kind: CardKind
    api_version: str
    held: bool


def classes_of(objects: Sequence[Object]) -> frozenset[str]:
    return frozenset(cluster.name(one) for one in objects if one.get("kind") == "DeviceClass")


def class_for(objects: Sequence[Object], resource: str) -> str:
    """The device class that stands for an extended resource (`extendedResourceName`); empty for none."""
    for one in objects:
        if one.get("kind") == "DeviceClass" and map_of(one.get("spec")).get("extendedResourceName") == resource:
            return cluster.name(one)
    return ""


def slices_of(objects: Sequence[Object]) -> Iterator[Slice]:
    held = set(_held(objects))
    for one in objects:
        spec = map_of(one.get("spec"))
        driver = _text(spec, "driver")
        if one.get("kind") != "ResourceSlice" or driver not in DRIVERS:
            continue
        pool = _text(map_of(spec.get("pool")), "name")
        for device in list_of(spec.get("devices")):
            name = _text(map_of(device), "name")
            kind = _kind(driver, map_of(map_of(device).get("basic", device)))
            if kind is not None:
                yield Slice(
                    name=name, pool=pool, node=_text(spec, "nodeName"), kind=kind,
                    api_version=_text(one, "apiVersion") or "resource.k8s.io/v1", held=(driver, pool, name) in held,
                )  # fmt: skip


def _held(objects: Sequence[Object]) -> Iterator[tuple[str, str, str]]:
    for one in objects:
        if one.get("kind") == "ResourceClaim":
            devices = map_of(map_of(map_of(one.get("status")).get("allocation")).get("devices"))
            for found in list_of(devices.get("results")):
                yield _text(map_of(found), "driver"), _text(map_of(found), "pool"), _text(map_of(found), "device")


def _kind(driver: str, device: Object) -> CardKind | None:
    """None for what is no card: a virtual function for machines, an interconnect."""
    said = {str(key).rpartition("/")[2]: _value(value) for key, value in map_of(device.get("attributes")).items()}
    capacity = {
        str(key).rpartition("/")[2]: map_of(value).get("value", value)
        for key, value in map_of(device.get("capacity")).items()
    }
    if said.get("type") not in (None, "", "gpu", "mig", "amdgpu", "amdgpu-partition"):
        return None
    vendor = DRIVERS[driver]
    name = said.get("productName") or said.get("model") or ""
    row = cards.named(name) if name else None
    profile = said.get("profile", "") if said.get("type") == "mig" else ""
    return CardKind(
        vendor=vendor,
        resource="mig.nvidia.com" if profile else driver,
        name=name,
        arch=_arch(vendor, said) or (row.arch if row else ""),
        memory_mib=whole(capacity.get("memory")) // MIB or (row.memory // MIB if row and not profile else 0),
        profile=profile,
        driver=said.get("driverVersion", "") if vendor is Vendor.NVIDIA else "",
        labelled=True,
    )


def _arch(vendor: Vendor, said: Mapping[str, str]) -> str:
    version = re.match(r"(\d+)\.(\d+)", said.get("cudaComputeCapability", ""))
    return f"sm_{version[1]}{version[2]}" if vendor is Vendor.NVIDIA and version else ""


def _value(attribute: object) -> str:
    """An attribute is one of string, version, int and bool."""
    values = map_of(attribute).values()
    return str(next(iter(values), "")) if isinstance(attribute, Mapping) else str(attribute)


def _text(found: Mapping[str, Any], key: str) -> str:
    return str(found.get(key) or "")
