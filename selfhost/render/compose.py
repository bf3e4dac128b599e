"""compose.yaml: one service with its network and its cache volume, as a person would write it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from selfhost.render.escape import Escaped, compose, yaml
from selfhost.render.lines import Line, Reasons
from selfhost.render.refuse import refuse_unsayable
from selfhost.render.words import by_flag
from selfhost.shapes.workload import Health, Mount, Workload

FILE = "compose.yaml"
OVERRIDE = "overrides/compose.override.yaml"
PREFIX = "selfhost-"
_MODES = ("host", "none", "bridge", "default")
_UNITS = (("gb", 1024**3), ("mb", 1024**2), ("kb", 1024))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the template puts together."""

    project: str
    service: str
    lines: tuple[Line, ...]
    beside: tuple[Line, ...]
    """Networks and volumes."""


def parts(workload: Workload, reasons: Mapping[str, str]) -> Parts:
    """Raises InputError for what Compose cannot say."""
    refuse_unsayable(workload, "compose")
    why = Reasons(reasons)
    return Parts(
        project=re.sub(r"[^a-z0-9_-]+", "-", workload.name.lower()),
        service=workload.name.removeprefix(PREFIX),
        lines=tuple(_service(workload, why)),
        beside=tuple(_beside(workload, why)),
    )


def _service(workload: Workload, why: Reasons) -> Iterator[Line]:
    yield _pair("container_name", workload.name)
    yield _pair("image", workload.image, why.of("image"))
    if workload.entrypoint is not None:
        yield from _flow("entrypoint", workload.entrypoint, "")
    yield from _command(workload, why)
    yield from _devices(workload, why)
    yield from _security(workload, why)
    yield from _sharing(workload, why)
    yield from _files(workload, why)
    yield from _environment(workload, why)
    yield from _life(workload, why)


def _command(workload: Workload, why: Reasons) -> Iterator[Line]:
    if not workload.argv:
        return
    yield Line(Escaped("command: ["), "", 2)
    for words in by_flag(workload.argv):
        yield Line(Escaped(", ".join(compose(word) for word in words) + ","), why.of(f"argv.{words[0]}"), 3)
    yield Line(Escaped("]"), "", 2)


def _devices(workload: Workload, why: Reasons) -> Iterator[Line]:
    if workload.runtime:
        yield _pair("runtime", workload.runtime, why.of("runtime"))
    if workload.cdi or workload.requests:
        yield Line(Escaped("deploy:"), "", 2)
        yield Line(Escaped("resources:"), "", 3)
        yield Line(Escaped("reservations:"), "", 4)
        yield Line(Escaped("devices:"), why.of("cdi") or why.of("requests"), 5)
    if workload.cdi:
        yield _pair("- driver", "cdi", "", 6)
        yield _list("device_ids", [f"{one.kind}={one.name}" for one in workload.cdi], "", 7)
        yield _list("capabilities", ["gpu"], "", 7)
    for request in workload.requests:
        first = f"driver: {compose(request.driver)}" if request.driver else "capabilities: [gpu]"
        yield Line(Escaped(f"- {first}"), "", 6)
        if request.ids:
            yield _list("device_ids", request.ids, "", 7)
        else:
            yield _number("count", "all" if request.count == -1 else str(request.count), "", 7)
        if request.driver:
            yield _list("capabilities", ["gpu"], "", 7)
    if workload.devices:
        yield Line(Escaped("devices:"), why.of("devices"), 2)
        for device in workload.devices:
            same = device.target in ("", device.source)
            yield _item(device.source if same else f"{device.source}:{device.target}", "", 3)
    if workload.device_cgroup_rules:
        yield _list("device_cgroup_rules", workload.device_cgroup_rules, "", 2)


def _security(workload: Workload, why: Reasons) -> Iterator[Line]:
    if workload.user:
        yield _pair("user", workload.user, why.of("user"))
    if workload.userns:
        yield _pair("userns_mode", workload.userns)
    for key in ("group_add", "cap_drop", "cap_add"):
        values = getattr(workload, key)
        if values:
            yield _list(key, values, why.of(key), 2)
    if workload.security_opt:
        yield Line(Escaped("security_opt:"), "", 2)
        for number, text in enumerate(workload.security_opt):
            yield _item(text, why.of(f"security_opt.{number}"), 3)
    if workload.privileged:
        yield _number("privileged", "true", why.of("privileged"), 2)
    if workload.read_only:
        yield _number("read_only", "true", why.of("read_only"), 2)


def _sharing(workload: Workload, why: Reasons) -> Iterator[Line]:
    if workload.network and not has_own_network(workload):
        yield _pair("network_mode", workload.network, why.of("network"))
    if workload.ports:
        yield Line(Escaped("ports:"), "", 2)
        for number, port in enumerate(workload.ports):
            yield _item(port, why.of(f"ports.{number}"), 3)
    if workload.ipc:
        yield _pair("ipc", workload.ipc, why.of("ipc"))
    if workload.pid:
        yield _pair("pid", workload.pid, why.of("pid"))
    if workload.shm_bytes is not None:
        yield _number("shm_size", size(workload.shm_bytes), why.of("shm_bytes"), 2)
    if workload.ulimits:
        yield Line(Escaped("ulimits:"), "", 2)
        for limit in workload.ulimits:
            flow = f"{yaml(limit.name)}: {{soft: {limit.soft}, hard: {limit.hard}}}"
            yield Line(Escaped(flow), why.of(f"ulimits.{limit.name}"), 3)


