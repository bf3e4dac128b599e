"""A workload as the body that Docker's API takes to create a container (docs.docker.com/reference/api/engine)."""

from collections.abc import Mapping
from typing import Any

from selfhost.shapes.workload import DeviceRequest, Health, Mount, Workload

NANOSECONDS = 10**9


def body_of(workload: Workload, env: Mapping[str, str]) -> dict[str, Any]:
    """`env` holds all variables, those of env_files included: nothing else of the body is secret."""
    body: dict[str, Any] = {
        "Image": workload.image,
        "Env": [f"{name}={value}" for name, value in env.items()],
        "Labels": dict(workload.labels),
        "HostConfig": _host(workload),
    }
    if workload.argv:
        body["Cmd"] = list(workload.argv)
    if workload.entrypoint is not None:
        body["Entrypoint"] = list(workload.entrypoint) or [""]  # one empty word resets it
    if workload.user:
        body["User"] = workload.user
    if workload.stop_grace_s is not None:
        body["StopTimeout"] = round(workload.stop_grace_s)
    if workload.health is not None:
        body["Healthcheck"] = _health(workload.health)
    inner = sorted({_port(one)[2] for one in workload.ports})
    if inner:
        body["ExposedPorts"] = {port: {} for port in inner}
    if workload.network and _named(workload.network):
        body["NetworkingConfig"] = {"EndpointsConfig": {workload.network: {}}}
    return body


def _host(workload: Workload) -> dict[str, Any]:
    mounts = [_mount(one) for one in workload.mounts if one.kind != "tmpfs"]
    name, _, most = workload.restart.partition(":")
    host: dict[str, Any] = {
        "NetworkMode": workload.network or "default",
        "PortBindings": _bindings(workload.ports),
        "Mounts": mounts,
        "Tmpfs": {one.target: _size(one) for one in workload.mounts if one.kind == "tmpfs"},
        "Devices": [
            {"PathOnHost": one.source, "PathInContainer": one.target or one.source, "CgroupPermissions": "rwm"}
            for one in workload.devices
        ],
        "DeviceRequests": [_request(one) for one in workload.requests],
        "DeviceCgroupRules": list(workload.device_cgroup_rules),
        "GroupAdd": list(workload.group_add),
        "CapAdd": list(workload.cap_add),
        "CapDrop": list(workload.cap_drop),
        "SecurityOpt": list(workload.security_opt),
        "Privileged": workload.privileged,
        "ReadonlyRootfs": workload.read_only,
        "Init": workload.init,
        "IpcMode": workload.ipc,
        "PidMode": workload.pid,
        "UsernsMode": workload.userns,
        "Runtime": workload.runtime,
        "Ulimits": [{"Name": one.name, "Soft": one.soft, "Hard": one.hard} for one in workload.ulimits],
        "RestartPolicy": {"Name": name or "no", "MaximumRetryCount": int(most) if most.isdigit() else 0},
    }
    if workload.cdi:
        names = [f"{one.kind}={one.name}" for one in workload.cdi]
        host["DeviceRequests"].append({"Driver": "cdi", "Count": 0, "DeviceIDs": names})
    if workload.shm_bytes is not None:
        host["ShmSize"] = workload.shm_bytes
    if workload.log_driver or workload.log_options:
        host["LogConfig"] = {"Type": workload.log_driver, "Config": dict(workload.log_options)}
    return host


def _health(health: Health) -> dict[str, Any]:
    return {
        "Test": ["CMD", *health.test],
        "Interval": round(health.interval_s * NANOSECONDS),
        "Timeout": round(health.timeout_s * NANOSECONDS),
        "StartPeriod": round(health.start_period_s * NANOSECONDS),
        "Retries": health.retries,
    }


def _mount(mount: Mount) -> dict[str, Any]:
    return {"Type": mount.kind, "Source": mount.source, "Target": mount.target, "ReadOnly": mount.read_only}


def _size(mount: Mount) -> str:
    return "" if mount.size_bytes is None else f"size={mount.size_bytes}"


def _request(request: DeviceRequest) -> dict[str, Any]:
    count = 0 if request.ids else -1 if request.count is None else request.count
    return {
        "Driver": request.driver,
        "Count": count,
        "DeviceIDs": list(request.ids),
        "Capabilities": [list(request.capabilities or ("gpu",))],
    }


def _bindings(ports: tuple[str, ...]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for text in ports:
        address, outer, inner = _port(text)
        found.setdefault(inner, []).append({"HostIp": address, "HostPort": outer})
    return found


def _port(text: str) -> tuple[str, str, str]:
    """`127.0.0.1:8001:8000/tcp` → address, port of the host, and `8000/tcp`."""
    plain, _, protocol = text.partition("/")
    rest, _, inner = plain.rpartition(":")
    address, _, outer = rest.rpartition(":")
    return address.strip("[]"), outer, f"{inner}/{protocol or 'tcp'}"


def _named(network: str) -> bool:
    """A network of its own, and none of the words that Docker gives a meaning."""
    return network not in ("default", "bridge", "host", "none") and not network.startswith("container:")
