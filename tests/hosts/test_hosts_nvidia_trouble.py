"""What goes wrong with an NVIDIA driver is a normal input: each trouble is a reason, and the count stays right."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfhost.core.recorded import Recorded
from selfhost.hosts import nvidia_smi_csv, nvidia_smi_text, nvidia_smi_xml
from selfhost.hosts.detect import detect
from selfhost.hosts.nvidia_failure import lost_cards, meaning
from selfhost.hosts.nvidia_topology import pairs
from selfhost.hosts.vendors import nvidia
from selfhost.shapes.host import Fact, Known, Support, Unknown
from selfhost.shapes.surroundings import DriverStack
from tests.fakes.nvidia_machines import DRIVER_580, machine, nodes, output, smi
from tests.fakes.seen import cards, only

MIB = 2**20
KINDS = re.compile(r"NV\d{1,3}|PIX|PXB|PHB|NODE|SYS")
XML_FILES = ("q-x.a100-sxm4-80gb-mig.535.54.03.xml", "q-x.rtx3080.v13.xml", "q-x.gb10.derived.xml")
FILES = (
    *XML_FILES,
    "q.h100-mig.590.48.01.txt",
    "q.vgpu-host.580.105.06.txt",
    "L.a10-t4-mixed.txt",
    "L.h100-mig.590.48.01.txt",
    "query-gpu.l40s.595.80.csv",
    "table.wsl2.rtx4070.txt",
)
WORDS = "0123456789GPU: ,.<>/[N/A]|"
WSL = {"/proc/sys/kernel/osrelease": "5.15.146.1-microsoft-standard-WSL2\n"}
DXG = {"/dev/dxg": {"type": "c", "major": 10, "minor": 63}}
QUERY = ("--query-gpu=index,name,uuid,pci.bus_id,memory.total", "--format=csv,noheader,nounits")
THREE = {"0000:01:00.0": "2684", "0000:02:00.0": "2684", "0000:03:00.0": "2684"}


def stack(of: Recorded) -> DriverStack:
    found = nvidia.stack(of, cards(of))
    assert found is not None
    return found


def value(fact: Fact[Any]) -> Any:
    return fact.value if isinstance(fact, Known) else fact.reason


def xml(*blocks: str, attached: int | None = None) -> str:
    count = len(blocks) if attached is None else attached
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        f"<driver_version>580.95.05</driver_version>\n<cuda_version>13.0</cuda_version>\n"
        f"<attached_gpus>{count}</attached_gpus>\n{''.join(blocks)}</nvidia_smi_log>\n"
    )


def block(bus: int) -> str:
    return (
        f'<gpu id="00000000:{bus:02X}:00.0">\n<product_name>NVIDIA H100 80GB HBM3</product_name>\n'
        f"<uuid>GPU-{bus}</uuid>\n<minor_number>{bus - 1}</minor_number>\n"
        "<fb_memory_usage><total>81559 MiB</total><used>0 MiB</used><free>81000 MiB</free></fb_memory_usage>\n</gpu>\n"
    )


def test_sixteen_cards_are_sixteen() -> None:
    functions = {f"0000:{bus:02x}:00.0": "2330" for bus in range(1, 17)}
    found = cards(machine(functions, smi("-q", "-x", text=xml(*map(block, range(1, 17))))))
    assert [card.uuid for card in found] == [f"GPU-{bus}" for bus in range(1, 17)]
    assert all(value(card.usable) is True for card in found)
    assert found[15].nodes[0].path == "/dev/nvidia15"


def test_of_cut_xml_the_whole_cards_are_used_and_the_cut_is_said() -> None:
    whole = xml(block(1), block(2), block(3))
    text = whole[: whole.index("<uuid>GPU-3")]
    of = machine(THREE, smi("-q", "-x", text=text))
    assert [value(card.usable) for card in cards(of)] == [
        True,
        True,
        "nvidia-smi does not list this card: nvidia-smi -q -x describes 2 of 3 cards: its output is cut off",
    ]
    assert stack(of).failure == "nvidia-smi -q -x describes 2 of 3 cards: its output is cut off"


def test_a_warning_before_the_xml_and_text_behind_it_do_no_harm() -> None:
    text = f"WARNING: infoROM is corrupted at gpu 0000:01:00.0\n{xml(block(1))}"
    card = only(machine({"0000:01:00.0": "2330"}, smi("-q", "-x", text=text, rc=14)))
    assert value(card.usable) is True


def test_an_exit_code_other_than_0_with_usable_output_is_used_and_told() -> None:
    text = "0, NVIDIA GeForce RTX 4090, GPU-1, 00000000:01:00.0, 24564\n"
    of = machine({"0000:01:00.0": "2684"}, smi(*QUERY, text=text, rc=14))
    assert (value(only(of).usable), value(only(of).memory_total)) == (True, 24564 * MIB)
    assert stack(of).failure.startswith("nvidia-smi --query-gpu ended with 14")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "nvidia-smi lists no card"),
        ("No devices were found\n", "nvidia-smi lists no card: No devices were found"),
    ],
)
def test_no_device_with_exit_code_0_is_a_reason(text: str, reason: str) -> None:
    assert only(machine({"0000:01:00.0": "2684"}, smi(*QUERY, text=text))).usable == Unknown(reason)


@pytest.mark.parametrize(
    "said",
    [
        # https://forums.developer.nvidia.com/t/gpu-has-fallen-off-the-bus (R470 and R535 wordings)
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover it",
        "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error",
        "Unable to determine the device handle for GPU1: 0000:02:00.0: Unknown Error",
    ],
)
def test_a_card_off_the_bus_is_named_and_the_others_are_used(said: str) -> None:
    rows = "".join(f"{n}, NVIDIA GeForce RTX 4090, GPU-{n}, 00000000:0{n + 1}:00.0, 24564\n" for n in (0, 2))
    found = {card.pci: card for card in cards(machine(THREE, smi(*QUERY, text=f"{rows}{said}\n", rc=15)))}
    assert [value(card.usable) for card in found.values()].count(True) == 2
    lost = found["0000:02:00.0"].usable
    assert isinstance(lost, Unknown)
    assert lost.reason.startswith("nvidia-smi cannot reach this card: ")


def test_a_row_of_errors_is_the_one_card_that_is_left() -> None:
    rows = [f"{n}, NVIDIA GeForce RTX 4090, GPU-{n}, 00000000:0{n + 1}:00.0, 24564" for n in (0, 2)]
    lost = "1, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]"
    found = cards(machine(THREE, smi(*QUERY, text="\n".join([rows[0], lost, rows[1]]))))
    assert len(found) == 3
    assert [value(card.usable) for card in found] == [
        True,
        True,
        "nvidia-smi lists it, and it does not answer: GPU is lost",
    ]
    assert (found[2].pci, found[2].name) == ("0000:02:00.0", "NVIDIA Ada Lovelace card")


def test_err_in_the_table_is_no_card_that_works() -> None:
    table = output("smi-table.rtx2080s.610.57.04.txt").replace("211MiB /   8192MiB", "ERR! / ERR!")
    card = only(machine({"0000:0c:00.0": "1e81"}, smi(text=table)))
    assert card.usable == Unknown("nvidia-smi lists it, and it does not answer: ERR!")


def test_a_figure_that_is_not_there_is_unknown_and_makes_no_memory_of_the_machines() -> None:
    text = "0, NVIDIA GeForce RTX 4090, GPU-1, 00000000:01:00.0, [Unknown Error]\n"
    card = only(machine({"0000:01:00.0": "2684"}, smi(*QUERY, text=text)))
    assert card.memory_total == Unknown("nvidia-smi answers [Unknown Error]")
    assert not card.unified


def test_a_crash_of_nvidia_smi_is_said_as_such() -> None:
    assert meaning(139, "") == "nvidia-smi crashed (signal 11)"
    assert meaning(-11, "") == "nvidia-smi crashed (signal 11)"
    of = machine({"0000:01:00.0": "2684"}, smi(*QUERY, rc=139))
    assert only(of).usable == Unknown("nvidia-smi ended with 139: nvidia-smi crashed (signal 11)")


def test_a_hung_call_is_the_last_one() -> None:
    asked: list[tuple[str, ...]] = []

    class Watched(Recorded):
        def run(self, argv: Any, **more: Any) -> Any:
            asked.append(tuple(argv))
            return super().run(argv, **more)

    argv = ["nvidia-smi", "-q", "-x"]
    base = "/sys/bus/pci/devices/0000:01:00.0"
    files = {f"{base}/class": "0x030000", f"{base}/vendor": "0x10de", f"{base}/device": "0x2684"}
    of = Watched({"files": files, "nodes": nodes(0), "commands": [{"argv": argv, "rc": 124, "timed_out": True}]})
    (card,) = detect(of).accelerators
    assert card.usable == Unknown("nvidia-smi gave no answer within 5 s")
    assert asked[-1] == tuple(argv)
    nvidia.stack(of, (card,))
    nvidia.topology(of, (card, card))
    assert asked[-1] == tuple(argv)


def test_the_library_of_windows_beside_dxg_is_a_card_of_nvidia_that_nothing_speaks_for() -> None:
    libraries = {f"/usr/lib/wsl/lib/{name}": "" for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libdxcore.so")}
    of = machine({}, files={**WSL, **libraries}, opens=DXG, version="")
    card = only(of)
    assert (card.name, card.pci, card.support) == ("NVIDIA card of the Windows machine", "", Support.UNKNOWN)
    assert card.usable == Unknown("nvidia-smi is not installed")
    assert stack(of).flavour == "windows"


def test_dxg_without_the_library_is_not_of_nvidia() -> None:
    libraries = {f"/usr/lib/wsl/lib/{name}": "" for name in ("libd3d12.so", "libdxcore.so")}
    assert cards(machine({}, files={**WSL, **libraries}, opens=DXG, version="")) == ()


def test_under_wsl2_a_broken_cuda_library_is_seen_though_the_card_is_listed() -> None:
    # microsoft/WSL#11589
    table = output("table.wsl2.rtx4070.txt").replace("CUDA Version: 12.5 ", "CUDA Version: ERR! ")
    of = machine({}, smi(text=table), files=WSL, opens=DXG, version="")
    assert only(of).usable == Unknown("nvidia-smi lists it, and the CUDA library does not answer: CUDA Version: ERR!")
    assert "ERR!" in value(stack(of).cuda)


def test_a_jetson_is_a_card_without_any_tool() -> None:
    files = {
        "/etc/nv_tegra_release": "# R38 (release), REVISION: 2.0\n",
        "/sys/firmware/devicetree/base/model": "NVIDIA Jetson AGX Thor Developer Kit\0",
        "/proc/device-tree/compatible": "nvidia,p4071-0000+p3834-0008\0nvidia,p3834-0008\0nvidia,tegra264\0",
        "/proc/sys/kernel/osrelease": "6.8.12-tegra\n",
        "/proc/sys/kernel/arch": "aarch64\n",
    }
    card = only(machine({}, files=files, opens={"/dev/nvmap": {"type": "c"}}, version=""))
    assert (card.name, value(card.arch), card.unified) == ("NVIDIA Jetson AGX Thor Developer Kit", "sm_110", True)


def test_where_the_bus_is_hidden_the_kernel_module_names_the_card() -> None:
    path = "/proc/driver/nvidia/gpus/0000:70:00.0/information"
    card = only(machine({}, files={path: output("proc/information.l4.txt")}, opens=nodes(0)))
    assert (card.name, card.pci, value(card.openable)) == ("NVIDIA L4", "0000:70:00.0", True)
    assert card.present == Known(value=True, how="/proc/driver/nvidia/gpus/0000:70:00.0")


def test_a_machine_that_was_recorded_with_its_tool_alone_has_the_card_that_the_tool_lists() -> None:
    card = only(machine({}, smi("-q", "-x", file="q-x.rtx3080.v13.xml"), opens={}, version=""))
    assert (card.name, card.pci, value(card.arch)) == ("NVIDIA GeForce RTX 3080", "0000:0c:00.0", "sm_86")
    assert value(card.openable) is False  # what is not in a snapshot does not exist there


def test_the_numa_node_and_the_minor_are_those_of_the_kernel() -> None:
    base = "/sys/bus/pci/devices/0000:01:00.0"
    answer = smi("-q", "-x", text=xml(block(1)))
    card = only(machine({"0000:01:00.0": "2330"}, answer, files={f"{base}/numa_node": "1\n"}))
    assert (card.numa_node, card.pcie_link) == (1, "")
    apart = only(machine({"0000:01:00.0": "2330"}, files={f"{base}/numa_node": "-1\n"}))
    assert apart.numa_node is None


@pytest.mark.parametrize(
    ("files", "links", "libraries", "expected"),
    [
        ({"/usr/lib64/libcuda.so.580.95.05": ""}, {}, None, "580.95.05"),
        (
            {"/usr/lib64/libnvidia-ml.so.570.86.15": "", "/usr/lib64/libnvidia-ml.so.580.95.05": ""},
            {"/usr/lib64/libnvidia-ml.so.1": "libnvidia-ml.so.580.95.05"},
            None,
            "580.95.05",
        ),
        (
            {"/usr/lib64/libnvidia-ml.so.570.86.15": "", "/usr/lib64/libnvidia-ml.so.580.95.05": ""},
            {},
            None,
            "libraries of several versions lie here: 570.86.15, 580.95.05",
        ),
        ({}, {}, ["libcuda.so.1", "libcuda.so.580.95.05"], "580.95.05"),
        ({}, {}, ["libcuda.so.1", "libcudart.so.12.8.90"], "no library of the driver was found"),
    ],
)
def test_the_librarys_version_is_in_the_name_of_its_file(
    files: dict[str, str], links: dict[str, str], libraries: list[str] | None, expected: str
) -> None:
    base = "/sys/bus/pci/devices/0000:01:00.0"
    about = {f"{base}/class": "0x030000", f"{base}/vendor": "0x10de", f"{base}/device": "0x2684"}
    snapshot: dict[str, Any] = {
        "files": {**about, **files, "/proc/driver/nvidia/version": DRIVER_580},
        "links": links,
        "nodes": nodes(0),
    }
    assert value(stack(Recorded(snapshot | ({"libraries": libraries} if libraries else {}))).library) == expected


def test_the_link_is_as_it_runs_and_as_it_could() -> None:
    base = "/sys/bus/pci/devices/0000:01:00.0"
    files = {"current_link_speed": "2.5 GT/s PCIe\n", "current_link_width": "8\n"}
    files |= {"max_link_speed": "16.0 GT/s PCIe\n", "max_link_width": "16\n"}
    card = only(machine({"0000:01:00.0": "2684"}, files={f"{base}/{name}": text for name, text in files.items()}))
    assert card.pcie_link == "2.5 GT/s x8 of 16.0 GT/s x16"


def test_without_the_cuda_library_a_listed_card_is_in_doubt_and_no_hypervisors() -> None:
    text = "Driver Version : 580.105.06\nCUDA Version : Not Found\n\nAttached GPUs : 1\nGPU 00000000:01:00.0\n"
    card = only(machine({"0000:01:00.0": "2684"}, smi("-q", text=text)))
    assert card.usable == Unknown("nvidia-smi lists it, and the CUDA library is not here: CUDA Version: Not Found")


def test_a_module_that_is_not_loaded_is_said() -> None:
    found = stack(machine({"0000:01:00.0": "2684"}, version="", opens={}))
    assert (value(found.loaded), found.flavour) == (False, "")
    assert isinstance(found.module, Unknown)
    by_sys = stack(machine({"0000:01:00.0": "2684"}, version="", files={"/sys/module/nvidia/version": "580.95.05\n"}))
    assert (value(by_sys.loaded), value(by_sys.module)) == (True, "580.95.05")


def test_a_machine_without_anything_of_nvidia_has_no_stack() -> None:
    assert nvidia.stack(Recorded({}), ()) is None


def test_pairs_whose_two_cells_differ_are_left_out() -> None:
    text = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-7\nGPU1\tSYS\t X \t0-7\n"
    assert pairs(text, KINDS) == {}


def test_a_matrix_in_spaces_reads_as_one_in_tabs() -> None:
    tabs = output("topo-m.8xh100-nv18.txt")
    spaces = "\n".join("    ".join(line.split("\t")) for line in tabs.splitlines())
    assert pairs(spaces, KINDS) == pairs(tabs, KINDS)
    assert len(pairs(tabs, KINDS)) == 28


def test_a_command_line_with_commas_is_one_tenant() -> None:
    fields = ("uuid", "pid", "process_name", "used_memory")
    ((of, tenant),) = nvidia_smi_csv.tenants("GPU-1, 7, python -c print(1, 2), 19135\n", fields)
    assert (of, tenant.pid, tenant.name, value(tenant.memory)) == ("GPU-1", 7, "python -c print(1, 2)", 19135 * MIB)


@given(st.sampled_from(XML_FILES), st.integers(0, 60_000))
def test_however_xml_is_cut_no_card_is_invented(name: str, end: int) -> None:
    found = nvidia_smi_xml.read(output(name)[:end])
    assert len(found.cards) == int("</gpu>" in output(name)[:end])
    assert found.cards == () or found.cards[0].uuid.startswith("GPU-")


@given(st.integers(0, 400))
def test_however_a_list_is_cut_no_card_is_invented(end: int) -> None:
    text = output("L.a10-t4-mixed.txt")[:end]
    assert len(nvidia_smi_text.from_list(text)) == text.count(")")


@given(st.integers(0, 1200))
def test_however_a_csv_is_cut_no_second_card_is_invented(end: int) -> None:
    text = output("query-gpu.l40s.595.80.csv")[:end]
    assert len(nvidia_smi_csv.cards(text, ())) <= 1
    assert len(nvidia_smi_text.from_table(output("table.wsl2.rtx4070.txt")[:end])) <= 1


@given(st.integers(0, 900))
def test_however_a_matrix_is_cut_every_pair_that_is_left_is_true(end: int) -> None:
    whole = pairs(output("topo-m.8xh100-nv18.txt"), KINDS)
    assert set(pairs(output("topo-m.8xh100-nv18.txt")[:end], KINDS).items()) <= set(whole.items())


@given(st.sampled_from(FILES), st.integers(0, 3000), st.integers(0, 3000), st.text(WORDS, max_size=20))
def test_an_output_with_a_hole_in_it_gives_no_more_cards_than_the_whole(
    name: str, start: int, length: int, instead: str
) -> None:
    whole = output(name)
    text = f"{whole[:start]}{instead}{whole[start + length :]}"
    arguments = {"q-": ("-q", "-x") if name.endswith("xml") else ("-q",), "q.": ("-q",), "L.": ("-L",)}
    asked = arguments.get(name[:2], ("--query-gpu=name", "--format=csv") if name.startswith("query") else ())
    most = 4 if name.startswith("L.a10") else 1
    assert len(cards(machine({}, smi(*asked, text=text)))) <= most + text.count("GPU ") * (asked == ("-q",))


@given(st.text(max_size=400))
def test_any_text_is_read_without_an_error(text: str) -> None:
    nvidia_smi_xml.read(text)
    nvidia_smi_xml.read(f"<nvidia_smi_log>{text}</nvidia_smi_log>")
    nvidia_smi_text.from_query(text)
    nvidia_smi_text.from_list(text)
    nvidia_smi_text.from_table(text)
    nvidia_smi_text.from_instances(text)
    nvidia_smi_text.versions(text)
    nvidia_smi_csv.cards(text, ("index", "name"))
    nvidia_smi_csv.tenants(text, ("pid", "used_memory"))
    pairs(text, KINDS)
    lost_cards(text)
    meaning(255, text)


KEYS = (
    "devices",
    "index",
    "uuid",
    "pci",
    "memory",
    "slices",
    "processes",
    "mig",
    "fabric",
    "errors",
    "links",
    "a",
    "b",
)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(KEYS), json_value, max_size=5))
def test_any_object_under_nvml_is_read_without_an_error(facts: dict[str, Any]) -> None:
    snapshot = json.loads(json.dumps({"nvml": facts}))
    detect(machine({"0000:01:00.0": "2684"}, **snapshot))
