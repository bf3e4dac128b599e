"""What is looked at on every machine, in one script: file after file, each with how reading it ended. Pure."""

import re
from collections.abc import Iterator

from selfhost.core import far_script
from selfhost.core.far_shell import Reply

# Patterns of the shell. A file that is left out here is asked for by itself, which costs a round trip and no more.
_FILES = (
    "/proc/cpuinfo /proc/meminfo /proc/cmdline /proc/version /proc/device-tree/compatible /proc/1/cgroup",
    "/proc/self/cgroup /proc/self/mountinfo /proc/self/uid_map /proc/self/limits /proc/self/status",
    "/proc/self/attr/current /proc/1/environ /proc/sys/kernel/osrelease /proc/sys/kernel/arch",
    "/proc/driver/nvidia/version /proc/driver/nvidia/gpus/*/information /proc/devices /proc/modules",
    "/etc/os-release /usr/lib/os-release /etc/hostname /run/.containerenv /run/systemd/container",
    "/run/host/container-manager /sys/class/dmi/id/product_name /sys/class/dmi/id/sys_vendor",
    "/sys/devices/system/cpu/online /sys/devices/system/node/node*/cpulist",
    "/sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.high /sys/fs/cgroup/memory.current",
    "/sys/fs/cgroup/memory.stat /sys/fs/cgroup/pids.max /sys/fs/cgroup/cpuset.cpus.effective",
    "/sys/bus/pci/devices/*/class /sys/bus/pci/devices/*/vendor /sys/bus/pci/devices/*/device",
    "/sys/class/kfd/kfd/topology/nodes/*/properties /sys/class/kfd/kfd/topology/nodes/*/gpu_id",
)
_FOLDERS = "/sys/bus/pci/devices /sys/class/drm /sys/class/kfd/kfd/topology/nodes /sys/devices/system/node /dev/dri"
_PART = "selfhost-part"

# `read` is the shell's own, so it costs no process; a device's three short files are most of what there is to read.
SCRIPT = f"""for f in {" ".join(_FILES)}; do
case $f in *'*'*) continue;; esac
printf '\\n{_PART} file %s\\n' "$f"
case $f in
/sys/bus/pci/*) IFS= read -r line <"$f" && printf '%s\\n' "$line";;
*) cat "$f" </dev/null 2>&1;; esac
printf '\\n{_PART} end %d\\n' $?; done
for d in {_FOLDERS}; do [ -d "$d/" ] && [ -r "$d/" ] || continue
printf '\\n{_PART} folder %s\\n' "$d"
for n in "$d"/* "$d"/.[!.]*; do if [ -e "$n" ] || [ -L "$n" ]; then printf '%s\\n' "${{n##*/}}"; fi; done
printf '\\n{_PART} end 0\\n'; done"""


def parse(reply: Reply) -> Iterator[tuple[str, Reply]]:
    """Each question as it would be put by itself, with its answer."""
    pattern = rf"\n{_PART} (file|folder) (\S+)\n(.*?)\n{_PART} end (\d+)(?=\n)"
    for kind, path, body, rc in re.findall(pattern, reply.stdout + "\n", re.DOTALL):
        asked = far_script.read(path) if kind == "file" else far_script.listing(path)
        failed = int(rc) != 0
        yield asked, Reply(int(rc), "" if failed else body, body if failed else "")
