"""Several forms speak of one card: by uuid or address, by number only within one tool, and never by a guess."""

from collections.abc import Sequence
from typing import Any

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts import nvidia_smi_csv, nvidia_smi_text, nvidia_smi_xml
from selfhost.hosts.detect import detect
from selfhost.hosts.nvidia_failure import meaning
from selfhost.hosts.nvidia_reading import Reading, Slice, clique, join
from selfhost.hosts.vendors import nvidia
from selfhost.shapes.host import Known, Partitioning, Tenant, Unknown
from tests.fakes.nvidia_machines import machine, nodes, output, smi
from tests.fakes.seen import only

MIB = 2**20
QUERY = ("--query-gpu=index,name,uuid,pci.bus_id,memory.total", "--format=csv,noheader,nounits")
TWO = {"0000:01:00.0": "2684", "0000:02:00.0": "2684"}


class Watched(Recorded):
    """Keeps what it was asked."""

    asked: tuple[tuple[str, ...], ...] = ()

    def run(self, argv: Sequence[str], **more: Any) -> Any:
        self.asked += (tuple(argv),)
        return super().run(argv, **more)


def watched(*commands: dict[str, Any]) -> Watched:
    files: dict[str, str] = {}
    for address in TWO:
        base = f"/sys/bus/pci/devices/{address}"
        files |= {f"{base}/class": "0x030000", f"{base}/vendor": "0x10de", f"{base}/device": "0x2684"}
    return Watched({"files": files, "nodes": nodes(0, 1), "commands": list(commands)})


def test_the_number_of_one_tool_is_not_that_of_another() -> None:
    nvml = Reading(tool="NVML", index=0, uuid="GPU-a", bus_id="0000:01:00.0")
    bare = Reading(tool="nvidia-smi", index=0, name="NVIDIA B")
    assert join((nvml, bare)) == (nvml, bare)
    assert len(join((Reading(tool="nvidia-smi", index=0, uuid="GPU-a"), bare))) == 1


def test_a_name_that_the_table_cut_gives_way_to_the_whole_one() -> None:
    cut = Reading(tool="nvidia-smi", index=0, name="NVIDIA GeForce RTX 4070 ...")
    whole = Reading(tool="nvidia-smi", index=0, name="NVIDIA GeForce RTX 4070 Ti SUPER")
    assert [card.name for card in join((cut, whole))] == ["NVIDIA GeForce RTX 4070 Ti SUPER"]
    assert [card.name for card in join((whole, cut))] == ["NVIDIA GeForce RTX 4070 Ti SUPER"]


def test_slices_meet_by_their_number_within_the_card() -> None:
    listed = Reading(tool="nvidia-smi", uuid="GPU-a", slices=(Slice(index=1, profile="3g.40gb", uuid="MIG-1"),))
    sized = Reading(tool="nvidia-smi", uuid="GPU-a", slices=(Slice(index=1, memory=Known(7, "x"), instance="2/0"),))
    (card,) = join((listed, sized))
    assert card.slices == (Slice(index=1, profile="3g.40gb", uuid="MIG-1", memory=Known(7, "x"), instance="2/0"),)
    assert join((sized, listed))[0].slices == card.slices


def test_two_cards_that_nobody_tells_apart_are_not_taken_for_two_on_the_bus() -> None:
    three = {**TWO, "0000:03:00.0": "2684"}
    of = machine(
        three,
        smi(*QUERY, text="0, NVIDIA A, GPU-a, 00000000:02:00.0, 24564\n"),
        smi("-L", text="GPU 1: NVIDIA B (UUID: GPU-b)\nGPU 2: NVIDIA C (UUID: GPU-c)\n"),
    )
    found = detect(of).accelerators
    assert sorted((card.pci, card.uuid) for card in found) == [
        ("0000:01:00.0", ""),
        ("0000:02:00.0", "GPU-a"),
        ("0000:03:00.0", ""),
    ]


def test_one_set_aside_for_a_virtual_machine_has_no_minor() -> None:
    of = machine(TWO, opens=nodes(0))
    links = dict.fromkeys((f"/sys/bus/pci/devices/{address}/driver" for address in TWO), "drivers/nvidia")
    first = next(iter(links))
    kept = Recorded(
        {
            "files": {path: of.read(path) for path in _pci_files()},
            "links": {**links, first: "drivers/vfio-pci"},
            "nodes": nodes(0),
        }
    )
    paths = {card.pci: card.nodes[0].path for card in detect(kept).accelerators}
    assert paths == {"0000:01:00.0": "/dev/nvidiaN", "0000:02:00.0": "/dev/nvidia0"}


def _pci_files() -> list[str]:
    return [f"/sys/bus/pci/devices/{address}/{name}" for address in TWO for name in ("class", "vendor", "device")]


def test_the_minor_that_nvidia_smi_says_is_the_cards_own_node() -> None:
    text = output("q-x.a100-sxm4-80gb-mig.535.54.03.xml")  # minor_number 1, index 0
    card = only(machine({"0000:01:00.0": "20b2"}, smi("-q", "-x", text=text), opens=nodes(0, 1)))
    assert card.nodes[0].path == "/dev/nvidia1"


