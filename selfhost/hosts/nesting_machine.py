"""System containers and sandboxes around this process: LXC, nspawn, OpenVZ, gVisor, Kata, Firecracker; VM and WSL2."""

import re

from selfhost.hosts.glance import exists, glance
from selfhost.hosts.nesting_marks import Marks, is_mapped
from selfhost.hosts.virtual import virtual_machine
from selfhost.hosts.virtual import wsl as wsl_of


def nspawn(marks: Marks) -> str:
    if marks.container == "systemd-nspawn":
        return "container=systemd-nspawn, as systemd wrote it"
    scope = re.search(r"/machine\.slice/(?:machine-[^/\n]+\.scope|systemd-nspawn@[^/\n]+)", marks.cgroup)
    return f"control group {scope[0]}" if scope and "libpod" not in scope[0] and "qemu" not in scope[0] else ""


def lxc(marks: Marks) -> str:
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
    return proof + (", unprivileged" if is_mapped(marks.system) else "") + (", on Proxmox" if proxmox else "")


def openvz(marks: Marks) -> str:
    return "/proc/vz exists" if exists(marks.system, "/proc/vz") and not exists(marks.system, "/proc/bc") else ""


def gvisor(marks: Marks) -> str:
    # The kernel version that gVisor's sentry reports is fixed (google/gvisor pkg/sentry/kernel/kernel.go).
    fixed = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"
    if glance(marks.system, "/proc/version").startswith(fixed):
        return f"/proc/version is {fixed}"
    release = glance(marks.system, "/proc/sys/kernel/osrelease")
    # No distribution's kernel is called 4.4.0 and nothing else.
    return f"the kernel is {release}" if release == "4.4.0" or release.endswith("gvisor") else ""


def kata(marks: Marks) -> str:
    """A virtual machine for each pod; its root is shared in by virtiofs under a name of its own."""
    shared = next((source for _, _, _, source, _ in marks.mounts if source == "kataShared"), "")
    if shared:
        return "kataShared is mounted"
    line = glance(marks.system, "/proc/cmdline")
    return "kata-containers.target on the kernel's command line" if "kata-containers.target" in line else ""


def firecracker(marks: Marks) -> str:
    """Its machines have no PCI bus: devices come over virtio-mmio, named on the kernel's command line."""
    line = glance(marks.system, "/proc/cmdline")
    if "pci=off" in line.split() and "virtio_mmio.device=" in line:
        return "pci=off and virtio_mmio.device on the kernel's command line"
    return ""


def wsl2(marks: Marks) -> str:
    return wsl_of(marks.system)


def vm(marks: Marks) -> str:
    return "" if wsl_of(marks.system) else virtual_machine(marks.system)
