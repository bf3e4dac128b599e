"""Devices that are handed out by claims: classes, and what resource slices say of each device. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from selfhost.doctor.cluster.holders import claimed
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, at, name, part, rows, text

_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of one ResourceSlice. An empty `node` is every node."""

    name: str
    driver: str
    pool: str
    node: str
    attributes: dict[str, Any] = field(repr=False)
    """By name without a domain where the domain is the driver's."""
    capacity: dict[str, str] = field(repr=False)
    holder: Object | None = field(default=None, repr=False)
    tainted: bool = False

    @property
    def shown(self) -> str:
        product = next((str(self.attributes[key]) for key in ("productName", "model") if self.attributes.get(key)), "")
        memory = self.capacity.get("memory", "")
        return " ".join(part for part in (product or self.name, memory, f"on {self.node}" if self.node else "") if part)


def devices(cluster: Cluster) -> Iterator[Device]:
    taken = claimed(cluster)
    for one in cluster.of("ResourceSlice"):
        driver, pool, node = (
            text(one, "spec", "driver"),
            text(one, "spec", "pool", "name"),
            text(one, "spec", "nodeName"),
        )
        for found in rows(one, "spec", "devices"):
            body = part(found, "basic") or found
            yield Device(
                name=text(found, "name"),
                driver=driver,
                pool=pool,
                node=node,
                attributes={_own(key, driver): _value(value) for key, value in part(body, "attributes").items()},
                capacity={
                    _own(key, driver): text(value, "value") or str(value)
                    for key, value in part(body, "capacity").items()
                },
                holder=taken.get((driver, pool, text(found, "name"))),
                tainted=any(text(taint, "effect") in ("NoSchedule", "NoExecute") for taint in rows(body, "taints")),
            )


def _own(key: object, driver: str) -> str:
    return str(key).removeprefix(f"{driver}/")


def _value(attribute: object) -> Any:
    """An attribute is one of string, version, int and bool."""
    for kind in ("string", "version", "int", "bool"):
        if at(attribute, kind) is not None:
            return at(attribute, kind)
    return attribute


def bridged(cluster: Cluster, resource: str) -> bool:
    """An extended resource that a device class serves (DRAExtendedResource): no node's allocatable lists it."""
    for one in cluster.of("DeviceClass"):
        if resource in (text(one, "spec", "extendedResourceName"), f"{_IMPLICIT}{name(one)}"):
            return True
    return False
