"""Which of the layers around a process are containers: what a machine around them has to grant. Pure."""

CONTAINERS = (
    "docker",
    "podman",
    "containerd",
    "crio",
    "kind",
    "k3d",
    "minikube",
    "lxc",
    "nspawn",
    "container",
)
"""Labels of hosts/nesting.py; a pod is told apart, since its scheduler grants."""