def test_a_uuid_of_question_marks_is_none() -> None:
    # What the module writes until the card was started once.
    lines = "Model: \t NVIDIA L4\nGPU UUID: \t GPU-????????-????-????-????-????????????\nDevice Minor: \t 0\n"
    path = "/proc/driver/nvidia/gpus/0000:70:00.0/information"
    assert only(machine({"0000:70:00.0": "27b8"}, files={path: lines})).uuid == ""


def test_only_a_completed_fabric_tells_who_is_linked() -> None:
    cluster = "025e6de3-5909-1af0-2d07-ba92fc076426"
    assert clique("Completed", cluster, "0") == f"{cluster}/0"
    assert clique("In Progress", cluster, "0") == ""
    assert clique("Completed", "N/A", "3") == "fabric/3"


def test_a_text_decides_before_the_exit_code() -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch"
    assert meaning(1, said) == "the kernel module and the driver's library are of different versions"
    assert meaning(1, "something new") == ""


def test_what_stands_above_the_heading_of_a_csv_is_no_row() -> None:
    text = "Tue Jul 14 09:00:27 2026\nname, uuid\nNVIDIA L4, GPU-a\n"
    (card,) = nvidia_smi_csv.cards(text, ("name",))
    assert (card.name, card.uuid) == ("NVIDIA L4", "GPU-a")


def test_a_line_whose_number_is_none_is_no_row() -> None:
    assert nvidia_smi_csv.cards("Warning about it, see the log\n", ("index", "name")) == ()
    assert nvidia_smi_csv.cards("some text, and more\n", ("index", "name")) == ()


def test_a_process_that_only_draws_is_no_tenant() -> None:
    processes = "".join(
        f"<process_info><pid>{pid}</pid><type>{kind}</type><process_name>{name}</process_name>"
        "<used_memory>300 MiB</used_memory></process_info>"
        for pid, kind, name in ((1, "G", "/usr/bin/gnome-shell"), (2, "C", "python"), (3, "M+C", "vllm"))
    )
    text = f'<nvidia_smi_log><gpu id="00000000:01:00.0"><processes>{processes}</processes></gpu></nvidia_smi_log>'
    (card,) = nvidia_smi_xml.read(text).cards
    assert card.tenants == tuple(
        Tenant(pid=pid, name=name, memory=Known(300 * MIB, "nvidia-smi")) for pid, name in ((2, "python"), (3, "vllm"))
    )


def test_processes_of_the_text_form_are_tenants_too() -> None:
    # Layout of R535 and of R470: the block is indented under `Process ID`, or beside it.
    text = (
        "GPU 00000000:01:00.0\n    Processes\n        GPU instance ID                   : N/A\n"
        "        Process ID                        : 4711\n            Type                          : C\n"
        "            Name                          : python\n            Used GPU Memory               : 300 MiB\n"
        "        Process ID                        : 4712\n            Type                          : G\n"
    )
    (card,) = nvidia_smi_text.from_query(text)
    assert card.tenants == (Tenant(pid=4711, name="python", memory=Known(300 * MIB, "nvidia-smi")),)


def test_both_spellings_of_the_versions_are_read() -> None:
    assert nvidia_smi_text.versions(output("smi-version.rtx2080s.610.57.04.txt")) == ("610.57.04", "13.3", "610.57")
    assert nvidia_smi_text.versions(output("table.wsl2.rtx4070.txt")) == ("555.99", "12.5", "")


def test_the_tools_are_not_asked_again_for_what_is_around_the_cards() -> None:
    of = watched(smi(*QUERY, text="0, NVIDIA A, GPU-a, 00000000:01:00.0, 24564\n"))
    found = detect(of).accelerators
    before = len(of.asked)
    nvidia.stack(of, found)
    assert len(of.asked) == before
    detect(of)
    assert len(of.asked) > before  # free memory changes: cards are read anew each time


def test_after_the_second_form_hung_the_cards_of_the_first_are_used_and_nothing_more_is_asked() -> None:
    fields = (
        "--query-gpu=index,name,uuid,pci.bus_id,memory.total,memory.free,compute_cap,driver_version,mig.mode.current",
        "--format=csv,noheader,nounits",
    )
    rows = "".join(
        f"{n}, NVIDIA GeForce RTX 4090, GPU-{n}, 00000000:0{n + 1}:00.0, 24564, 24081, 8.9, 580.95.05, [N/A]\n"
        for n in (0, 1)
    )
    hung = {"argv": ["nvidia-smi", "-q", "-x"], "rc": 124, "timed_out": True}
    of = watched(smi(*fields, text=rows), hung)
    found = detect(of).accelerators
    assert [card.usable for card in found] == [Known(value=True, how="nvidia-smi lists it")] * 2
    assert nvidia.topology(of, found) == ()
    assert of.asked[-1] == ("nvidia-smi", "-q", "-x")
    stack = nvidia.stack(of, found)
    assert stack is not None
    assert stack.failure == "nvidia-smi gave no answer within 5 s"


