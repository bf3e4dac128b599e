"""Device nodes that are missing although everything seems to work: unified memory driver, node containers, /dev/kfd."""

from collections.abc import Iterator, Sequence
from typing import Final

from selfhost.hosts.grant import AROUND
from selfhost.hosts.obstacle import fault
from selfhost.shapes.finding import Place, RunOn, Severity
from selfhost.shapes.host import Host, Known, Support, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility.allocation import nvidia_nodes
from selfhost.visibility.nodes import by_other_means, handed_in, has
from selfhost.visibility.paste_options import options
from selfhost.visibility.rule import Found, host_rule, place, project_rule
from selfhost.visibility.rules.host_layers import around, in_container, layers, machine, of

_UVM: Final = "/dev/nvidia-uvm"
_CTL: Final = "/dev/nvidiactl"
_KFD: Final = "/dev/kfd"
_TOOLS: Final = ("amd-smi", "rocm-smi")
_CLUSTERS: Final = ("kind", "k3d", "minikube")


_LISTED: Final = (
    "nvidia-smi needs only the other two nodes and lists the card; CUDA opens this one first and finds no device."
)


@project_rule(
    "DV083", Severity.ERROR, source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/50", alone=True
)
def unified_memory_node_is_missing(workloads: Sequence[Workload], host: Host | None) -> Iterator[Found]:
    yield from (seen for workload in workloads for seen in _nodes_without_it(workload))
    if host is not None:
        yield from _missing_here(host)


def _nodes_without_it(workload: Workload) -> Iterator[Found]:
    """Cards that are handed in node by node; by any other way the toolkit brings this one along."""
    if by_other_means(workload, Vendor.NVIDIA) or not has(workload, _CTL) or has(workload, _UVM):
        return
    minors = dict(nvidia_nodes(workload))
    if minors:
        yield Found(
            title=f"{workload.label} is handed /dev/nvidia{min(minors)} without {_UVM}",
            place=place(workload, next(iter(minors.values()))),
            evidence=f"devices: {', '.join(path for path, _ in handed_in(workload))}",
            why=_LISTED,
            fix=(f"hand it in too:\n{options(workload, ('--device', _UVM))}",),
        )


def _missing_here(host: Host) -> Iterator[Found]:
    why = f"{_LISTED} The node is made when the module nvidia-uvm is loaded, which nobody did yet."
    for card in of(host, Vendor.NVIDIA):
        opened = {node.path: node.opened for node in card.nodes}
        others = [node for path, node in opened.items() if path != _UVM]
        if opened.get(_UVM) == "ENOENT" and others and all(node == "ok" for node in others):
            yield Found(
                title=f"{_UVM} is missing, so CUDA does not start",
                place=Place(path=_UVM, object=card.name),
                evidence=f"opened: {', '.join(path for path in opened if path != _UVM)}; {_UVM}: ENOENT",
                why=why,
                fix=_uvm(host),
                run_on=machine(host),
            )
            break
    yield from _specifications_without_it(host, why)


def _uvm(host: Host) -> tuple[str, ...]:
    load = "load the module and make its nodes:\nsudo nvidia-modprobe -u -c=0"
    if in_container(host):
        return (load, f"then start the container again with {_UVM} beside the card's nodes")
    return (load,)


def _specifications_without_it(host: Host, why: str) -> Iterator[Found]:
    for spec in around(host).cdi:
        devices = [device for device in spec.devices if spec.kind == "nvidia.com/gpu"]
        bare = [device for device in devices if "/dev/nvidiactl" in device.nodes and _UVM not in device.nodes]
        if bare:
            yield Found(
                title=f"{spec.file} brings in cards without {_UVM}",
                place=Place(path=spec.file, object=bare[0].name),
                evidence=f"{bare[0].name}: {', '.join(bare[0].nodes)}",
                why=why,
                fix=(
                    (
                        f"load the module, then write the file again:\nsudo nvidia-modprobe -u -c=0\n"
                        f"sudo nvidia-ctk cdi generate --output={spec.file}"
                    ),
                ),
            )


