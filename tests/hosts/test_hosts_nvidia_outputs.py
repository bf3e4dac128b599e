"""Literal outputs of real machines: what is true of each comes out, and nothing that is not."""

import json
from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.hosts.vendors import nvidia
from selfhost.shapes.host import Fact, Known, Partitioning, Support, Unknown
from selfhost.shapes.surroundings import DriverStack
from tests.fakes.nvidia_machines import OUTPUTS, failed, machine, nodes, output, smi
from tests.fakes.seen import cards, only

MIB = 2**20
WSL = "5.15.146.1-microsoft-standard-WSL2\n"
VOID = {"/dev/nvidiactl": {"type": "c"}}


def stack(of: Recorded) -> DriverStack:
    found = nvidia.stack(of, cards(of))
    assert found is not None
    return found


def value(fact: Fact[object]) -> object:
    return fact.value if isinstance(fact, Known) else fact.reason


def h100(*commands: dict[str, object]) -> Recorded:
    return machine({"0000:00:09.0": "2330"}, *commands)


def test_the_short_list_of_two_a10_and_two_t4_gives_four_cards_of_two_kinds() -> None:
    functions = {"0000:17:00.0": "2236", "0000:31:00.0": "2236", "0000:b1:00.0": "1eb8", "0000:ca:00.0": "1eb8"}
    found = cards(machine(functions, smi("-L", file="L.a10-t4-mixed.txt")))
    assert [(card.name, value(card.arch)) for card in found] == [
        ("NVIDIA A10", "sm_86"),
        ("NVIDIA A10", "sm_86"),
        ("Tesla T4", "sm_75"),
        ("Tesla T4", "sm_75"),
    ]
    assert [card.uuid for card in found][3] == "GPU-b80f80b6-3bc6-0da2-10cc-03704cd89d13"
    assert [card.tool_index for card in found] == [{"nvidia-smi": number} for number in range(4)]


def test_mig_slices_have_profile_and_uuid_from_the_list_and_memory_from_the_query() -> None:
    query = smi("--query-gpu=driver_version", "--format=csv", file="query-gpu.h100-mig.590.48.01.csv")
    of = h100(query, smi("-L", file="L.h100-mig.590.48.01.txt"), smi("-q", file="q.h100-mig.590.48.01.txt"))
    card = only(of)
    assert (card.partitioning, card.partition_mode) == (Partitioning.MIG, "Enabled")
    assert [(part.name, part.uuid[:12], value(part.memory)) for part in card.partitions] == [
        ("3g.40gb", "MIG-025e6de3", 40448 * MIB),
        ("2g.20gb", "MIG-97808000", 20096 * MIB),
        ("1g.10gb", "MIG-bdc30fc5", 9984 * MIB),
        ("1g.10gb", "MIG-cc7c2154", 9984 * MIB),
    ]
    assert card.usable == Known(value=True, how="nvidia-smi lists it with 4 MIG instances")
    assert isinstance(card.memory_total, Unknown)
    assert (value(card.arch), card.fabric) == ("sm_90", "Completed/Success")
    assert value(stack(of).cuda) == "13.1"


def test_the_csv_query_alone_shows_one_card_in_mig_mode_and_no_slice() -> None:
    argv = ("--query-gpu=driver_version,count,name,pci.bus_id,index", "--format=csv")
    card = only(h100(smi(*argv, file="query-gpu.h100-mig.590.48.01.csv")))
    assert (card.name, card.partitioning, card.partitions) == ("NVIDIA H100 80GB HBM3", Partitioning.MIG, ())
    assert card.usable == Unknown("MIG is on, and nothing that was asked lists its instances")


def test_mig_on_without_an_instance_is_said_as_such() -> None:
    text = output("q-x.a100-sxm4-80gb-mig.535.54.03.xml")
    start, end = text.index("<mig_devices>"), text.index("</mig_devices>")
    empty = f"{text[:start]}<mig_devices>None{text[end:]}"
    card = only(machine({"0000:01:00.0": "20b2"}, smi("-q", "-x", text=empty), opens=nodes(1)))
    assert card.usable == Unknown("MIG is on and no instance was made: there is nothing to compute on")


