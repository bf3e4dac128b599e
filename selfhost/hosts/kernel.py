"""What the kernel was told and guards: its command line, IOMMU groups, SELinux, AppArmor, links of device numbers."""

import posixpath
import re
from collections.abc import Iterable

from selfhost.core.system import System
from selfhost.hosts.glance import exists, glance, names
from selfhost.hosts.pci import BUS

_GROUPS = "/sys/kernel/iommu_groups"


# Beginnings of what the kernel was told about cards, translation, memory and guards. The rest may hold secrets.
_ARGUMENTS = (
    "iommu",
    "intel_iommu",
    "amd_iommu",
    "pci",
    "amdgpu",
    "radeon",
    "ttm",
    "nvidia",
    "nouveau",
    "rd.driver.blacklist",
    "modprobe.blacklist",
    "i915",
    "xe.",
    "vfio",
    "cgroup",
    "systemd.unified_cgroup",
    "selinux",
    "apparmor",
    "lsm=",
    "hugepages",
    "default_hugepages",
    "transparent_hugepage",
    "numa_balancing",
    "nomodeset",
)


def arguments(system: System) -> tuple[str, ...]:
    return tuple(word for word in glance(system, "/proc/cmdline").split() if word.startswith(_ARGUMENTS))


def iommu(system: System, addresses: Iterable[str]) -> str:
    """The kind of translation in the groups of these PCI functions; `mixed` when they differ."""
    kinds = {kind for address in addresses if address and (kind := _kind(system, address))}
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else ""


def _kind(system: System, address: str) -> str:
    try:
        group = posixpath.basename(system.readlink(f"{BUS}/{address}/iommu_group"))
    except OSError:
        group = next((one for one in names(system, _GROUPS) if address in _members(system, one)), "")
    return glance(system, f"{_GROUPS}/{group}/type") if group else ""


def _members(system: System, group: str) -> tuple[str, ...]:
    return names(system, f"{_GROUPS}/{group}/devices")


def selinux(system: System) -> str:
    return {"1": "enforcing", "0": "permissive"}.get(glance(system, "/sys/fs/selinux/enforce"), "")


def apparmor(system: System) -> bool:
    return glance(system, "/sys/module/apparmor/parameters/enabled").startswith("Y")


def dev_char_missing(system: System) -> tuple[str, ...]:
    """Nodes of NVIDIA without their link: systemd grants a device by that link, so without it takes it away again."""
    links = names(system, "/dev/char")
    if not links:
        return ()  # a container has no such folder, and needs none
    nodes = [f"/dev/{name}" for name in names(system, "/dev") if re.fullmatch(r"nvidia(\d+|ctl|-uvm|-uvm-tools)", name)]
    return tuple(node for node in nodes if _number(system, node) not in (*links, ""))


def _number(system: System, node: str) -> str:
    try:
        seen = system.stat(node)
    except OSError:
        return ""
    return f"{seen.major}:{seen.minor}" if seen.kind == "c" else ""


def user_namespace(system: System) -> str:
    """`initial`, or the mapping of ids, one range after another."""
    lines = [" ".join(line.split()) for line in glance(system, "/proc/self/uid_map").splitlines()]
    if lines == ["0 0 4294967295"]:
        return "initial"
    return ", ".join(lines) if exists(system, "/proc/self/uid_map") else ""
