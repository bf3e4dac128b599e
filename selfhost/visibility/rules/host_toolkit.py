"""The NVIDIA container toolkit against the engine it serves: device rules, bad versions, snap, LXC."""

from collections.abc import Iterator
from typing import Final

from selfhost.core.versions import numbers
from selfhost.hosts.toolkits import Window, windows
from selfhost.shapes.finding import Place, RunOn, Severity
from selfhost.shapes.host import Host, Known, Vendor
from selfhost.shapes.surroundings import Engine, Toolkit
from selfhost.visibility.rule import Found, host_rule
from selfhost.visibility.rules.host_cdi import reads_only_old_cdi
from selfhost.visibility.rules.host_layers import around, layers, of

_CONFIG: Final = "/etc/nvidia-container-runtime/config.toml"
_HOOK: Final = ("nvidia:gpus", "nvidia:runtime")
_BY_CDI: Final = (
    "use CDI in that engine, which needs no device rules of the toolkit:\n"
    "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml\n"
    "docker run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi"
)


def _toolkit(host: Host) -> Toolkit | None:
    return next((one for one in around(host).toolkits if one.vendor is Vendor.NVIDIA), None)


def _dockers(host: Host, *, rootless: bool) -> Iterator[Engine]:
    """Docker daemons of this machine that hand in NVIDIA cards by the toolkit's hook and not by CDI."""
    for engine in around(host).engines:
        own = not (engine.remote or engine.desktop or engine.sibling)
        said = isinstance(engine.rootless, Known) and engine.rootless.value is rootless
        if engine.kind == "docker" and own and said and any(way in engine.injects for way in _HOOK):
            yield engine


def _is_of_cdi(engine: Engine, toolkit: Toolkit) -> bool:
    """Whether no way that the engine has goes by the hook any more."""
    return toolkit.mode == "cdi" or (numbers(engine.version) >= (29,) and "nvidia:cdi" in engine.injects)


def _unprivileged_lxc(host: Host) -> bool:
    return "lxc" in layers(host) and around(host).user_namespace not in ("", "initial")


@host_rule("DV029", Severity.ERROR, source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/85")
def no_device_rules_for_a_daemon_of_root(host: Host) -> Iterator[Found]:
    toolkit = _toolkit(host)
    if toolkit is None or toolkit.no_cgroups is not True or _unprivileged_lxc(host):
        return
    for engine in _dockers(host, rootless=False):
        if not _is_of_cdi(engine, toolkit):
            yield Found(
                title="the NVIDIA toolkit opens no device for containers of this Docker",
                place=Place(path=_CONFIG, object=engine.kind),
                evidence=f"no-cgroups = true, and Docker {engine.version} runs as root".replace("  ", " "),
                why="The nodes are put into the container and the device rules keep it from opening them: "
                "`Failed to initialize NVML: Unknown Error`. The setting is for rootless engines alone.",
                fix=(
                    (
                        "let it write device rules again:\n"
                        "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place\n"
                        "sudo systemctl restart docker"
                    ),
                    "where a rootless engine needs the setting, use CDI there instead: one file serves both",
                ),
            )


@host_rule("DV029b", Severity.ERROR, source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/1487")
def device_rules_for_a_daemon_without_root(host: Host) -> Iterator[Found]:
    toolkit = _toolkit(host)
    if toolkit is None or toolkit.fault or True in (toolkit.no_cgroups, toolkit.user_no_cgroups):
        return
    for engine in _dockers(host, rootless=True):
        if not _is_of_cdi(engine, toolkit) and "nvidia:cdi" not in engine.injects:
            yield Found(
                title="the NVIDIA toolkit wants to write device rules for a rootless Docker",
                place=Place(path=_CONFIG, object=engine.kind),
                evidence="no-cgroups is not set" if toolkit.no_cgroups is None else "no-cgroups = false",
                why="Without root nobody may: a container with a card ends at the start with "
                "`bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted`.",
                fix=(
                    _BY_CDI,
                    (
                        "or, where no daemon of root uses the same file, turn the rules off:\n"
                        "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place"
                    ),
                ),
            )


@host_rule("DV039", Severity.ERROR, source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/1555")
def toolkit_version_is_known_to_fail(host: Host) -> Iterator[Found]:
    for toolkit in around(host).toolkits:
        if not isinstance(toolkit.version, Known):
            continue
        for window in windows(toolkit.vendor, numbers(toolkit.version.value)):
            if _applies(window, host):
                yield Found(
                    title=f"{toolkit.vendor.value} container toolkit {toolkit.version.value} {window.what}",
                    place=Place(object=f"{toolkit.vendor.value} container toolkit"),
                    evidence=f"{toolkit.version.how}: {toolkit.version.value}; see {window.source}",
                    why=window.why,
                    fix=(window.fix,),
                )


def _applies(window: Window, host: Host) -> bool:
    engines = around(host).engines
    if window.needs == "rootless":
        return any(isinstance(engine.rootless, Known) and engine.rootless.value for engine in engines)
    if window.needs == "old-cdi":
        return any(reads_only_old_cdi(engine) for engine in engines)
    if window.needs == "no-cgroups":
        return any(toolkit.no_cgroups for toolkit in around(host).toolkits)
    return True


@host_rule("DV070", Severity.ERROR, source="https://github.com/canonical/docker-snap/issues/161")
def docker_is_a_snap(host: Host) -> Iterator[Found]:
    if not of(host, Vendor.NVIDIA):
        return
    for engine in around(host).engines:
        if not engine.snap:
            continue
        works = any(way.startswith("nvidia:") for way in engine.injects)
        yield Found(
            title="Docker is a snap, and shares little of this machine"
            if works
            else "Docker is a snap, and hands in no NVIDIA card",
            place=Place(path=engine.root_dir, object=engine.kind),
            evidence=f"its files lie in {engine.root_dir}; runtimes: {', '.join(engine.runtimes) or 'none'}",
            why="It brings a toolkit of its own and does not see that of the machine. Only folders below $HOME can be "
            "mounted: any other one is empty inside, without a word.",
            fix=(
                (
                    "install Docker from its own packages instead:\n"
                    "sudo snap remove docker\ncurl -fsSL https://get.docker.com | sudo sh"
                ),
            ),
            severity=Severity.WARNING if works else None,
        )


@host_rule("DV071", Severity.ERROR, source="https://github.com/NVIDIA/nvidia-docker/issues/1546")
def device_rules_inside_lxc(host: Host) -> Iterator[Found]:
    toolkit = _toolkit(host)
    if toolkit is None or toolkit.no_cgroups is True or toolkit.fault or not _unprivileged_lxc(host):
        return
    for engine in _dockers(host, rootless=False):
        if not _is_of_cdi(engine, toolkit):
            yield Found(
                title="Docker in this LXC container cannot open a card for its own containers",
                place=Place(path=_CONFIG, object=engine.kind),
                evidence="no-cgroups is not true, and this container is unprivileged: "
                f"uid_map {around(host).user_namespace}",
                why="Root of an unprivileged container may not load device rules, so the toolkit's hook ends with "
                "`bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted`.",
                fix=(
                    (
                        "turn the rules off in here; what the LXC container may open still bounds it:\n"
                        "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place\n"
                        "sudo systemctl restart docker"
                    ),
                    _BY_CDI,
                ),
                run_on=RunOn.HERE,
            )
