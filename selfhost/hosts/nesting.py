"""The layers around this process, innermost first, each with what proves it.

Only what is there proves something; what is missing proves nothing. A probe looks for the mark of one layer and knows
no other, so a pod in kind in Docker in a virtual machine gives four layers.
"""

import re

from selfhost.core.system import System
from selfhost.hosts import nesting_cluster, nesting_engines, nesting_machine, nesting_places
from selfhost.hosts.glance import exists
from selfhost.hosts.nesting_marks import Marks, Probe
from selfhost.shapes.host import Nesting


def read(system: System) -> tuple[Nesting, ...]:
    marks = Marks.of(system)
    layers = [Nesting(label=label, proof=proof) for label, probe in _PROBES if (proof := probe(marks))]
    outer = nesting_engines.sibling_docker(marks) if any(layer.label in _CONTAINERS for layer in layers) else ""
    sibling = [Nesting(label="sibling-docker", proof=outer)] if outer else []
    return (*sibling, *layers)


def _other_container(marks: Marks) -> str:
    """A cgroup namespace and no name for it (systemd's last resort, src/basic/virt.c)."""
    if any(probe(marks) for label, probe in _PROBES if label in _CONTAINERS and label != "container"):
        return ""
    if marks.container and marks.container not in ("wsl", "docker", "podman"):
        return f"container={marks.container} in the environment"
    base = "/sys/fs/cgroup"
    inside = exists(marks.system, f"{base}/cgroup.events") and exists(marks.system, f"{base}/cgroup.type")
    kind, source = marks.root
    if inside:
        return f"{base} is not the root of the control groups"
    images = r"/snapshotter\.v1\.|io\.containerd\.snapshotter|/containers/storage/"
    return "the root file system is a container image" if kind == "overlay" and re.search(images, source) else ""


_CONTAINERS = (
    "pod",
    "containerd",
    "crio",
    "kind",
    "docker",
    "podman",
    "apptainer",
    "enroot",
    "charliecloud",
    "nspawn",
    "lxc",
    "openvz",
    "slurm",
    "container",
)

# Innermost first: who gave us this place, the orchestrator, the engine that runs its containers, the node, the system
# container, the machine.
_PROBES: tuple[tuple[str, Probe], ...] = (
    ("vast", nesting_places.vast),
    ("runpod", nesting_places.runpod),
    ("colab", nesting_places.colab),
    ("kaggle", nesting_places.kaggle),
    ("modal", nesting_places.modal),
    ("sagemaker", nesting_places.sagemaker),
    ("hf-spaces", nesting_places.hf_spaces),
    ("codespaces", nesting_places.codespaces),
    ("devcontainer", nesting_places.devcontainer),
    ("snap", nesting_places.snap),
    ("toolbox", nesting_places.toolbox),
    ("distrobox", nesting_places.distrobox),
    ("flatpak", nesting_places.flatpak),
    ("apptainer", nesting_places.apptainer),
    ("charliecloud", nesting_places.charliecloud),
    ("enroot", nesting_places.enroot),
    ("slurm", nesting_places.slurm),
    ("pod", nesting_cluster.pod),
    ("containerd", nesting_engines.containerd),
    ("crio", nesting_engines.crio),
    ("kind", nesting_cluster.kind),
    ("k3d", nesting_cluster.k3d),
    ("minikube", nesting_cluster.minikube),
    ("docker", nesting_engines.docker),
    ("podman", nesting_engines.podman),
    ("gvisor", nesting_machine.gvisor),
    ("kata", nesting_machine.kata),
    ("nspawn", nesting_machine.nspawn),
    ("lxc", nesting_machine.lxc),
    ("openvz", nesting_machine.openvz),
    ("container", _other_container),
    ("docker-desktop", nesting_engines.docker_desktop),
    ("firecracker", nesting_machine.firecracker),
    ("wsl2", nesting_machine.wsl2),
    ("vm", nesting_machine.vm),
)
