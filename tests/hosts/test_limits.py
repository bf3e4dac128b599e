"""Cores and memory are what the smallest limit around this process leaves of them."""

from collections.abc import Callable

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts import cpu, memory
from selfhost.shapes.host import Host, Known, Unknown

GIB = 2**30
Load = Callable[[str], Host]


@pytest.mark.parametrize(
    ("name", "cores", "limit_bytes", "available_bytes"),
    [
        # 150000 of 100000 µs; 8 GiB limit, 3 GiB in use of which 1 GiB is idle page cache.
        ("docker-limits", 1.5, 8 * GIB, 6 * GIB),
        # The parent slice is tighter than our own scope: 4 of 8 cores, 12 of 16 GiB, and 10 - 2 GiB in use there.
        ("slice-limits", 4.0, 12 * GIB, 4 * GIB),
        # 9223372036854771712 and -1 are how version 1 says "none": 65536000 kB and 60000000 kB of /proc/meminfo.
        ("v1-unlimited", 16.0, 67_108_864_000, 61_440_000_000),
        # hierarchical_memory_limit 5 GiB is below the 6 GiB of our own level; 4 - 1 GiB in use; 2.5 of 4 cores.
        ("v1-docker-limits", 2.5, 5 * GIB, 2 * GIB),
        # 24683584 kB; the affinity mask names 128 cores, the machine has 2.
        ("bare-no-cards", 2.0, 25_275_990_016, 21_504_000_000),
    ],
)
def test_the_smallest_limit_of_all_levels_counts(
    host: Load, name: str, cores: float, limit_bytes: int, available_bytes: int
) -> None:
    found = host(name)
    assert isinstance(found.cpu.cores, Known)
    assert isinstance(found.memory.limit, Known)
    assert isinstance(found.memory.available, Known)
    assert found.cpu.cores.value == cores
    assert found.memory.limit.value == limit_bytes
    assert found.memory.available.value == available_bytes


def test_a_limit_says_which_file_it_was_read_from(host: Load) -> None:
    found = host("slice-limits")
    assert isinstance(found.memory.limit, Known)
    assert found.memory.limit.how == "/sys/fs/cgroup/user.slice/user-1000.slice/memory.max"
    assert isinstance(found.cpu.cores, Known)
    assert found.cpu.cores.how == "/sys/fs/cgroup/user.slice/user-1000.slice/cpu.max (400000 of 100000)"


def test_a_container_in_the_hosts_cgroup_namespace_finds_its_own_limit_below_the_mount() -> None:
    own = "/sys/fs/cgroup/system.slice/docker-aa.scope"
    machine = Recorded(
        {
            "files": {
                "/proc/self/cgroup": "0::/system.slice/docker-aa.scope\n",
                "/proc/self/mountinfo": "35 30 0:30 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
                "/proc/meminfo": "MemTotal: 24000000 kB\nMemAvailable: 20000000 kB\n",
                f"{own}/memory.max": f"{GIB // 2}\n",
                f"{own}/memory.current": "1048576\n",
            }
        }
    )
    found = memory.read(machine)
    assert isinstance(found.limit, Known)
    assert found.limit.value == GIB // 2


def test_a_mount_that_starts_at_our_own_cgroup_is_read_at_its_top() -> None:
    machine = Recorded(
        {
            "files": {
                "/proc/self/cgroup": "0::/docker/aa\n",
                "/proc/self/mountinfo": "35 30 0:30 /docker/aa /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
                "/proc/cpuinfo": "processor : 0\nprocessor : 1\nprocessor : 2\n",
                "/sys/fs/cgroup/cpu.max": "50000 100000\n",
            }
        }
    )
    assert cpu.read(machine).cores == Known(0.5, "/sys/fs/cgroup/cpu.max (50000 of 100000)")


