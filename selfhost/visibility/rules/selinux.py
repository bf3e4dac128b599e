"""SELinux: labels that keep a container from a device."""

from collections.abc import Iterator

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import ContainerEngine, Workload
from selfhost.visibility.nodes import handed_in, in_a_container
from selfhost.visibility.rule import Found, place, rule


@rule(
    "DV074",
    Severity.WARNING,
    source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html",
)
def label_keeps_the_device(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or host.surroundings is None or host.surroundings.selinux != "enforcing":
        return
    if not in_a_container(workload) or workload.privileged or not _asks_for_a_card(workload):
        return
    if any(option.replace(":", "=").startswith(("label=disable", "label=type")) for option in workload.security_opt):
        return
    if workload.container_engine is ContainerEngine.DOCKER and not _docker_labels(host):
        return
    yield Found(
        title=f"{workload.label} runs under an SELinux label that may not open the card",
        place=place(workload, "security_opt"),
        evidence="SELinux is enforcing; security_opt has no label=…",
        why="Containers get a label of their own, and the policy keeps it from device nodes unless the boolean "
        "container_use_devices is on. NVML then says `Insufficient Permissions`.",
        fix=(
            "let containers use devices, on the machine:\nsudo setsebool -P container_use_devices=true",
            "or drop the label for this container: --security-opt label=disable (Quadlet: SecurityLabelDisable=true)",
        ),
    )


def _asks_for_a_card(workload: Workload) -> bool:
    nodes = any(path.startswith(("/dev/nvidia", "/dev/kfd", "/dev/dri")) for path, _ in handed_in(workload))
    return bool(nodes or workload.cdi or workload.requests or workload.runtime in ("nvidia", "amd"))


def _docker_labels(host: Host) -> bool:
    """Docker labels containers only when its daemon was told to (selinux-enabled)."""
    engines = host.surroundings.engines if host.surroundings else ()
    return any("selinux" in option for engine in engines if engine.kind == "docker" for option in engine.security)
