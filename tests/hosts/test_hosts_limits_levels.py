"""Limits of all cgroup levels: swap, processes, cpusets, hybrid machines."""

from selfhost.core.recorded import Recorded
from selfhost.hosts import cgroup, cpu, memory
from selfhost.shapes.host import Known, Unknown

GIB = 2**30
MIB = 2**20
V2 = "35 30 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
HYBRID = (
    "35 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "36 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "37 30 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
)


def machine(files: dict[str, str]) -> Recorded:
    return Recorded({"files": {"/proc/meminfo": "MemTotal: 67108864 kB\nSwapTotal: 8388608 kB\n", **files}})


def test_swap_is_the_machines_without_a_limit_and_the_groups_with_one() -> None:
    assert memory.swap(machine({})) == Known(8 * GIB, "/proc/meminfo SwapTotal")
    files = {"/proc/self/mountinfo": V2, "/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/memory.swap.max": "0\n"}
    assert memory.swap(machine(files)) == Known(0, "/sys/fs/cgroup/a/memory.swap.max")
    files["/sys/fs/cgroup/a/memory.swap.max"] = "max\n"
    assert memory.swap(machine(files)) == Known(8 * GIB, "/proc/meminfo SwapTotal")
    assert isinstance(memory.swap(Recorded({})), Unknown)


def test_version_1_limits_memory_and_swap_as_one_sum() -> None:
    base = "/sys/fs/cgroup/memory"
    files = {f"{base}/memory.memsw.limit_in_bytes": str(3 * GIB), f"{base}/memory.limit_in_bytes": str(2 * GIB)}
    found = memory.swap(machine(files))
    assert found == Known(GIB, f"{base}/memory.memsw.limit_in_bytes less memory.limit_in_bytes")


def test_processes_are_limited_by_the_smallest_level_or_by_the_kernel() -> None:
    files = {
        "/proc/self/mountinfo": V2,
        "/proc/self/cgroup": "0::/a/b\n",
        "/sys/fs/cgroup/a/b/pids.max": "max\n",
        "/sys/fs/cgroup/a/pids.max": "512\n",
        "/proc/sys/kernel/pid_max": "4194304\n",
    }
    assert cgroup.pids_limit(machine(files)) == Known(512, "/sys/fs/cgroup/a/pids.max")
    del files["/sys/fs/cgroup/a/pids.max"]
    assert cgroup.pids_limit(machine(files)) == Known(4_194_304, "/proc/sys/kernel/pid_max, no pids.max below it")
    assert isinstance(cgroup.pids_limit(Recorded({})), Unknown)


def test_on_a_hybrid_machine_each_version_has_its_own_path() -> None:
    files = {
        "/proc/self/mountinfo": HYBRID,
        "/proc/self/cgroup": "4:memory:/user.slice\n0::/user.slice/session-2.scope\n",
        "/sys/fs/cgroup/memory/user.slice/memory.limit_in_bytes": str(4 * GIB),
    }
    paths = [level.path for level in cgroup.levels(machine(files), "memory")]
    assert paths == [
        "/sys/fs/cgroup/unified/user.slice/session-2.scope",
        "/sys/fs/cgroup/unified/user.slice",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/memory/user.slice",
        "/sys/fs/cgroup/memory",
    ]
    found = memory.read(machine(files)).limit
    assert found == Known(4 * GIB, "/sys/fs/cgroup/memory/user.slice/memory.limit_in_bytes")


def test_under_the_hosts_namespace_the_limit_stands_at_our_own_group_and_not_at_the_root() -> None:
    # vertti/preflight#226: 22.9 GB were believed in a container of 512 MB.
    own = "/sys/fs/cgroup/system.slice/docker-1.scope"
    files = {
        "/proc/self/mountinfo": V2,
        "/proc/self/cgroup": "0::/system.slice/docker-1.scope\n",
        f"{own}/memory.max": str(512 * MIB),
        f"{own}/memory.current": str(100 * MIB),
        "/sys/fs/cgroup/memory.stat": "inactive_file 90000000000\n",
    }
    found = memory.read(machine(files))
    assert found.limit == Known(512 * MIB, f"{own}/memory.max")
    assert isinstance(found.available, Known)
    assert found.available.value == 412 * MIB


def test_a_cpuset_of_version_1_and_a_list_that_is_damaged() -> None:
    files = {
        "/proc/self/mountinfo": HYBRID,
        "/proc/self/cgroup": "5:cpuset:/x\n",
        "/sys/fs/cgroup/cpuset/x/cpuset.cpus": "0-1\n",
        "/sys/devices/system/cpu/online": "0-15\n",
    }
    assert cpu.read(machine(files)).cores == Known(2.0, "/sys/fs/cgroup/cpuset/x/cpuset.cpus")
    assert cpu.cpu_list("0-99999999999") == frozenset()


def test_memory_of_a_gpu_that_is_a_numa_node_is_no_node_of_the_processor() -> None:
    nodes = "/sys/devices/system/node"
    files = {f"{nodes}/node0/cpulist": "0-71\n", f"{nodes}/node1/cpulist": "\n", f"{nodes}/node2/cpulist": "\n"}
    assert cpu.read(machine(files)).numa_nodes == 1
