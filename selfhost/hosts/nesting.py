"""The layers around this process, innermost first, each with what proves it.

Only what is there proves something; what is missing proves nothing. A probe looks for the mark of one layer and knows
no other, so a pod in kind in Docker in a virtual machine gives four layers.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from selfhost.core.system import System
from selfhost.hosts.glance import exists, glance, names, pairs
from selfhost.hosts.virtual import virtual_machine, wsl
from selfhost.shapes.host import Nesting


@dataclass(frozen=True, slots=True)
class Marks:
    """What several probes look at, read once."""

    system: System
    mounts: tuple[tuple[str, str, str, str, str], ...]
    """Root, mount point, file system type, source and options of each line of /proc/self/mountinfo."""
    cgroup: str
    container: str
    """The `container` variable of process 1 or our own, and what systemd wrote about it."""

    @classmethod
    def of(cls, system: System) -> "Marks":
        environ = pairs(glance(system, "/proc/1/environ").replace("\0", "\n"), separator="=")
        return cls(
            system=system,
            mounts=tuple(_mounts(glance(system, "/proc/self/mountinfo"))),
            cgroup=glance(system, "/proc/self/cgroup") + "\n" + glance(system, "/proc/1/cgroup"),
            container=glance(system, "/run/systemd/container")
            or environ.get("container", "")
            or glance(system, "/run/host/container-manager")
            or system.env.get("container", ""),
        )

    @property
    def root(self) -> tuple[str, str]:
        """Type of the root file system, and where it comes from, options included."""
        found = [(kind, f"{source} {options}") for _, point, kind, source, options in self.mounts if point == "/"]
        return found[-1] if found else ("", "")

    def identity_mount(self, pattern: str) -> str:
        """Source of /etc/hostname, /etc/hosts or /etc/resolv.conf that matches.

        Only these three: a host that runs Docker has lines with container ids too, for other containers.
        """
        points = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
        found = (root for root, point, *_ in self.mounts if point in points and re.search(pattern, root))
        return next(found, "")


def _mounts(mountinfo: str) -> Iterator[tuple[str, str, str, str, str]]:
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, tail = before.split(), after.split()
        if len(fields) >= 5 and len(tail) >= 2:
            yield fields[3], fields[4], tail[0], tail[1], tail[-1]


def read(system: System) -> tuple[Nesting, ...]:
    marks = Marks.of(system)
    found = ((label, probe(marks)) for label, probe in _PROBES)
    return tuple(Nesting(label=label, proof=proof) for label, proof in found if proof)


def _variable(*variables: str) -> Callable[[Marks], str]:
    """A probe for environment variables that a host of machines or jobs sets; all of them must be there."""

    def probe(marks: Marks) -> str:
        values = [f"{name}={marks.system.env[name]}" for name in variables if marks.system.env.get(name)]
        return f"environment {' '.join(values)}" if len(values) == len(variables) else ""

    return probe


def _file(*paths: str) -> Callable[[Marks], str]:
    def probe(marks: Marks) -> str:
        return next((f"{path} exists" for path in paths if exists(marks.system, path)), "")

    return probe


def _slurm(marks: Marks) -> str:
    job = re.search(r"/(?:slurmstepd\.scope|slurm/uid_\d+)/job_\d+", marks.cgroup)
    return _variable("SLURM_JOB_ID")(marks) or (f"control group {job[0]}" if job else "")


def _pod(marks: Marks) -> str:
    hosts = marks.identity_mount(r"/pods/[0-9a-f-]{36}/etc-hosts$")
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    if hosts:
        return f"/etc/hosts comes from {hosts}"
    if names(marks.system, account):
        return f"{account} exists"
    if "kubepods" in marks.cgroup:
        return "control group kubepods"
    # A child container inherits the variable, and a kind node has its own: only with a sign of a container beside it.
    variable = _variable("KUBERNETES_SERVICE_HOST")(marks)
    return variable if variable and not exists(marks.system, "/kind") and not _docker(marks) else ""


def _containerd(marks: Marks) -> str:
    scope = re.search(r"cri-containerd-[0-9a-f]{12,64}", marks.cgroup)
    sandbox = marks.identity_mount(r"/io\.containerd\.grpc\.v1\.cri/sandboxes/")
    if scope:
        return f"control group {scope[0][:30]}"
    return f"/etc/hostname comes from {sandbox}" if sandbox else ""


def _crio(marks: Marks) -> str:
    scope = re.search(r"crio-[0-9a-f]{12,64}", marks.cgroup)
    if scope:
        return f"control group {scope[0][:30]}"
    # Podman keeps its containers in the same store, but knows no kubelet.
    store = marks.identity_mount(r"/overlay-containers/[0-9a-f]{64}/userdata/")
    return f"/etc/hostname comes from {store.rpartition('/')[0][:60]}…" if store and _pod(marks) else ""


def _kind(marks: Marks) -> str:
    product = glance(marks.system, "/sys/class/dmi/id/product_name")
    if product == "kind":
        return "/sys/class/dmi/id/product_name is kind"  # its entry point mounts it into the node and into every pod
    return next((f"{path} exists" for path in ("/kind/version", "/kind") if exists(marks.system, path)), "")


def _k3d(marks: Marks) -> str:
    return _file("/bin/k3s")(marks) if re.match(r"k3d-", glance(marks.system, "/etc/hostname")) else ""


def _minikube(marks: Marks) -> str:
    return _file("/var/lib/minikube")(marks)


def _docker(marks: Marks) -> str:
    own = marks.identity_mount(r"(^|/docker/containers)/[0-9a-f]{64}/(hostname|hosts|resolv\.conf)$")
    if own and not marks.identity_mount(r"/pods/[0-9a-f-]{36}/etc-hosts$"):
        return f"/etc/hostname and its like come from {own.rpartition('/')[0][:40]}…"
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
    if exists(marks.system, "/.dockerenv") and not source.startswith("/dev/"):
        return "/.dockerenv exists"
    return ""


def _podman(marks: Marks) -> str:
    if exists(marks.system, "/run/.containerenv"):
        written = pairs(glance(marks.system, "/run/.containerenv"), separator="=")
        engine = written.get("engine", "").strip('"')
        rootless = written.get("rootless") == "1" or _mapped(marks.system)
        return f"/run/.containerenv exists{f' ({engine})' if engine else ''}{', rootless' if rootless else ''}"
    scope = re.search(r"libpod-[0-9a-f]{64}", marks.cgroup)
    if scope:
        return f"control group {scope[0][:30]}…"
    if marks.container == "podman":
        return "container=podman in the environment"
    own = marks.identity_mount(r"/overlay-containers/[0-9a-f]{64}/userdata/")
    return f"/etc/hostname comes from {own.rpartition('/')[0][:60]}…" if own and not _crio(marks) else ""


def _nspawn(marks: Marks) -> str:
    return "container=systemd-nspawn, as systemd wrote it" if marks.container == "systemd-nspawn" else ""


def _lxc(marks: Marks) -> str:
    proof = ""
    group = re.search(r"/lxc(?:\.payload\.|/)[^/\n]+", marks.cgroup)
    if marks.container in ("lxc", "lxc-libvirt"):
        proof = f"container={marks.container}, as process 1 or systemd says"
    elif socket := next((path for path in ("/dev/lxd/sock", "/dev/incus/sock") if exists(marks.system, path)), ""):
        proof = f"{socket} exists"
    elif group:
        proof = f"control group {group[0]}"
    elif any(kind == "fuse.lxcfs" and point.startswith("/proc/") for _, point, kind, *_ in marks.mounts):
        proof = "lxcfs is mounted on /proc"
    if not proof:
        return ""
    proxmox = glance(marks.system, "/proc/sys/kernel/osrelease").endswith("-pve")
    return proof + (", unprivileged" if _mapped(marks.system) else "") + (", on Proxmox" if proxmox else "")


def _mapped(system: System) -> bool:
    """Whether user 0 here is another user outside (user_namespaces(7))."""
    first = glance(system, "/proc/self/uid_map").split()
    return len(first) >= 3 and first[:3] != ["0", "0", "4294967295"]


def _openvz(marks: Marks) -> str:
    return "/proc/vz exists" if exists(marks.system, "/proc/vz") and not exists(marks.system, "/proc/bc") else ""


def _gvisor(marks: Marks) -> str:
    # The kernel version that gVisor's sentry reports is fixed (google/gvisor pkg/sentry/kernel/kernel.go).
    fixed = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"
    return f"/proc/version is {fixed}" if glance(marks.system, "/proc/version").startswith(fixed) else ""


def _other_container(marks: Marks) -> str:
    """A cgroup namespace and no name for it (systemd's last resort, src/basic/virt.c)."""
    if any(probe(marks) for label, probe in _PROBES if label in _CONTAINERS):
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


def _wsl(marks: Marks) -> str:
    return wsl(marks.system)


def _vm(marks: Marks) -> str:
    return "" if wsl(marks.system) else virtual_machine(marks.system)


_CONTAINERS = ("pod", "containerd", "crio", "kind", "docker", "podman", "apptainer", "nspawn", "lxc", "openvz", "slurm")

# Innermost first: who gave us this place, the orchestrator, the engine that runs its containers, the node, the system
# container, the machine.
_PROBES: tuple[tuple[str, Callable[[Marks], str]], ...] = (
    ("vast", _variable("VAST_CONTAINERLABEL")),
    ("runpod", _variable("RUNPOD_POD_ID")),
    ("colab", _variable("COLAB_RELEASE_TAG")),
    ("kaggle", _variable("KAGGLE_KERNEL_RUN_TYPE")),
    ("modal", _variable("MODAL_TASK_ID")),
    ("codespaces", _variable("CODESPACES", "CODESPACE_NAME")),
    ("devcontainer", _variable("REMOTE_CONTAINERS")),
    ("toolbox", _file("/run/.toolboxenv")),
    ("distrobox", _variable("DISTROBOX_ENTER_PATH")),
    ("flatpak", _file("/.flatpak-info")),
    ("apptainer", _file("/.singularity.d")),
    ("slurm", _slurm),
    ("pod", _pod),
    ("containerd", _containerd),
    ("crio", _crio),
    ("kind", _kind),
    ("k3d", _k3d),
    ("minikube", _minikube),
    ("docker", _docker),
    ("podman", _podman),
    ("gvisor", _gvisor),
    ("nspawn", _nspawn),
    ("lxc", _lxc),
    ("openvz", _openvz),
    ("container", _other_container),
    ("wsl2", _wsl),
    ("vm", _vm),
)
