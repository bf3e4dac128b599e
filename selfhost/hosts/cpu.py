"""The processor, and how much of it this process may use."""

import re

from selfhost.core.system import System
from selfhost.hosts.cgroup import Level, levels
from selfhost.hosts.glance import glance, names, number, pairs
from selfhost.shapes.host import Cpu, Fact, Known, Unknown

# Instruction sets that vLLM's and PyTorch's CPU kernels choose between, by their names in /proc/cpuinfo.
_X86 = (
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512dq",
    "avx512_vnni",
    "avx_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
)
_ARM = ("asimd", "asimddp", "asimdhp", "i8mm", "bf16", "sve", "sve2", "svebf16", "sme")
_OTHER = ("vx", "vxe", "altivec")


def read(system: System) -> Cpu:
    cpuinfo = glance(system, "/proc/cpuinfo")
    online = _online(system, cpuinfo)
    flags = _flags(cpuinfo)
    return Cpu(
        model=_model(system, cpuinfo),
        architecture=architecture(system),
        cores=_cores(system, online),
        cores_online=len(online),
        features=tuple(name for name in (*_X86, *_ARM, *_OTHER) if name in flags),
        numa_nodes=max(1, _numa_nodes(system)),
    )


_NODES = "/sys/devices/system/node"
_MOST_CORES = 2**16  # NR_CPUS of the kernel is 8192 at most; a larger number is damage


def _numa_nodes(system: System) -> int:
    """Nodes with cores. Grace machines have more: the memory of each GPU is a node of its own without any."""
    nodes = [name for name in names(system, _NODES) if re.fullmatch(r"node\d+", name)]
    bare = [name for name in nodes if not glance(system, f"{_NODES}/{name}/cpulist")]
    return len(nodes) if len(bare) == len(nodes) else len(nodes) - len(bare)


def cpu_list(text: str) -> frozenset[int]:
    """`0-3,8` as a set (cpuset(7), list format); empty for anything else."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal() and int(last or first) < _MOST_CORES:
            numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


_CPUSETS = {1: ("cpuset.effective_cpus", "cpuset.cpus"), 2: ("cpuset.cpus.effective", "cpuset.cpus")}


def _flags(cpuinfo: str) -> frozenset[str]:
    """Flags that every core has: an engine's threads run on any of them."""
    lines = {
        line.partition(":")[2] for line in cpuinfo.splitlines() if re.match(r"(flags|Features|features)\s*:", line)
    }
    sets = [frozenset(line.split()) for line in lines]
    return frozenset.intersection(*sets) if sets else frozenset()


def _model(system: System, cpuinfo: str) -> str:
    values = pairs(cpuinfo, separator=":")
    named = values.get("model name") or values.get("cpu model") or values.get("cpu")
    if named:
        return " ".join(named.split())
    board = glance(system, "/proc/device-tree/model") or glance(system, "/sys/firmware/devicetree/base/model")
    if board:
        return board
    if "CPU implementer" in values:
        return f"Arm implementer {values['CPU implementer']} part {values.get('CPU part', 'unknown')}"
    return "unknown processor"


def architecture(system: System) -> str:
    """As `uname -m` says it. The file exists since Linux 6.1; before, the form of /proc/cpuinfo gives it away."""
    named = glance(system, "/proc/sys/kernel/arch")
    if named:
        return named
    cpuinfo = glance(system, "/proc/cpuinfo")
    flags = _flags(cpuinfo)
    if "lm" in flags or "avx" in flags or "GenuineIntel" in cpuinfo or "AuthenticAMD" in cpuinfo:
        return "x86_64"
    if "asimd" in flags or "CPU implementer" in cpuinfo:
        return "aarch64"
    return "unknown"


def _online(system: System, cpuinfo: str) -> frozenset[int]:
    listed = cpu_list(glance(system, "/sys/devices/system/cpu/online"))
    return listed or frozenset(int(found) for found in re.findall(r"(?m)^processor\s*:\s*(\d+)", cpuinfo))


def _cores(system: System, online: frozenset[int]) -> Fact[float]:
    """The smallest of: cores online, affinity, cpusets, and the quota of every cgroup level."""
    bounds: list[tuple[float, str]] = []
    if online:
        bounds.append((float(len(online)), "cores online"))
    allowed = _allowed(system)
    if allowed:
        # The mask in /proc/self/status may name cores that the machine does not have.
        bounds.append((float(len(allowed & online or allowed)), "affinity (/proc/self/status, Cpus_allowed_list)"))
    for level in levels(system, "cpuset"):
        for name in _CPUSETS[level.version]:
            cores = cpu_list(glance(system, f"{level.path}/{name}"))
            if cores:
                bounds.append((float(len(cores & online or cores)), f"{level.path}/{name}"))
    bounds += [bound for level in levels(system, "cpu") for bound in _quota(system, level)]
    if not bounds:
        return Unknown("neither /proc/cpuinfo nor /proc/self/status could be read")
    cores_usable, how = min(bounds, key=lambda bound: bound[0])
    return Known(cores_usable, how)


def _allowed(system: System) -> frozenset[int]:
    return cpu_list(pairs(glance(system, "/proc/self/status"), separator=":").get("Cpus_allowed_list", ""))


def _quota(system: System, level: Level) -> list[tuple[float, str]]:
    if level.version == 2:
        path = f"{level.path}/cpu.max"
        quota_text, _, period_text = glance(system, path).partition(" ")
    else:
        path = f"{level.path}/cpu.cfs_quota_us"
        quota_text, period_text = glance(system, path), glance(system, f"{level.path}/cpu.cfs_period_us")
    quota, period = number(quota_text), number(period_text)
    if quota is None or period is None or quota <= 0 or period <= 0:
        return []  # `max` and -1 mean no quota; a root cgroup has no such file
    return [(quota / period, f"{path} ({quota} of {period})")]