def test_our_own_cgroup_is_found_below_a_mount_that_starts_half_way() -> None:
    machine = Recorded(
        {
            "files": {
                "/proc/self/cgroup": "0::/docker/aa/init\n",
                "/proc/self/mountinfo": "35 30 0:30 /docker/aa /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
                "/proc/cpuinfo": "processor : 0\nprocessor : 1\n",
                "/sys/fs/cgroup/init/cpu.max": "50000 100000\n",
            }
        }
    )
    assert cpu.read(machine).cores == Known(0.5, "/sys/fs/cgroup/init/cpu.max (50000 of 100000)")


def test_a_cpuset_of_version_1_counts() -> None:
    machine = Recorded(
        {
            "files": {
                "/sys/devices/system/cpu/online": "0-7\n",
                "/sys/fs/cgroup/cpuset/cpuset.effective_cpus": "0-2\n",
            }
        }
    )
    assert cpu.read(machine).cores == Known(3.0, "/sys/fs/cgroup/cpuset/cpuset.effective_cpus")


def test_an_affinity_mask_counts_only_cores_that_the_machine_has() -> None:
    files = {"/proc/self/status": "Cpus_allowed_list:\t1-127\n", "/sys/devices/system/cpu/online": "0-1\n"}
    found = cpu.read(Recorded({"files": files})).cores
    assert isinstance(found, Known)
    assert found.value == 1.0


def test_memory_in_use_beyond_its_limit_leaves_nothing_and_not_less() -> None:
    machine = Recorded(
        {
            "files": {
                "/proc/meminfo": "MemTotal: 24000000 kB\nMemAvailable: 20000000 kB\n",
                "/sys/fs/cgroup/memory.max": "1000\n",
                "/sys/fs/cgroup/memory.current": "5000\n",
            }
        }
    )
    found = memory.read(machine)
    assert isinstance(found.available, Known)
    assert found.available.value == 0


def test_memory_high_binds_like_a_limit() -> None:
    machine = Recorded(
        {
            "files": {
                "/proc/meminfo": "MemTotal: 24000000 kB\nMemAvailable: 20000000 kB\n",
                "/sys/fs/cgroup/memory.max": "max\n",
                "/sys/fs/cgroup/memory.high": f"{GIB}\n",
            }
        }
    )
    assert memory.read(machine).limit == Known(GIB, "/sys/fs/cgroup/memory.high")


def test_a_machine_without_proc_gives_reasons_and_no_figures() -> None:
    machine = Recorded({})
    assert memory.read(machine).total == Unknown("/proc/meminfo has no MemTotal")
    assert isinstance(memory.read(machine).available, Unknown)
    assert isinstance(cpu.read(machine).cores, Unknown)
    assert cpu.read(machine).model == "unknown processor"


def test_affinity_is_counted_when_it_is_the_tightest() -> None:
    files = {"/proc/self/status": "Cpus_allowed_list:\t0,2-3\n", "/sys/devices/system/cpu/online": "0-7\n"}
    found = cpu.read(Recorded({"files": files}))
    assert isinstance(found.cores, Known)
    assert (found.cores.value, found.cores_online) == (3.0, 8)


def test_instruction_sets_of_a_sapphire_rapids_and_of_an_arm_server_are_named(host: Load) -> None:
    xeon = host("bare-no-cards").cpu
    assert {"avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_tile"} <= set(xeon.features)
    assert (xeon.model, xeon.architecture, xeon.numa_nodes) == ("Intel(R) Xeon(R) Processor", "x86_64", 1)
    spark = host("gb10").cpu
    assert spark.features == ("asimd", "i8mm", "bf16", "sve", "sve2")
    assert spark.architecture == "aarch64"


def test_only_instruction_sets_that_every_core_has_are_named() -> None:
    text = "processor : 0\nflags : lm avx2 avx512f\nprocessor : 1\nflags : lm avx2\n"
    assert cpu.read(Recorded({"files": {"/proc/cpuinfo": text}})).features == ("avx2",)


@pytest.mark.parametrize(("text", "count"), [("0-3,8", 5), ("", 0), ("5", 1), ("all", 0), ("0-1\n", 2)])
def test_a_list_of_cores_is_counted(text: str, count: int) -> None:
    assert len(cpu.cpu_list(text)) == count