def test_the_xml_of_one_of_four_cards_gives_one_with_four_slices_and_says_that_three_are_missing() -> None:
    of = machine({"0000:01:00.0": "20b2"}, smi("-q", "-x", file="q-x.a100-sxm4-80gb-mig.535.54.03.xml"), opens=nodes(1))
    card = only(of)
    assert [value(part.memory) for part in card.partitions] == [19968 * MIB] * 4
    assert [part.name for part in card.partitions] == [f"GPU instance {number}/0" for number in (3, 4, 5, 6)]
    assert {part.uuid for part in card.partitions} == {""}
    # index 0 of nvidia-smi is /dev/nvidia1
    assert (card.tool_index, card.nodes[0].path, card.device_id) == ({"nvidia-smi": 0}, "/dev/nvidia1", "20b2")
    assert stack(of).failure == "nvidia-smi -q -x describes 1 of 4 cards"
    assert value(stack(of).cuda) == "12.2"


@pytest.mark.parametrize("name", ["GPU-fb7d0c3b", ""])
def test_a_gb10_computes_in_the_machines_memory_in_whatever_form_it_was_asked(name: str) -> None:
    csv = (
        "--query-gpu=memory.total,memory.used,memory.free,utilization.gpu,power.draw,temperature.gpu",
        "--format=csv",
    )
    forms = (
        [smi("-q", "-x", file="q-x.gb10.derived.xml")]
        if name
        else [
            smi(*csv, file="query-gpu.gb10.580.173.02.csv"),
            smi(file="table.gb10.580.126.09.txt"),
        ]
    )
    apps = ("--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv,noheader,nounits")
    of = machine(
        {"000f:01:00.0": "2e12"},
        *forms,
        smi(*apps, file="query-compute-apps.gb10.csv"),
        files={"/proc/meminfo": output("meminfo.gb10.txt"), "/proc/sys/kernel/arch": "aarch64\n"},
    )
    host = detect(of)
    (card,) = host.accelerators
    assert card.unified
    assert (card.name, value(card.arch), card.support) == ("NVIDIA GB10", "sm_121", Support.SUPPORTED)
    assert "it shares the machine's memory" in str(value(card.memory_total))
    assert value(host.memory.total) == 127_600_748 * 1024
    assert value(card.usable) is True
    assert card.uuid.startswith(name)
    if name:  # processes are joined by uuid
        (tenant,) = card.tenants
        assert (tenant.pid, tenant.name, value(tenant.memory)) == (114687, "/usr/local/bin/python", 19135 * MIB)


def test_a_gb10_whose_driver_reports_the_machines_total_is_unified_all_the_same() -> None:
    # XuehaiPan/nvitop#208: one driver answers NOT_SUPPORTED, another a figure like MemTotal.
    text = output("q-x.gb10.derived.xml").replace("<total>N/A</total>", "<total>124610 MiB</total>")
    card = only(machine({"000f:01:00.0": "2e12"}, smi("-q", "-x", text=text)))
    assert card.unified
    assert card.memory_total == Unknown("nvidia-smi answers the machine's own figure: it shares the machine's memory")


def test_xml_of_an_rtx_3080_gives_card_memory_and_cuda() -> None:
    of = machine({"0000:0c:00.0": "2206"}, smi("-q", "-x", file="q-x.rtx3080.v13.xml"))
    card = only(of)
    assert card.name == "NVIDIA GeForce RTX 3080"
    assert (value(card.memory_total), value(card.arch)) == (10240 * MIB, "sm_86")
    assert (card.partitioning, card.fabric, card.link_group, card.tenants) == (Partitioning.NONE, "", "", ())
    assert not card.unified


def test_a_vgpu_of_a_virtual_machine_is_told_by_mode_profile_and_licence() -> None:
    for form in (smi("-q", "-x", file="q-x.vgpu.derived.xml"), smi("-q", file="q.vgpu-unlicensed.txt")):
        card = only(machine({"0000:02:00.0": "20b5"}, form))
        assert card.partitioning is Partitioning.VGPU
        assert card.licence == "Unlicensed (Restricted)"
    card = only(machine({"0000:02:00.0": "20b5"}, smi("-q", "-x", file="q-x.vgpu.derived.xml")))
    assert (card.partition_mode, value(card.memory_total)) == ("GRID A100-20C", 20480 * MIB)
    assert value(card.usable) is True


def test_the_driver_of_a_hypervisor_has_no_cuda_and_no_engine_is_started_there() -> None:
    of = machine({"0000:42:00.0": "2bb5"}, smi("-q", file="q.vgpu-host.580.105.06.txt"))
    card = only(of)
    assert isinstance(card.usable, Known)
    assert not card.usable.value
    assert "hypervisor" in card.usable.how
    assert isinstance(stack(of).cuda, Unknown)
    assert "Not Found" in str(value(stack(of).cuda))
    assert "virtual machines" in stack(of).failure


