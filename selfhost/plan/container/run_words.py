"""A workload as the words of `docker run` or `podman run`: for the rendered line, and for podman itself."""

import csv
import io
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from selfhost.shapes.workload import DeviceRequest, EnvSource, Mount, Workload


@dataclass(frozen=True, slots=True)
class RunOption:
    """One option with its value. `key` is the Workload's, as reasons are named by: `env.NAME`, `mounts.0`."""

    key: str
    words: tuple[str, ...]


def run_argv(workload: Workload, program: str, *, verb: Sequence[str] = ("run", "--detach")) -> tuple[str, ...]:
    """The whole command. `program` is `docker` or `podman`; no value that an env_file holds is in it."""
    begin = [word for option in global_options(workload, program) for word in option.words]
    words = [word for option in run_options(workload, program) for word in option.words]
    return (program, *begin, *verb, *words, workload.image, *command_words(workload))


def command_words(workload: Workload) -> tuple[str, ...]:
    """What stands behind the image: `--entrypoint` takes one word, further ones go before the arguments."""
    return (*(workload.entrypoint or ())[1:], *workload.argv)


def global_options(workload: Workload, program: str) -> tuple[RunOption, ...]:
    """Options before the verb: podman takes its OCI runtime and hooks there."""
    if program != "podman":
        return ()
    runtime = [RunOption("runtime", ("--runtime", workload.runtime))] if workload.runtime else []
    return (*runtime, *(RunOption("hooks_dirs", ("--hooks-dir", one)) for one in workload.hooks_dirs))


def run_options(workload: Workload, program: str) -> tuple[RunOption, ...]:
    """Options behind the verb, in an order that a person would read them in."""
    return (
        RunOption("name", ("--name", workload.name)),
        *_devices(workload, program),
        *_security(workload),
        *_sharing(workload),
        *_environment(workload),
        *_life(workload, program),
        *(RunOption(f"labels.{name}", ("--label", f"{name}={value}")) for name, value in workload.labels.items()),
    )


def _devices(workload: Workload, program: str) -> Iterator[RunOption]:
    for number, cdi in enumerate(workload.cdi):
        yield RunOption(f"cdi.{number}", ("--device", f"{cdi.kind}={cdi.name}"))
    for number, request in enumerate(workload.requests):
        yield RunOption(f"requests.{number}", ("--gpus", _request(request)))
    if workload.runtime and program != "podman":
        yield RunOption("runtime", ("--runtime", workload.runtime))
    for number, device in enumerate(workload.devices):
        same = device.target in ("", device.source)
        yield RunOption(
            f"devices.{number}", ("--device", device.source if same else f"{device.source}:{device.target}")
        )
    for rule in workload.device_cgroup_rules:
        yield RunOption("device_cgroup_rules", ("--device-cgroup-rule", rule))


def _security(workload: Workload) -> Iterator[RunOption]:
    if workload.user:
        yield RunOption("user", ("--user", workload.user))
    if workload.userns:
        yield RunOption("userns", ("--userns", workload.userns))
    for key, option, values in (
        ("group_add", "--group-add", workload.group_add),
        ("cap_drop", "--cap-drop", workload.cap_drop),
        ("cap_add", "--cap-add", workload.cap_add),
        ("security_opt", "--security-opt", workload.security_opt),
    ):
        for value in values:
            yield RunOption(key, (option, value))
    if workload.privileged:
        yield RunOption("privileged", ("--privileged",))
    if workload.read_only:
        yield RunOption("read_only", ("--read-only",))


def _sharing(workload: Workload) -> Iterator[RunOption]:
    """What it has in common with the outside: network, memory, files."""
    for key, option, value in (
        ("network", "--network", workload.network),
        ("ipc", "--ipc", workload.ipc),
        ("pid", "--pid", workload.pid),
    ):
        if value:
            yield RunOption(key, (option, value))
    for number, port in enumerate(workload.ports):
        yield RunOption(f"ports.{number}", ("--publish", port))
    if workload.shm_bytes is not None:
        yield RunOption("shm_bytes", ("--shm-size", f"{workload.shm_bytes}b"))
    for limit in workload.ulimits:
        yield RunOption(f"ulimits.{limit.name}", ("--ulimit", f"{limit.name}={limit.soft}:{limit.hard}"))
    for number, mount in enumerate(workload.mounts):
        yield RunOption(f"mounts.{number}", _mount(mount))


def _mount(mount: Mount) -> tuple[str, str]:
    """`--mount` and not `-v`: Docker makes the missing source of a `-v` as an empty folder."""
    if mount.kind == "tmpfs":
        return "--tmpfs", mount.target if mount.size_bytes is None else f"{mount.target}:size={mount.size_bytes}"
    fields = [f"type={mount.kind}", *([f"source={mount.source}"] if mount.source else []), f"target={mount.target}"]
    return "--mount", _csv([*fields, *(["readonly"] if mount.read_only else [])])


def _environment(workload: Workload) -> Iterator[RunOption]:
    for path in workload.env_files:
        yield RunOption("env_files", ("--env-file", path))
    for name, value in workload.env.items():
        if workload.env_sources.get(name, EnvSource.TEXT) is EnvSource.TEXT:
            yield RunOption(f"env.{name}", ("--env", f"{name}={value}"))
    for name, source in workload.env_sources.items():
        if source is EnvSource.PASSED_THROUGH:
            yield RunOption(f"env.{name}", ("--env", name))


def _life(workload: Workload, program: str) -> Iterator[RunOption]:
    if workload.entrypoint is not None:
        yield RunOption("entrypoint", ("--entrypoint", workload.entrypoint[0] if workload.entrypoint else ""))
    if workload.init:
        yield RunOption("init", ("--init",))
    if workload.restart:
        yield RunOption("restart", ("--restart", workload.restart))
    if workload.stop_grace_s is not None:
        yield RunOption("stop_grace_s", ("--stop-timeout", str(round(workload.stop_grace_s))))
    if workload.health is not None:
        health = workload.health
        # Docker's option takes a line for a shell; podman takes a list of words too (podman-run(1)), without its CMD.
        test = shlex.join(health.test) if program == "docker" else json.dumps(list(health.test), ensure_ascii=False)
        yield RunOption("health", ("--health-cmd", test))
        for option, seconds in (
            ("--health-interval", health.interval_s),
            ("--health-timeout", health.timeout_s),
            ("--health-start-period", health.start_period_s),
        ):
            yield RunOption("health", (option, f"{seconds:g}s"))
        yield RunOption("health", ("--health-retries", str(health.retries)))
    if workload.log_driver:
        yield RunOption("log_driver", ("--log-driver", workload.log_driver))
    for name, value in workload.log_options.items():
        yield RunOption(f"log_options.{name}", ("--log-opt", f"{name}={value}"))


def _request(request: DeviceRequest) -> str:
    """The value of `--gpus`: fields between commas; one with a comma in it in quotes (docker/cli, opts/gpus.go)."""
    devices = f"device={','.join(request.ids)}" if request.ids else ""
    count = "" if request.ids else "all" if request.count in (None, -1) else f"count={request.count}"
    plain = request.capabilities in (None, ("gpu",))
    capabilities = "" if plain else f"capabilities={','.join(request.capabilities or ())}"
    driver = f"driver={request.driver}" if request.driver else ""
    return _csv([one for one in (devices, count, capabilities, driver) if one])


def _csv(fields: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(fields)
    return out.getvalue()
