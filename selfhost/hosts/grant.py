"""How each layer around us grants a card, and how a node's group is joined there.

Groups by number: a name is resolved inside the container, where it may be another group or none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from selfhost.shapes.host import Accelerator, DeviceNode, Host, Vendor

AROUND = ", on the machine around it"
"""Said after an action where nothing else names that machine."""
# Places that are rented or lent with their devices.
HOSTED = ("vast", "runpod", "colab", "kaggle", "modal", "codespaces", "sagemaker", "hf-spaces")


@dataclass(frozen=True, slots=True)
class Case:
    """What is known when a card cannot be used."""

    host: Host
    card: Accelerator
    node: DeviceNode | None
    """The first node that did not open."""
    layer: str


PLACE = {
    "pod": "pod",
    "docker": "container",
    "podman": "container",
    "slurm": "job",
    "enroot": "job",
    "nspawn": "container",
    "lxc": "container",
    "container": "container",
    "wsl2": "WSL2 distribution",
    **dict.fromkeys(HOSTED, "place"),
}


def _paths(case: Case) -> Sequence[str]:
    """Nodes to hand in, by their names here. A star stands for a number that only the host knows."""
    return tuple(node.path for node in case.card.nodes)


def _docker(case: Case) -> tuple[str, ...]:
    if case.card.vendor is Vendor.NVIDIA:
        return (f"start the container again with the card{AROUND}:\ndocker run --gpus all …",)
    nodes = "--device /dev/kfd --device /dev/dri" if case.card.vendor is Vendor.AMD else "--device /dev/dri"
    group = "$(stat -c %g /dev/dri/renderD128)"
    action = f"start the container again with the card's nodes and their group's number{AROUND}"
    return (f'{action}:\ndocker run {nodes} --group-add "{group}" …',)


def _podman(case: Case) -> tuple[str, ...]:
    if case.card.vendor is Vendor.NVIDIA:
        specify = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
        run = "podman run --device nvidia.com/gpu=all --security-opt=label=disable …"
        return (f"start the container again with the card (CDI){AROUND}:\n{specify}\n{run}",)
    nodes = "--device /dev/kfd --device /dev/dri" if case.card.vendor is Vendor.AMD else "--device /dev/dri"
    return (f"start the container again with the card's nodes:\npodman run {nodes} --group-add keep-groups …",)


def _pod(case: Case) -> tuple[str, ...]:
    resource = {Vendor.NVIDIA: "nvidia.com/gpu", Vendor.AMD: "amd.com/gpu"}.get(case.card.vendor, "gpu.intel.com/xe")
    return (f"let the scheduler grant it, in the manifest:\nresources: {{limits: {{{resource}: 1}}}}",)


def _lxc(case: Case) -> tuple[str, ...]:
    paths = _paths(case) or ("/dev/dri/renderD128",)
    entries = "\n".join(f"dev{number}: {path},mode=0666" for number, path in enumerate(paths))
    return (
        f"hand the nodes in, then restart the container{AROUND}. Proxmox, in /etc/pve/lxc/ID.conf:\n{entries}",
        f"LXD or Incus:\nlxc config device add NAME gpu0 gpu pci={case.card.pci}",
    )


def _nspawn(case: Case) -> tuple[str, ...]:
    binds = " ".join(f"--bind={path}" for path in _paths(case))
    return (f"start the container again with the nodes, allowed to its unit (DeviceAllow=):\nsystemd-nspawn {binds} …",)


def _slurm(_: Case) -> tuple[str, ...]:
    return ("ask for a card when the job is submitted:\nsrun --gres=gpu:1 …",)


def _wsl(_: Case) -> tuple[str, ...]:
    return ("update the driver in Windows (none is installed inside WSL2), then in PowerShell:\nwsl --shutdown",)


def _elsewhere(_: Case) -> tuple[str, ...]:
    return ("grant it where this container is started: its device nodes, and with NVIDIA its libraries",)


def _hosted(_: Case) -> tuple[str, ...]:
    return ("rent or start this place with a card; it cannot be granted from inside",)


GRANTS: dict[str, Callable[[Case], tuple[str, ...]]] = {
    "pod": _pod,
    "docker": _docker,
    "podman": _podman,
    "slurm": _slurm,
    "enroot": _slurm,
    "nspawn": _nspawn,
    "lxc": _lxc,
    "container": _elsewhere,
    "wsl2": _wsl,
    **dict.fromkeys(HOSTED, _hosted),
}


def join_group(node: DeviceNode) -> str:
    return f'sudo usermod -aG "$(getent group {node.gid} | cut -d: -f1)" "$USER"'


def _docker_group(node: DeviceNode) -> tuple[str, ...]:
    return (f"start the container again with the node's group, by number:\ndocker run --group-add {node.gid} …",)


def _podman_group(_: DeviceNode) -> tuple[str, ...]:
    return ("start the container again with your own groups kept:\npodman run --group-add keep-groups …",)


def _pod_group(node: DeviceNode) -> tuple[str, ...]:
    return (f"add the group's number to the pod:\nsecurityContext: {{supplementalGroups: [{node.gid}]}}",)


def _lxc_group(node: DeviceNode) -> tuple[str, ...]:
    where = "hand the node in with the number of this container's render group, on the host, then restart the container"
    return (f"{where} (Proxmox: /etc/pve/lxc/ID.conf):\ndev0: {node.path},gid=$(getent group render | cut -d: -f3)",)


def by_number_elsewhere(node: DeviceNode) -> tuple[str, ...]:
    return (f"give this process the group with number {node.gid}:\n{join_group(node)}",)


BY_NUMBER: dict[str, Callable[[DeviceNode], tuple[str, ...]]] = {
    "docker": _docker_group,
    "podman": _podman_group,
    "pod": _pod_group,
    "lxc": _lxc_group,
}