def test_one_card_passed_through_still_has_a_fabric() -> None:
    assert only(h100(smi("-q", file="fabric.completed-vs-na.txt"))).fabric == "Completed/Success"
    query = smi("--query-gpu=name", "--format=csv", file="query-gpu.l40s.595.80.csv")
    assert only(machine({"0000:01:00.0": "26b9"}, query)).fabric == ""


@pytest.mark.parametrize(
    ("device", "bus", "file", "expected"),
    [
        ("26b9", "0000:01:00.0", "query-gpu.l40s.595.80.csv", ("NVIDIA L40S", 46068, "sm_89", "595.80")),
        (
            "1e81",
            "0000:0c:00.0",
            "query-gpu.rtx2080s.610.57.04.csv",
            ("NVIDIA GeForce RTX 2080 SUPER", 8192, "sm_75", "610.57.04"),
        ),
    ],
)
@pytest.mark.parametrize("asked", ["name", "driver_version,kmd_version,count,name,pci.bus_id,index,uuid"])
def test_the_header_says_what_a_csv_query_holds_whatever_was_asked(
    device: str, bus: str, file: str, expected: tuple[str, int, str, str], asked: str
) -> None:
    card = only(machine({bus: device}, smi(f"--query-gpu={asked}", "--format=csv", file=file)))
    name, memory, arch, driver = expected
    assert (card.name, value(card.memory_total), value(card.arch), card.driver_version) == (
        name,
        memory * MIB,
        arch,
        driver,
    )
    assert not card.unified
    assert value(card.usable) is True


def test_without_a_header_the_field_list_of_the_command_says_it() -> None:
    lines = output("query-gpu.l40s.595.80.csv").splitlines()
    fields = ",".join(name.partition(" [")[0] for name in lines[0].split(", "))
    asked = (f"--query-gpu={fields}", "--format=csv,noheader")
    card = only(machine({"0000:01:00.0": "26b9"}, smi(*asked, text=lines[1])))
    assert (card.name, value(card.memory_total)) == ("NVIDIA L40S", 46068 * MIB)


def test_r610_writes_its_versions_under_new_names() -> None:
    for form in (
        smi(file="smi-table.rtx2080s.610.57.04.txt"),
        smi("--version", file="smi-version.rtx2080s.610.57.04.txt"),
    ):
        of = machine({"0000:0c:00.0": "1e81"}, form, smi("-L", file="L.rtx2080s.610.57.04.txt"), version="")
        assert value(stack(of).cuda) == "13.3"
        assert detect(of).driver == Known("610.57.04", " ".join(form["argv"]))
        (card,) = detect(of).accelerators
        assert card.name == "NVIDIA GeForce RTX 2080 SUPER"  # the table cuts it off
        assert card.partitions == ()


def test_a_jetson_is_told_by_its_device_tree_and_by_the_name_nvgpu() -> None:
    board = {
        "/etc/nv_tegra_release": "# R36 (release), REVISION: 4.4\n",
        "/proc/device-tree/compatible": "nvidia,p3737-0000\0nvidia,tegra234\0",
        "/proc/sys/kernel/arch": "aarch64\n",
    }
    opens = {"/dev/nvmap": {"type": "c"}}
    of = machine({}, smi(file="table.orin.540.4.0.txt"), files=board, opens=opens, version="")
    card = only(of)
    assert (card.name, value(card.arch), card.unified, card.pci) == ("Orin (nvgpu)", "sm_87", True, "")
    assert value(card.usable) is True
    assert value(stack(of).cuda) == "12.6"
    nameless = machine({}, smi(file="table.orin.540.4.0.txt"), opens={**VOID}, version="")
    assert only(nameless).unified


