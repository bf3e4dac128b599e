"""AMD and Intel cards in a container: their device nodes, no more, and the numbers of the groups that open them."""

from selfhost.core.errors import EnvironmentMissing
from selfhost.plan.command_line import command_line
from selfhost.plan.container.surrounding import engine_seen, is_rootless
from selfhost.plan.container.way import Way, keyed
from selfhost.shapes.host import Accelerator, DeviceNode, Host, Known, Vendor
from selfhost.shapes.plan import Evidence, Injection
from selfhost.shapes.service import Service
from selfhost.shapes.workload import DevicePath, Mount

_SOURCE = {
    Vendor.AMD: "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",
    Vendor.INTEL: "https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html",
}
_KEEP_GROUPS = "https://docs.podman.io/en/latest/markdown/podman-run.1.html"
_HSA = "https://github.com/ROCm/ROCm/issues/3144"
_BY_PATH = "/dev/dri/by-path"
_EVERY = {Vendor.AMD: ("/dev/kfd", "/dev/dri"), Vendor.INTEL: ("/dev/dri",)}
_ALL_MAY = 0o006
_OPEN_TO_ALL = """or let every user of the machine open the nodes:
echo 'KERNEL=="kfd|renderD*", MODE="0666"' | sudo tee /etc/udev/rules.d/70-render.rules
sudo udevadm control --reload && sudo udevadm trigger"""


def nodes_way(cards: tuple[Accelerator, ...], *, host: Host, kind: str, service: Service) -> Way:
    """Raises EnvironmentMissing for an engine that cannot open them."""
    vendor = cards[0].vendor
    engine = engine_seen(host, kind)
    if engine is not None and engine.desktop:
        raise _desktop(cards, service)
    if vendor is Vendor.AMD:
        _refuse_part(cards, host, kind, service)
    nodes = {node.path: node for card in cards for node in card.nodes}
    groups = _groups(tuple(nodes.values()), host, kind, service)
    injection = Injection(
        way="nodes",
        devices=tuple(DevicePath(source=path) for path in nodes or _EVERY[vendor]),
        group_add=groups,
        env=_env(cards),
        mounts=(Mount(source=_BY_PATH, target=_BY_PATH, read_only=True),) if vendor is Vendor.INTEL else (),
        # Ranks read each other's memory and move pages between NUMA nodes, which Docker's profile refuses (vLLM's docs)
        security_opt=("seccomp=unconfined",) if vendor is Vendor.AMD and len(cards) > 1 else (),
    )
    why = _why(vendor) if nodes else "the nodes of these cards are not known here, so all of them, as documented"
    return Way(
        injection=injection,
        value=" ".join(device.source for device in injection.devices),
        reason=why,
        source=_SOURCE[vendor],
        evidence=Evidence.ASSUMED if engine is None or not nodes else Evidence.SEEN_HERE,
        note="this engine was not seen" if engine is None else "",
        reasons={**keyed(injection, why), **_reasons(injection)},
    )


def _env(cards: tuple[Accelerator, ...]) -> dict[str, str]:
    """Battlemage with oneCCL 2022 (torch 2.13 and later) was seen to hang in the first all-reduce of several ranks."""
    battlemage = any(isinstance(card.arch, Known) and card.arch.value.startswith("bmg") for card in cards)
    return {"CCL_ALLREDUCE": "ring"} if battlemage and len(cards) > 1 else {}  # vllm-project/vllm issue 50545


def _why(vendor: Vendor) -> str:
    return (
        "/dev/kfd is the door to the driver, and each card is its own render node: these and no others"
        if vendor is Vendor.AMD
        else "an Intel card is its render node: this one and no other"
    )


def _reasons(injection: Injection) -> dict[str, str]:
    found = {}
    if injection.group_add == ("keep-groups",):
        found["group_add"] = "a rootless podman drops the user's groups, and one of them opens the nodes"
    elif injection.group_add:
        found["group_add"] = "by number, as the host has it: inside the image the same name is another group"
    if injection.mounts:
        found["mounts.injection"] = "links by which oneCCL finds out how cards are wired; the nodes come without them"
    if injection.security_opt:
        found["security_opt.seccomp"] = "ranks read each other's memory, which the default profile refuses"
    return found


def _groups(nodes: tuple[DeviceNode, ...], host: Host, kind: str, service: Service) -> tuple[str, ...]:
    """Numbers of groups without which a node stays closed; `keep-groups` for a rootless podman."""
    closed = [node for node in nodes if node.mode and node.mode & _ALL_MAY != _ALL_MAY]
    if not is_rootless(host, kind):
        return tuple(str(gid) for gid in sorted({node.gid for node in closed}))
    own = host.surroundings.groups if host.surroundings is not None else ()
    by_group = [node for node in closed if node.gid in own]
    if kind == "podman":
        engine = engine_seen(host, kind)
        if by_group and engine is not None and engine.default_runtime == "runc":
            raise _no_groups(by_group[0], kind, service)
        return ("keep-groups",) if closed else ()
    if by_group:
        raise _no_groups(by_group[0], kind, service)
    return ()  # open to the user himself (an ACL), who is root inside


def _no_groups(node: DeviceNode, kind: str, service: Service) -> EnvironmentMissing:
    is_podman = kind == "podman"
    return EnvironmentMissing(
        f"a rootless {'podman with runc' if is_podman else 'Docker'} cannot open {node.path} in a container",
        why=f"The node belongs to group {node.gid}, mode {node.mode:04o}, and this engine drops the user's groups.",
        fix=(
            "install crun, which keeps them:\nsudo apt-get install crun"
            if is_podman
            else "use podman, which can keep them:\n" + command_line("up", service, change={"runtime": "podman"}),
            _OPEN_TO_ALL,
        ),
        id="PL080",
    )


def _refuse_part(cards: tuple[Accelerator, ...], host: Host, kind: str, service: Service) -> None:
    """Without root there are no device rules, and ROCm opens every card that the driver lists."""
    every = [card for card in host.accelerators if card.vendor is Vendor.AMD and _has_render_node(card)]
    if not is_rootless(host, kind) or len(cards) >= len(every):
        return
    all_of_them = ",".join(str(card.index) for card in every)
    raise EnvironmentMissing(
        f"a rootless {kind} cannot hold back {len(every) - len(cards)} of {len(every)} cards",
        why="Without root there are no device rules: the driver lists every card, and ROCm gives up at the first one "
        "whose node is missing (hsa_init, 1008).",
        fix=(
            "use an engine that runs as root:\n" + command_line("up", service, change={"runtime": "docker"}),
            "or take all cards:\n" + command_line("up", service, change={"device": all_of_them}),
        ),
        evidence=_HSA,
        id="PL081",
    )


def _has_render_node(card: Accelerator) -> bool:
    return any("renderD" in node.path for node in card.nodes)


def _desktop(cards: tuple[Accelerator, ...], service: Service) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"Docker Desktop has no way to hand {cards[0].name} into a container",
        why="It runs containers in a virtual machine of its own, which has none of this machine's cards.",
        fix=(
            "use the engine of the machine itself:\ndocker context use default",
            "or podman:\n" + command_line("up", service, change={"runtime": "podman"}),
        ),
        id="PL078",
    )
