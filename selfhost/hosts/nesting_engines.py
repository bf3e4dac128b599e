"""Container engines and runtimes around this process: Docker, Podman, containerd, CRI-O, and sockets of outer ones."""

import re

from selfhost.hosts.glance import exists, glance, pairs
from selfhost.hosts.nesting_cluster import pod
from selfhost.hosts.nesting_marks import Marks, is_mapped


def containerd(marks: Marks) -> str:
    scope = re.search(r"cri-containerd-[0-9a-f]{12,64}", marks.cgroup)
    sandbox = marks.identity_mount(r"/io\.containerd\.grpc\.v1\.cri/sandboxes/")
    if scope:
        return f"control group {scope[0][:30]}"
    return f"/etc/hostname comes from {sandbox}" if sandbox else ""


def crio(marks: Marks) -> str:
    scope = re.search(r"crio-[0-9a-f]{12,64}", marks.cgroup)
    if scope:
        return f"control group {scope[0][:30]}"
    # Podman keeps its containers in the same store, but knows no kubelet.
    store = marks.identity_mount(r"/overlay-containers/[0-9a-f]{64}/userdata/")
    return f"/etc/hostname comes from {store.rpartition('/')[0][:60]}…" if store and pod(marks) else ""


def docker(marks: Marks) -> str:
    mounted = _mounted_by_docker(marks)
    if mounted:
        return mounted
    scope = re.search(r"/(?:docker/|system\.slice/docker-)[0-9a-f]{64}", marks.cgroup)
    if scope:
        return f"control group {scope[0][:30]}…"
    kind, source = marks.root
    if kind == "overlay" and "/docker/overlay2/" in source:
        return "the root file system is an overlay of /var/lib/docker/overlay2"
    if marks.container == "docker":
        return "container=docker in the environment of process 1"
    # Docker leaves this file in every container, and images of virtual machines are often made from one. A root on a
    # block device of its own, with nothing of Docker mounted, is such a copy.
    if exists(marks.system, "/.dockerenv") and not _is_copy(marks):
        return "/.dockerenv exists"
    return ""


def _mounted_by_docker(marks: Marks) -> str:
    own = marks.identity_mount(r"(^|/docker/containers)/[0-9a-f]{64}/(hostname|hosts|resolv\.conf)$")
    if own and not marks.identity_mount(r"/pods/[0-9a-f-]{36}/etc-hosts$"):
        return f"/etc/hostname and its like come from {own.rpartition('/')[0][:40]}…"
    # A node of kind keeps /var in a volume, and its pods have their /etc/hosts from there.
    volume = marks.identity_mount(r"/docker/volumes/[0-9a-f]{64}/_data/lib/kubelet/")
    return f"/etc/hosts comes from {volume[:50]}…" if volume else ""


def _is_copy(marks: Marks) -> bool:
    """The file on a root that Docker does not make: a disk, or a volume that is no container's."""
    kind, source = marks.root
    if source.startswith("/dev/"):
        return True
    return kind in ("zfs", "btrfs", "xfs", "ext4", "virtiofs", "9p", "nfs4") and not re.search(r"[0-9a-f]{64}", source)


def sibling_docker(marks: Marks) -> str:
    """The engine's socket of the machine around this container: what it starts runs there, beside us.

    On a machine the socket is no mount. Only with a container around us is it somebody else's.
    """
    sockets = ("/var/run/docker.sock", "/run/docker.sock")
    point = next((point for _, point, *_ in marks.mounts if point in sockets), "")
    return f"{point} is a mount: the engine of the machine around this container" if point else ""


def docker_desktop(marks: Marks) -> str:
    """The virtual machine in which Docker Desktop keeps its containers."""
    release = glance(marks.system, "/proc/sys/kernel/osrelease")
    if "linuxkit" in release:
        return f"the kernel is {release}"
    shared = next((root for root, *_ in marks.mounts if root.startswith("/run/desktop/mnt/host")), "")
    if not shared:
        shared = next((point for _, point, *_ in marks.mounts if point.startswith("/run/desktop/mnt/host")), "")
    return f"{shared} is mounted" if shared and docker(marks) else ""


def podman(marks: Marks) -> str:
    if exists(marks.system, "/run/.containerenv"):
        written = pairs(glance(marks.system, "/run/.containerenv"), separator="=")
        engine = written.get("engine", "").strip('"')
        rootless = written.get("rootless") == "1" or is_mapped(marks.system)
        return f"/run/.containerenv exists{f' ({engine})' if engine else ''}{', rootless' if rootless else ''}"
    scope = re.search(r"libpod-[0-9a-f]{64}", marks.cgroup)
    if scope:
        return f"control group {scope[0][:30]}…"
    if marks.container == "podman":
        return "container=podman in the environment"
    own = marks.identity_mount(r"/overlay-containers/[0-9a-f]{64}/userdata/")
    return f"/etc/hostname comes from {own.rpartition('/')[0][:60]}…" if own and not crio(marks) else ""