def test_under_wsl2_the_two_versions_differ_and_the_name_in_the_table_is_cut() -> None:
    libraries = {f"/usr/lib/wsl/lib/{name}": "" for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libdxcore.so")}
    of = machine(
        {},
        {**smi(file="table.wsl2.rtx4070.txt"), "argv": ["/usr/lib/wsl/lib/nvidia-smi"]},
        files={"/proc/sys/kernel/osrelease": WSL, **libraries},
        opens={"/dev/dxg": {"type": "c", "major": 10, "minor": 63}},
        version="",
    )
    card = only(of)
    assert (card.name, value(card.memory_total)) == ("NVIDIA GeForce RTX 4070 ...", 12282 * MIB)
    found = stack(of)
    assert (found.flavour, value(found.module), value(found.cuda), found.failure) == ("windows", "555.99", "12.5", "")
    assert value(found.loaded) is True


def tree(name: str) -> dict[str, object]:
    """Device nodes of a tree file in the form of a snapshot."""
    seen = json.loads(output(name))
    return {path: {"type": "c", "mode": node["mode"]} for path, node in seen.items()}


def test_a_pod_with_one_of_eight_cards_has_that_one_by_its_minor() -> None:
    functions = {f"0000:{bus}:00.0": "2330" for bus in ("0f", "2d", "44", "5b", "89", "a8", "c0", "d8")}
    listed = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-025e6de3-5909-1af0-2d07-ba92fc076426)\n"
    found = cards(machine(functions, smi("-L", text=listed), opens=tree("dev.pod-1of8-h100.tree.json")))
    assert len(found) == 8
    assert (found[0].pci, found[0].nodes[0].path, found[0].tool_index) == (
        "0000:c0:00.0",
        "/dev/nvidia6",
        {"nvidia-smi": 0},
    )
    assert [value(card.usable) for card in found] == [True] + [False] * 7


def test_without_the_uvm_node_the_card_is_not_granted_though_nvidia_smi_lists_it() -> None:
    listed = smi("-L", file="L.rtx2080s.610.57.04.txt")
    card = only(machine({"0000:0c:00.0": "1e81"}, listed, opens=tree("dev.uvm-missing.tree.json")))
    assert card.openable == Known(value=False, how="/dev/nvidia-uvm: ENOENT")


@pytest.mark.parametrize(
    ("file", "usable", "means"),
    [
        ("insufficient-permissions-4.json", "Failed to initialize NVML: Insufficient Permissions", "may not open"),
        ("mismatch-18.json", "Failed to initialize NVML: Driver/library version mismatch", "different versions"),
        ("no-devices-6.json", "No devices were found", "no card that it could start"),
        ("no-driver-9.json", "NVIDIA-SMI has failed because it couldn't communicate", "no kernel module"),
        ("no-lib-12.json", "NVIDIA-SMI couldn't find libnvidia-ml.so", "library is not here"),
        ("not-found-127.json", "nvidia-smi is not installed", "nvidia-smi is not installed"),
        ("unknown-error-255.json", "Failed to initialize NVML: Unknown Error", "lost its devices"),
    ],
)
def test_each_failure_is_the_reason_and_is_said_in_plain_words(file: str, usable: str, means: str) -> None:
    of = machine({"0000:01:00.0": "2236"}, failed(file))
    card = only(of)
    assert isinstance(card.usable, Unknown)
    assert usable in card.usable.reason
    assert means in stack(of).failure


def test_a_mismatch_gives_the_version_of_the_library_that_the_module_does_not_match() -> None:
    of = machine({"0000:01:00.0": "2236"}, failed("mismatch-18.json"))
    assert (value(stack(of).module), value(stack(of).library)) == ("580.95.05", "535.161")


def test_a_field_that_the_driver_does_not_know_is_no_failure() -> None:
    of = machine({"0000:0c:00.0": "2206"}, failed("bad-field-2.json"), smi("-q", "-x", file="q-x.rtx3080.v13.xml"))
    assert value(only(of).usable) is True
    assert stack(of).failure == ""
    alone = machine({"0000:0c:00.0": "2206"}, failed("bad-field-2.json"))
    assert only(alone).usable == Unknown("nvidia-smi does not list this card")


def test_the_kernel_module_gives_uuid_and_minor_where_no_tool_is() -> None:
    path = "/proc/driver/nvidia/gpus/0000:70:00.0/information"
    card = only(machine({"0000:70:00.0": "27b8"}, files={path: output("proc/information.l4.txt")}))
    assert (card.name, card.uuid) == ("NVIDIA L4", "GPU-e71ab3ff-bf93-c52b-6752-13d31c6c2c1a")
    assert card.usable == Unknown("nvidia-smi is not installed")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("proc/version.open.580.95.05.txt", ("open", "580.95.05", "13.0")),
        ("proc/version.proprietary.580.173.02.txt", ("proprietary", "580.173.02", "13.0")),
    ],
)
def test_both_flavours_of_the_module_are_read(file: str, expected: tuple[str, str, str]) -> None:
    library = {"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.178": ""}
    found = stack(machine({"0000:01:00.0": "2236"}, version=output(file), files=library))
    assert (found.flavour, value(found.module), value(found.cuda)) == expected
    assert (value(found.loaded), value(found.library)) == (True, "580.178")


