"""How the planned devices enter a container: one way for each host and engine, with its reason."""

from dataclasses import replace

from selfhost.plan.container.nodes import nodes_way
from selfhost.plan.container.nvidia import nvidia_way
from selfhost.plan.container.surrounding import enforces_selinux, engine_seen
from selfhost.plan.container.way import Way
from selfhost.plan.devices import Devices
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.plan import Evidence, Injection
from selfhost.shapes.service import Service

_SELINUX = "https://docs.podman.io/en/latest/markdown/podman-run.1.html"


def way_in(devices: Devices, *, host: Host, kind: str, service: Service) -> Way:
    """`kind` is `docker` or `podman`. Raises EnvironmentMissing where it has no way, InputError for the impossible."""
    way = _way(devices, host=host, kind=kind, service=service)
    if not enforces_selinux(host, engine_seen(host, kind), kind):
        return way
    why = "SELinux would keep the container from the model's folder and the card; a new label would change your files"
    injection = replace(way.injection, security_opt=(*way.injection.security_opt, "label=disable"))
    return replace(way, injection=injection, reasons={**way.reasons, "security_opt.label": why})


def _way(devices: Devices, *, host: Host, kind: str, service: Service) -> Way:
    if not devices.cards:
        return Way(
            injection=Injection(),
            value="none",
            reason="the engine computes on the processor",
            source="selfhost",
            evidence=Evidence.READ_IN_CODE,
        )
    if devices.cards[0].vendor is Vendor.NVIDIA:
        return nvidia_way(devices.cards, host=host, kind=kind, service=service)
    return nodes_way(devices.cards, host=host, kind=kind, service=service)