def test_a_chip_without_memory_of_its_own_is_known_by_its_name() -> None:
    text = "0, NVIDIA Thor, GPU-1, [N/A], 125772\n"
    assert only(machine({}, smi(*QUERY, text=text), opens={"/dev/nvidiactl": {}})).unified


def test_a_card_in_mig_mode_that_hides_its_memory_is_not_unified() -> None:
    fields = ("--query-gpu=index,name,memory.total,mig.mode.current", "--format=csv,noheader")
    card = only(machine({"0000:01:00.0": "20b2"}, smi(*fields, text="0, NVIDIA A100-SXM4-80GB, [N/A], Enabled\n")))
    assert not card.unified


@pytest.mark.parametrize(
    ("mode", "name", "expected"),
    [
        ("Pass-Through", "NVIDIA H100 80GB HBM3", Partitioning.PASSTHROUGH),
        ("None", "NVIDIA H100 80GB HBM3", Partitioning.NONE),
        ("VGPU", "NVIDIA L40S-24C", Partitioning.VGPU),
        ("", "GRID A100-1-10C", Partitioning.VGPU),
        ("", "NVIDIA A40-48Q", Partitioning.VGPU),
        ("", "NVIDIA RTX A6000", Partitioning.NONE),
        ("", "NVIDIA A100-SXM4-80GB", Partitioning.NONE),
        ("", "NVIDIA A100-PCIE-40GB", Partitioning.NONE),
    ],
)
def test_what_a_virtual_machine_was_given(mode: str, name: str, expected: Partitioning) -> None:
    text = (
        f'<nvidia_smi_log><gpu id="00000000:01:00.0"><product_name>{name}</product_name><gpu_virtualization_mode>'
        f"<virtualization_mode>{mode}</virtualization_mode></gpu_virtualization_mode></gpu></nvidia_smi_log>"
    )
    assert only(machine({"0000:01:00.0": "2330"}, smi("-q", "-x", text=text))).partitioning is expected


def test_a_virtual_function_of_the_hypervisor_is_one() -> None:
    base = "/sys/bus/pci/devices/0000:01:00.4"
    files = {f"{base}/class": "0x030200", f"{base}/vendor": "0x10de", f"{base}/device": "0x20b5"}
    card = only(Recorded({"files": files, "links": {f"{base}/physfn": "../0000:01:00.0"}}))
    assert card.partitioning is Partitioning.SRIOV_VF


def test_nvml_gives_the_librarys_version_behind_that_of_cuda() -> None:
    of = machine({"0000:01:00.0": "2684"}, nvml={"nvml_version": "13.580.95.05", "devices": []})
    stack = nvidia.stack(of, detect(of).accelerators)
    assert stack is not None
    assert stack.library == Known("580.95.05", "NVML library version")


def test_a_tool_that_lists_cards_has_reached_the_driver() -> None:
    of = machine({}, smi(file="table.orin.540.4.0.txt"), opens={"/dev/nvidiactl": {}}, version="")
    stack = nvidia.stack(of, detect(of).accelerators)
    assert stack is not None
    assert stack.loaded == Known(value=True, how="nvidia-smi lists cards")


def test_gpu_instances_without_a_list_are_slices_by_profile() -> None:
    # https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ (nvidia-smi mig -lgi)
    text = (
        "+-------------------------------------------------------+\n"
        "| GPU instances:                                        |\n"
        "| GPU   Name             Profile  Instance   Placement  |\n"
        "|=======================================================|\n"
        "|   0  MIG 3g.20gb          9        1          4:4     |\n"
        "|   0  MIG 3g.20gb          9        2          0:4     |\n"
    )
    listed = smi("-L", text="GPU 0: A100-SXM4-40GB (UUID: GPU-a)\n")
    card = only(machine({"0000:01:00.0": "20b0"}, listed, smi("mig", "-lgi", text=text)))
    assert [part.name for part in card.partitions] == ["3g.20gb", "3g.20gb"]
    assert isinstance(card.usable, Unknown)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        # Rows of R470 on Linux and of R560 on Windows, in the widths of their tables.
        (
            "|   0  Tesla T4            Off  | 00000000:00:1E.0 Off |                    0 |",
            ("Tesla T4", "0000:00:1e.0"),
        ),
        (
            "|   0  NVIDIA GeForce RTX 4090      WDDM  |   00000000:01:00.0  On |                  Off |",
            ("NVIDIA GeForce RTX 4090", "0000:01:00.0"),
        ),
        ("|  0    7   0   0  |     12MiB /  9856MiB | 14      0 |  1   0    0    0    0 |", None),
    ],
)
def test_the_table_of_other_releases_is_read_too(row: str, expected: tuple[str, str] | None) -> None:
    found = [(card.name, card.bus_id) for card in nvidia_smi_text.from_table(row)]
    assert found == ([expected] if expected else [])