def test_memory_is_what_the_card_says_and_not_what_its_kind_usually_has() -> None:
    rows = json.loads(output("detect.rtx4090-48g.json"))
    text = "".join(
        f"{row['index']}, {row['name']}, {row['uuid']}, {row['appendix']['bdf']}, {row['memory']}\n" for row in rows
    )
    query = smi("--query-gpu=index,name,uuid,pci.bus_id,memory.total", "--format=csv,noheader,nounits", text=text)
    found = cards(machine({"0000:02:00.0": "2684", "0000:03:00.0": "2684"}, query))
    assert [value(card.memory_total) for card in found] == [49140 * MIB] * 2


def test_a_gh200_has_memory_of_its_own() -> None:
    # 97871 MiB of HBM: https://docs.nvidia.com/grace-perf-tuning-guide/ (nvidia-smi of a GH200 480GB)
    query = ("--query-gpu=index,name,memory.total,addressing_mode", "--format=csv,noheader")
    numa = {f"/sys/devices/system/node/node{number}/cpulist": "" for number in range(1, 9)}
    assert output("lscpu-numa.gh200.txt").count("CPU(s):      \n") == len(numa)
    of = machine(
        {"0009:01:00.0": "2342"},
        smi(*query, text="0, NVIDIA GH200 480GB, 97871 MiB, ATS\n"),
        files={"/sys/devices/system/node/node0/cpulist": "0-71", **numa},
    )
    card = only(of)
    assert (card.unified, value(card.memory_total)) == (False, 97871 * MIB)


def links(of: Recorded) -> list[tuple[int, int, str, str]]:
    found = nvidia.topology(of, cards(of))
    return [(link.a, link.b, link.kind, link.peer_access) for link in found]


def cards_named(name: str, count: int) -> dict[str, object]:
    return smi("-L", text="".join(f"GPU {n}: {name} (UUID: GPU-{n}{n})\n" for n in range(count)))


def test_two_5090_reach_each_other_over_the_host_bridge_without_peer_access() -> None:
    functions = {"0000:01:00.0": "2b85", "0000:02:00.0": "2b85"}
    of = machine(
        functions,
        cards_named("NVIDIA GeForce RTX 5090", 2),
        smi("topo", "-m", file="topo-m.2x5090-phb.txt"),
        smi("topo", "-p2p", "rw", file="topo-p2p.2x5090.txt"),
    )
    assert links(of) == [(0, 1, "PHB", "GNS")]


def test_eight_h100_are_all_linked_and_network_cards_are_no_cards() -> None:
    functions = {f"0000:{bus:02x}:00.0": "2330" for bus in range(1, 9)}
    of = machine(functions, cards_named("NVIDIA H100 80GB HBM3", 8), smi("topo", "-m", file="topo-m.8xh100-nv18.txt"))
    found = links(of)
    assert len(found) == 28  # 8 * 7 / 2
    assert {kind for _, _, kind, _ in found} == {"NV18"}


def test_one_card_has_no_link_and_an_underlined_heading_is_read() -> None:
    of = machine(
        {"0000:01:00.0": "26b9"},
        cards_named("NVIDIA L40S", 1),
        smi("topo", "-m", file="topo-m.l40s.595.80.txt"),
    )
    assert links(of) == []
    underlined = output("topo-m.2x5090-phb.txt").replace("\tGPU0\tGPU1", "\t\x1b[4mGPU0\tGPU1\x1b[0m", 1)
    functions = {"0000:01:00.0": "2b85", "0000:02:00.0": "2b85"}
    two = machine(functions, cards_named("NVIDIA GeForce RTX 5090", 2), smi("topo", "-m", text=underlined))
    assert links(two) == [(0, 1, "PHB", "")]


def test_the_modes_of_mig_capabilities_are_no_card() -> None:
    path = "/proc/driver/nvidia/capabilities/mig/monitor"
    assert cards(machine({}, files={path: output("proc/capabilities-mig-monitor.txt")}, opens={})) == ()


def test_every_output_is_used_by_a_test_and_has_its_source() -> None:
    sources = json.loads(output("sources.json"))
    named = Path(__file__).read_text(encoding="utf-8")
    files = {str(path.relative_to(OUTPUTS)) for path in OUTPUTS.rglob("*") if path.is_file()} - {"sources.json"}
    assert files == set(sources)
    assert [name for name in files if name.removeprefix("fail/") not in named] == []