@host_rule("DV077", Severity.ERROR, source="https://github.com/kubernetes-sigs/kind/issues/3257")
def node_container_has_no_card(host: Host) -> Iterator[Found]:
    cluster = next((label for label in layers(host) if label in _CLUSTERS), "")
    cards = [card for card in of(host, Vendor.NVIDIA) if not card.integrated]
    if cluster and not host.accelerators and "wsl2" in layers(host):
        yield _node_under_wsl(cluster)
    if not cluster or not cards or any(isinstance(card.openable, Known) and card.openable.value for card in cards):
        return
    if all(card.kernel_driver not in ("", "nvidia") for card in cards):
        return  # given to a virtual machine, or without NVIDIA's driver: another matter
    yield Found(
        title=f"the {cluster} node is a container that was given no card",
        place=Place(object=cards[0].name),
        evidence=f"{cards[0].name} is on the machine's bus; {next((n.path for n in cards[0].nodes), '/dev/nvidia0')} "
        "does not open here",
        why="A node that is a container has the devices that it was started with, so the device plugin finds none and "
        "pods wait with `Insufficient nvidia.com/gpu`.",
        fix=_FIXES[cluster],
        run_on=RunOn.CONTAINER_HOST,
    )


def _node_under_wsl(cluster: str) -> Found:
    """Cards of Windows are on no bus here, so nobody can tell a machine without one: no more than a remark."""
    return Found(
        title=f"the {cluster} node was given no card of Windows, should there be one",
        place=Place(object=f"{cluster} node"),
        evidence="/dev/dxg is not in this node",
        why="WSL2 has cards through /dev/dxg alone. A node that is a container has it only when it was started with "
        "it; otherwise pods wait with `Insufficient nvidia.com/gpu`.",
        fix=_FIXES[cluster],
        run_on=RunOn.CONTAINER_HOST,
        severity=Severity.INFO,
    )


_FIXES: Final = {
    "kind": (
        (
            "make the cluster with nvkind, which hands the cards in:\n"
            "sudo nvidia-ctk runtime configure --runtime=docker --set-as-default\n"
            "sudo nvidia-ctk config --set accept-nvidia-visible-devices-as-volume-mounts=true --in-place\n"
            "sudo systemctl restart docker\nnvkind cluster create"
        ),
    ),
    "k3d": ("make the cluster again with an image of k3s that has NVIDIA's toolkit:\nk3d cluster create --gpus=all",),
    "minikube": (
        (
            "start it again with the cards:\nminikube delete\n"
            "minikube start --driver=docker --container-runtime=docker --gpus=all"
        ),
    ),
}


@host_rule("DV084", Severity.WARNING, source="https://github.com/ROCm/ROCm-docker/issues/116")
def a_tool_lists_what_compute_cannot_open(host: Host) -> Iterator[Found]:
    for card in of(host, Vendor.AMD):
        listed = next((tool for tool in _TOOLS if tool in card.tool_index), "")
        kfd = next((node for node in card.nodes if node.path == _KFD and node.opened != "ok"), None)
        if listed and kfd:
            wrong = fault(host, card)
            yield Found(
                title=f"{listed} lists {card.name}, and that is no proof: {_KFD} does not open",
                place=Place(path=_KFD, object=card.name),
                evidence=f"{_KFD}: {kfd.opened}; {listed} number {card.tool_index[listed]}",
                why="The tool reads files of the kernel that everybody may read. HIP opens /dev/kfd and the render "
                "node, and finds no card.",
                fix=tuple(way.replace(AROUND, "") for way in wrong.fix) if wrong else (),
                run_on=machine(host),
                severity=Severity.ERROR if card.support is Support.SUPPORTED else None,
            )
            return
