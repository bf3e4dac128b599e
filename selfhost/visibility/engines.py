"""The container engine of the host that a workload is for, as far as one can be told. Pure."""

import re

from selfhost.shapes.host import Host, Known, Vendor
from selfhost.shapes.surroundings import Engine, Toolkit
from selfhost.shapes.workload import ContainerEngine, Form, Workload

_DOCKERS = (Form.COMPOSE, Form.INSPECT)


def engine_of_host(workload: Workload, host: Host | None) -> Engine | None:
    """The one engine of its kind that answers; Compose and a container that exists are taken for docker's."""
    if host is None or host.surroundings is None or workload.form is Form.POD:
        return None
    kind = "podman" if workload.container_engine is ContainerEngine.PODMAN else "docker"
    if workload.container_engine is ContainerEngine.UNKNOWN and workload.form not in _DOCKERS:
        return None
    found = [engine for engine in host.surroundings.engines if engine.kind == kind and _answers(engine)]
    return found[0] if len(found) == 1 else None


def _answers(engine: Engine) -> bool:
    return isinstance(engine.answers, Known) and engine.answers.value


def version(engine: Engine) -> tuple[int, ...]:
    match = re.match(r"\D*(\d+(?:\.\d+)*)", engine.version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def nvidia_toolkit(host: Host | None) -> Toolkit | None:
    toolkits = host.surroundings.toolkits if host and host.surroundings else ()
    return next((toolkit for toolkit in toolkits if toolkit.vendor is Vendor.NVIDIA), None)