def _files(workload: Workload, why: Reasons) -> Iterator[Line]:
    if workload.mounts:
        yield Line(Escaped("volumes:"), "", 2)
    keys = volume_keys(workload)
    for number, mount in enumerate(workload.mounts):
        yield _pair("- type", mount.kind, why.of(f"mounts.{number}"), 3)
        if mount.source:
            yield _pair(
                "source", keys.get(mount.source, mount.source) if mount.kind == "volume" else mount.source, "", 4
            )
        yield _pair("target", mount.target, "", 4)
        if mount.read_only:
            yield _number("read_only", "true", "", 4)
        yield from _kind_of(mount)


def _kind_of(mount: Mount) -> Iterator[Line]:
    if mount.kind == "bind":
        yield Line(Escaped("bind: {create_host_path: false}"), "", 4)
    if mount.kind == "tmpfs" and mount.size_bytes is not None:
        yield Line(Escaped(f"tmpfs: {{size: {mount.size_bytes}}}"), "", 4)


def _environment(workload: Workload, why: Reasons) -> Iterator[Line]:
    if workload.env_files:
        yield _list("env_file", workload.env_files, why.of("env_files"), 2)
    if workload.env:
        yield Line(Escaped("environment:"), "", 2)
        for name, value in workload.env.items():
            yield Line(Escaped(f"{yaml(name)}: {compose(value)}"), why.of(f"env.{name}"), 3)


def _life(workload: Workload, why: Reasons) -> Iterator[Line]:
    if workload.init:
        yield _number("init", "true", why.of("init"), 2)
    if workload.restart:
        yield Line(Escaped(f'restart: "{workload.restart}"'), why.of("restart"), 2)
    if workload.stop_grace_s is not None:
        yield _number("stop_grace_period", duration(workload.stop_grace_s), why.of("stop_grace_s"), 2)
    if workload.health is not None:
        yield from _health(workload.health, why)
    if workload.log_driver or workload.log_options:
        yield Line(Escaped("logging:"), why.of("log_driver"), 2)
        if workload.log_driver:
            yield _pair("driver", workload.log_driver, "", 3)
        if workload.log_options:
            yield Line(Escaped("options:"), "", 3)
            for name, value in workload.log_options.items():
                yield Line(Escaped(f"{yaml(name)}: {compose(value)}"), "", 4)
    yield from _labels(workload.labels, 2)


def _health(health: Health, why: Reasons) -> Iterator[Line]:
    yield Line(Escaped("healthcheck:"), why.of("health"), 2)
    yield _list("test", ["CMD", *health.test], "", 3)
    yield _number("interval", duration(health.interval_s), "", 3)
    yield _number("timeout", duration(health.timeout_s), "", 3)
    yield _number("retries", str(health.retries), "", 3)
    yield _number("start_period", duration(health.start_period_s), "", 3)


def _beside(workload: Workload, why: Reasons) -> Iterator[Line]:
    if has_own_network(workload):
        yield Line(Escaped("networks:"))
        yield Line(Escaped("default:"), why.of("network"), 1)
        yield _pair("name", workload.network, "", 2)
        yield from _labels(workload.labels, 2)
    keys = volume_keys(workload)
    if keys:
        yield Line(Escaped("volumes:"))
    for name, key in keys.items():
        yield Line(Escaped(f"{key}:"), "", 1)
        yield _pair("name", name, "", 2)
        yield from _labels(workload.labels, 2)


def has_own_network(workload: Workload) -> bool:
    return bool(workload.network) and workload.network not in _MODES and ":" not in workload.network


def volume_keys(workload: Workload) -> dict[str, str]:
    """Volumes by their name in the engine, and how files speak of them: `cache`, `cache2`."""
    names = dict.fromkeys(mount.source for mount in workload.mounts if mount.kind == "volume" and mount.source)
    return {name: f"cache{number if number > 1 else ''}" for number, name in enumerate(names, start=1)}


def size(count: int) -> str:
    for unit, factor in _UNITS:
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count}b"


def duration(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds * 1000:.0f}ms"


def _labels(labels: Mapping[str, str], depth: int) -> Iterator[Line]:
    if labels:
        yield Line(Escaped("labels:"), "", depth)
        for name, value in labels.items():
            yield Line(Escaped(f"{yaml(name)}: {compose(value)}"), "", depth + 1)


def _pair(key: str, value: str, why: str = "", depth: int = 2) -> Line:
    return Line(Escaped(f"{key}: {compose(value)}"), why, depth)


def _number(key: str, value: str, why: str, depth: int) -> Line:
    """A number, a time or a yes: words of ours that need no quotes."""
    return Line(Escaped(f"{key}: {value}"), why, depth)


def _item(value: str, why: str, depth: int) -> Line:
    return Line(Escaped(f"- {compose(value)}"), why, depth)


def _flow(key: str, values: tuple[str, ...], why: str) -> Iterator[Line]:
    yield _list(key, values, why, 2)


def _list(key: str, values: "list[str] | tuple[str, ...]", why: str, depth: int) -> Line:
    return Line(Escaped(f"{key}: [{', '.join(compose(value) for value in values)}]"), why, depth)
