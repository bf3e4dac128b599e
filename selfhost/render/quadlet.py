"""NAME.container with its network and volume: units that Quadlet makes services of (podman-systemd.unit(5)).

Keys are those of podman 4.7, the first whose Quadlet names networks and volumes (VolumeName=, NetworkName=); what got a
key later goes by PodmanArgs=, which all of them have.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from selfhost.plan.container.run_words import RunOption, command_words, run_options
from selfhost.render.compose import has_own_network, volume_keys
from selfhost.render.escape import Escaped, holds_in_unit, systemd_value, systemd_word
from selfhost.render.lines import Line, Reasons
from selfhost.render.refuse import refuse_unsayable
from selfhost.render.words import by_flag
from selfhost.shapes.workload import Mount, Workload

_WHOLE = {
    "--name": "ContainerName",
    "--publish": "PublishPort",
    "--device": "AddDevice",
}
_WORDS = {"--cap-add": "AddCapability", "--cap-drop": "DropCapability", "--env": "Environment", "--label": "Label",
          "--env-file": "EnvironmentFile"}  # fmt: skip
_ALONE = {"--init": "RunInit", "--read-only": "ReadOnly"}
_PULL_S = 3600
"""An image of 10 GB at 3 MB/s: podman pulls within the start."""
_MARGIN_S = 30
_POLICIES = {"unless-stopped": "always", "no": "no", "on-failure": "on-failure"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the templates put together. `networks` and `volumes` by the name of their unit's file."""

    unit: str
    limits: tuple[Line, ...]
    lines: tuple[Line, ...]
    service: tuple[Line, ...]
    starts_at_boot: bool
    networks: dict[str, str]
    volumes: dict[str, str]
    labels: tuple[str, ...]


def parts(workload: Workload, reasons: Mapping[str, str]) -> Parts:
    """Raises InputError for what Quadlet cannot say."""
    refuse_unsayable(workload, "quadlet")
    why = Reasons(reasons)
    volumes = {name: f"{workload.name}-{key}.volume" for name, key in volume_keys(workload).items()}
    networks = {workload.network: f"{workload.name}.network"} if has_own_network(workload) else {}
    options = [option for option in run_options(workload, "podman") if option.key != "restart"]
    lines = [Line(Escaped(f"Image={systemd_value(workload.image)}"), why.of("image"))]
    for option in options:
        for number, text in enumerate(_line(option, workload, networks, volumes)):
            lines.append(Line(Escaped(text), "" if number else why.of(_key(option, workload))))
    return Parts(
        unit=workload.name,
        limits=tuple(_limits(workload)),
        lines=(*lines, *_exec(workload, why)),
        service=tuple(_service(workload, why)),
        starts_at_boot=workload.restart != "no",
        networks={file: name for name, file in networks.items()},
        volumes={file: name for name, file in volumes.items()},
        labels=tuple(f"{name}={value}" for name, value in workload.labels.items()),
    )


def _key(option: RunOption, workload: Workload) -> str:
    if option.key == "security_opt":
        return f"security_opt.{workload.security_opt.index(option.words[1])}"
    return option.key


def _line(option: RunOption, workload: Workload, networks: Mapping[str, str], volumes: Mapping[str, str]) -> list[str]:
    """By a key of its own where podman 4.7 has one that keeps the value; else as an argument of podman run."""
    name, value = option.words[0], option.words[1] if len(option.words) > 1 else ""
    own: list[str] = []
    if name in _ALONE:
        own = [f"{_ALONE[name]}=true"]
    elif name in _WORDS:
        own = [f"{_WORDS[name]}={systemd_word(value)}"]
    elif name == "--network" and value in networks:
        own = [f"Network={systemd_value(networks[value])}"]
    elif option.key.startswith("mounts."):
        own = _mount(workload.mounts[int(option.key.partition(".")[2])], volumes)
    elif name == "--user":
        own = _user(value)
    elif name == "--security-opt":
        own = _security(value)
    elif name in _WHOLE and holds_in_unit(value) and not value.startswith("-"):
        own = [f"{_WHOLE[name]}={systemd_value(value)}"]
    return own or [_argument(option)]


def _user(value: str) -> list[str]:
    user, colon, group = value.partition(":")
    return [f"User={user}", f"Group={group}"] if colon and user.isdecimal() and group.isdecimal() else []


def _argument(option: RunOption) -> str:
    return "PodmanArgs=" + " ".join(systemd_word(word) for word in option.words)


def _security(value: str) -> list[str]:
    if value in ("no-new-privileges", "no-new-privileges:true"):
        return ["NoNewPrivileges=true"]
    if value == "label=disable":
        return ["SecurityLabelDisable=true"]
    profile = value.removeprefix("seccomp=")
    return [f"SeccompProfile={systemd_value(profile)}"] if profile != value and holds_in_unit(profile) else []


def _mount(mount: Mount, volumes: Mapping[str, str]) -> list[str]:
    """Nothing where Volume= has no words for it."""
    source = volumes.get(mount.source, mount.source) if mount.kind == "volume" else mount.source
    plain = source and all(holds_in_unit(text) and ":" not in text for text in (source, mount.target))
    if not plain or (mount.kind == "bind" and not source.startswith("/")) or mount.kind == "tmpfs":
        return []
    return [f"Volume={systemd_value(source)}:{systemd_value(mount.target)}{':ro' if mount.read_only else ''}"]


def _exec(workload: Workload, why: Reasons) -> Iterator[Line]:
    """Reasons stand above: the Quadlet of podman 4 ends a continued setting at a comment among its lines."""
    lines = by_flag(command_words(workload))
    reasons = [(words[0], why.of(f"argv.{words[0]}")) for words in lines]
    above = "; ".join(f"{flag}: {reason}" for flag, reason in reasons if reason)
    for number, words in enumerate(lines):
        text = " ".join(systemd_word(word) for word in words)
        begin = "" if number else "Exec="
        yield Line(Escaped(begin + text), "" if number else above, 1 if number else 0, joined=number + 1 < len(lines))


def _tries(workload: Workload) -> str:
    policy, _, tries = workload.restart.partition(":")
    return tries if policy == "on-failure" else ""


def _load_s(workload: Workload) -> int:
    return round(workload.health.start_period_s) if workload.health is not None else 0


def _limits(workload: Workload) -> Iterator[Line]:
    tries = _tries(workload)
    if tries:
        interval = (int(tries) + 1) * (_load_s(workload) + _MARGIN_S)
        yield Line(Escaped(f"StartLimitBurst={tries}"), f"a start that fails stops after {tries} tries")
        yield Line(Escaped(f"StartLimitIntervalSec={interval}"), "longer than all of them take")
    elif workload.restart == "unless-stopped":
        yield Line(Escaped("StartLimitIntervalSec=0"))


def _service(workload: Workload, why: Reasons) -> Iterator[Line]:
    policy = workload.restart.partition(":")[0]
    if policy:
        yield Line(Escaped(f"Restart={_POLICIES.get(policy, policy)}"), why.of("restart"))
        yield Line(Escaped("RestartSec=10"))
    yield Line(Escaped(f"TimeoutStartSec={_load_s(workload) + _PULL_S}"), "the image is pulled within the start")
    if workload.stop_grace_s is not None:
        yield Line(Escaped(f"TimeoutStopSec={round(workload.stop_grace_s) + _MARGIN_S}"), "longer than --stop-timeout")
