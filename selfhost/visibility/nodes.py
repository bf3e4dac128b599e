"""Device nodes that a text hands into a container, and the other ways by which a card may come in. Pure."""

import re
from collections.abc import Iterator

from selfhost.shapes.host import Accelerator, Host, Known, Vendor
from selfhost.shapes.workload import ContainerEngine, Form, Workload

KFD = "/dev/kfd"
_RENDER = re.compile(r"/dev/dri/renderD\d+\Z")
RESOURCE_PREFIX = {Vendor.NVIDIA: "nvidia.com/", Vendor.AMD: "amd.com/", Vendor.INTEL: "gpu.intel.com/"}
CDI_KIND = {Vendor.NVIDIA: "nvidia.com/gpu", Vendor.AMD: "amd.com/gpu", Vendor.INTEL: "intel.com/gpu"}
_RUNTIME = {Vendor.NVIDIA: "nvidia", Vendor.AMD: "amd"}


def handed_in(workload: Workload) -> Iterator[tuple[str, str]]:
    """Host path below /dev, and the key of its spot.

    A bind mount brings a node, not the right to open it: Docker's device rules refuse it. Engines without such rules
    (rootless Podman) let it through.
    """
    yield from ((device.source.rstrip("/"), device.key) for device in workload.devices)
    if workload.container_engine is not ContainerEngine.DOCKER:
        for mount in workload.mounts:
            if mount.source.startswith("/dev"):
                yield mount.source.rstrip("/"), mount.key


def key_of(workload: Workload, path: str) -> str:
    """Spot of the first node whose path begins with `path`."""
    return next((key for source, key in handed_in(workload) if source.startswith(path)), "name")


def has(workload: Workload, path: str) -> bool:
    """Whether `path` comes in by itself or below a folder that does."""
    return any(path == source or path.startswith(f"{source}/") for source, _ in handed_in(workload))


def render_nodes(workload: Workload) -> tuple[str, ...]:
    """Render nodes that are named one by one; empty when the whole folder comes in."""
    return tuple(source for source, _ in handed_in(workload) if _RENDER.fullmatch(source))


def whole_dri(workload: Workload) -> bool:
    return any(source in ("/dev", "/dev/dri") for source, _ in handed_in(workload))


def by_other_means(workload: Workload, vendor: Vendor) -> bool:
    """By a CDI name, a runtime, a request, a scheduler, or because nothing is held back from a privileged container."""
    asked = {**workload.pod.limits, **workload.pod.requests} if workload.pod else {}
    return (
        workload.privileged
        or any(name.kind == CDI_KIND[vendor] for name in workload.cdi)
        or workload.runtime == _RUNTIME.get(vendor, "-")
        or bool(workload.requests)
        or any(resource.startswith(RESOURCE_PREFIX[vendor]) for resource in asked)
        or bool(workload.pod and workload.pod.claims)
    )


def in_a_container(workload: Workload) -> bool:
    """Started by an engine that holds devices back: no process, and no pod, whose nodes the scheduler hands in."""
    return workload.form in (Form.COMPOSE, Form.RUN, Form.QUADLET, Form.INSPECT)


def cards(host: Host | None, vendor: Vendor) -> tuple[Accelerator, ...]:
    return tuple(card for card in host.accelerators if card.vendor is vendor) if host else ()


def rootless(workload: Workload, host: Host | None) -> bool | None:
    """Whether the engine runs without root: by the text, else by what the host's engine says; None is unknown."""
    if workload.rootless is not None:
        return workload.rootless
    if host is None or host.surroundings is None:
        return None
    kind = "podman" if workload.container_engine is ContainerEngine.PODMAN else "docker"
    said = {
        engine.rootless.value
        for engine in host.surroundings.engines
        if engine.kind == kind and isinstance(engine.rootless, Known)
    }
    return said.pop() if len(said) == 1 else None
