"""Recorded machines, with answers of container engines that they do not hold, and plans for containers on them."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect, with_links
from selfhost.models.catalog import by_alias
from selfhost.models.listed import listed
from selfhost.plan.decide import decide
from selfhost.plan.workload import workload_of
from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan
from selfhost.shapes.workload import Form, Workload
from selfhost.visibility.lint import check_host, lint
from tests.fakes.planning import a_service

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"
PLACE = Place(folder="/b", key_file="/s/key", env_file="/s/key.env", python="/v/bin/python")
_FORMS = {"docker": Form.COMPOSE, "podman": Form.RUN, "quadlet": Form.QUADLET}


def docker(version: str, *, runtimes: tuple[str, ...] = ("runc",), **more: Any) -> dict[str, Any]:
    """What `docker info` says."""
    info = {
        "ServerVersion": version,
        "OperatingSystem": "Ubuntu 24.04.3 LTS",
        "CgroupDriver": "systemd",
        "CgroupVersion": "2",
        "Runtimes": {name: {} for name in runtimes},
        "DefaultRuntime": "runc",
        "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
        "DockerRootDir": "/var/lib/docker",
        **more,
    }
    return {"docker": {"info": info}}


def podman(version: str = "5.4.2", *, rootless: bool = True, runtime: str = "crun") -> dict[str, Any]:
    host = {"cgroupManager": "systemd", "cgroupVersion": "v2", "security": {"rootless": rootless},
            "ociRuntime": {"name": runtime}}  # fmt: skip
    root = "/home/ana/.local/share/containers/storage" if rootless else "/var/lib/containers/storage"
    return {"podman": {"info": {"host": host, "version": {"Version": version}, "store": {"graphRoot": root}}}}


def cdi(*devices: tuple[str, str], driver: str = "", version: str = "0.5.0") -> dict[str, str]:
    """A specification of NVIDIA's: names with the node of each; `driver` in the name of a library that it mounts."""
    spec: dict[str, Any] = {
        "cdiVersion": version,
        "kind": "nvidia.com/gpu",
        "devices": [{"name": name, "containerEdits": {"deviceNodes": [{"path": node}]}} for name, node in devices],
        "containerEdits": {"deviceNodes": [{"path": "/dev/nvidiactl"}]},
    }
    if driver:
        said = f"--host-driver-version={driver}"
        spec["containerEdits"]["hooks"] = [
            {"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook", "args": ["nvidia-cdi-hook", said]}
        ]
    return {"/etc/cdi/nvidia.yaml": json.dumps(spec)}


def host(name: str, *parts: dict[str, Any], files: dict[str, str] | None = None, **more: Any) -> Host:
    """A snapshot, with what is added to it."""
    raw = json.loads((SNAPSHOTS / f"{name}.json").read_text())
    for part in parts:
        raw.update(part)
    raw["files"] = {**raw["files"], **(files or {})}
    raw.update(more)
    seen = Recorded(raw)
    return with_links(detect(seen, wide=True), seen)


@cache
def recorded(name: str) -> Host:
    return host(name)


def plan_on(machine: Host, runtime: str | None, *, model: str = "qwen3-4b", **wish: Any) -> Plan:
    row = by_alias(model)
    assert row is not None
    asked = {"runtime": runtime} if runtime else {}
    return decide(host=machine, model=listed(row), service=a_service(model, **asked, **wish), port=8000)


def workload_on(plan: Plan) -> Workload:
    """In the form in which it is written for its runtime."""
    return replace(workload_of(plan, PLACE), form=_FORMS[plan.runtime])


def complaints(plan: Plan, machine: Host) -> list[Finding]:
    """Errors and warnings of our own lint that are about the container, and not about the machine whatever runs."""
    own = {(finding.id, finding.title) for finding in check_host(machine)}
    return [
        finding
        for finding in lint(workload_on(plan), machine)
        if finding.severity in (Severity.ERROR, Severity.WARNING) and (finding.id, finding.title) not in own
    ]
