"""Whether the kernel runs on hardware, in a virtual machine, or in WSL2. DMI decides before the hypervisor flag."""

import re

from selfhost.core.system import System
from selfhost.hosts.glance import exists, glance

_DMI = "/sys/class/dmi/id"
_FIELDS = ("product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version")

# Beginnings of DMI texts and what they mean, the names of systemd's table (systemd src/basic/virt.c).
_VENDORS = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "virtualbox"),
    ("VirtualBox", "virtualbox"),
    ("Oracle Corporation", "virtualbox"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "hyper-v"),
    ("Apple Virtualization", "apple"),
    ("Google Compute Engine", "google"),
    ("Standard PC (", "qemu"),
    ("Virtual Machine", "hyper-v"),
    ("DigitalOcean", "kvm"),
    ("KVM/QEMU", "qemu"),
    ("Firecracker", "firecracker"),
    ("Cloud Hypervisor", "cloud-hypervisor"),
    ("Tencent Cloud", "kvm"),
    ("OVMF", "qemu"),
    ("SeaBIOS", "qemu"),
)


def wsl(system: System) -> str:
    """What proves WSL2, or nothing. A kernel of one's own loses the name, but not the other marks."""
    release = glance(system, "/proc/sys/kernel/osrelease")
    if re.search(r"microsoft|WSL", release, re.IGNORECASE):
        return f"the kernel is {release}"
    marks = ("/proc/sys/fs/binfmt_misc/WSLInterop", "/run/WSL", "/usr/lib/wsl/lib/libdxcore.so")
    found = next((path for path in marks if exists(system, path)), "")
    return f"{found} exists" if found else ""


def virtual_machine(system: System) -> str:
    """What proves a virtual machine, or nothing. Bare-metal instances of EC2 carry Amazon's name too."""
    if "control_d" in glance(system, "/proc/xen/capabilities"):
        return ""  # the privileged domain of Xen: the machine itself
    product = glance(system, f"{_DMI}/product_name")
    if re.search(r"\.metal(-|$)", product):
        return ""
    for field in _FIELDS:
        text = glance(system, f"{_DMI}/{field}")
        for beginning, name in _VENDORS:
            if text.startswith(beginning):
                return f"{_DMI}/{field} is {text} ({name})"
    if re.search(r"(?m)^flags\s*:.*\bhypervisor\b", glance(system, "/proc/cpuinfo")):
        return "hypervisor among the flags of /proc/cpuinfo"
    tree = glance(system, "/proc/device-tree/hypervisor/compatible")
    return f"/proc/device-tree/hypervisor/compatible is {tree}" if tree else ""
