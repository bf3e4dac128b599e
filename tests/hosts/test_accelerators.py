"""Three facts about each card: on the bus, openable, usable; and whether an engine has code for it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.core.system import Completed
from selfhost.core.table import read_table
from selfhost.hosts.detect import detect
from selfhost.hosts.engine_support import support
from selfhost.hosts.pci_table import lookup, tegra_arch
from selfhost.hosts.to_json import to_json
from selfhost.hosts.vendors.amd import gfx_name
from selfhost.shapes.host import Accelerator, Host, Known, Support, Unknown, Vendor

Load = Callable[[str], Host]
GIB = 2**30
PCI_A10 = {"class": "0x030200", "vendor": "0x10de", "device": "0x2236"}
QUERY_FIELDS = (
    "--query-gpu=index,name,uuid,pci.bus_id,memory.total,memory.free,compute_cap,driver_version,mig.mode.current"
)


def only(host: Host) -> Accelerator:
    (card,) = host.accelerators
    return card


def truth(card: Accelerator) -> tuple[object, object, object]:
    facts = (card.present, card.openable, card.usable)
    first, second, third = (fact.value if isinstance(fact, Known) else "unknown" for fact in facts)
    return first, second, third


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rtx-docker-not-granted", (True, False, False)),
        ("rtx-no-driver", (True, False, False)),
        ("rtx-no-uvm", (True, False, False)),
        ("rtx-eperm", (True, False, False)),
        ("rtx-hung-smi", (True, True, "unknown")),
        ("rtx-mismatch", (True, True, "unknown")),
        ("rtx-old-driver", (True, True, True)),
        ("pascal-only", (True, True, True)),
        ("gb10", (True, True, True)),
        ("wsl2-rtx", (True, True, True)),
        ("lxc", (True, False, False)),
        ("h100-mig", (True, True, "unknown")),
        ("amd-usable", (True, True, True)),
        ("amd-not-permitted", (True, False, False)),
        ("amd-docker-not-granted", (True, False, False)),
        ("strix-halo", (True, True, True)),
        ("igpu-only", (True, True, True)),
    ],
)
def test_present_openable_and_usable_are_three_facts(host: Load, name: str, expected: tuple[object, ...]) -> None:
    assert truth(only(host(name))) == expected


def test_a_card_that_works_has_name_memory_and_driver_from_nvidia_smi(host: Load) -> None:
    found = host("rtx-usable")
    card = found.accelerators[0]
    assert (card.name, card.pci, card.arch) == (
        "NVIDIA GeForce RTX 4090",
        "0000:01:00.0",
        Known("sm_89", "nvidia-smi compute_cap"),
    )
    assert card.uuid == "GPU-025e6de3-5909-1af0-2d07-ba92fc076426"
    assert card.memory_total == Known(24564 * 2**20, "nvidia-smi")
    assert card.memory_free == Known(24081 * 2**20, "nvidia-smi")
    assert found.driver == Known("580.95.05", "/proc/driver/nvidia/version")
    assert [other.name for other in found.usable_accelerators] == ["NVIDIA GeForce RTX 4090"]


def test_a_missing_uvm_node_is_named_because_nvidia_smi_works_without_it(host: Load) -> None:
    assert only(host("rtx-no-uvm")).openable == Known(value=False, how="/dev/nvidia-uvm: ENOENT")


def test_a_hung_nvidia_smi_is_unknown_with_its_reason(host: Load) -> None:
    assert only(host("rtx-hung-smi")).usable == Unknown("nvidia-smi gave no answer within 5 s")


def test_the_one_granted_of_eight_cards_comes_first_and_keeps_its_minor(host: Load) -> None:
    cards = host("h100-one-of-eight").accelerators
    assert len(cards) == 8
    assert cards[0].pci == "0000:ba:00.0"
    assert cards[0].nodes[0].path == "/dev/nvidia6"
    assert [truth(card) for card in cards[1:]] == [(True, False, False)] * 7


def test_an_old_driver_without_minors_is_believed_when_it_lists_the_card_under_another_node() -> None:
    base = "/sys/bus/pci/devices/0000:0c:00.0"
    machine = Recorded(
        {
            "files": {f"{base}/class": "0x030000", f"{base}/vendor": "0x10de", f"{base}/device": "0x1e81"},
            "nodes": {"/dev/nvidia3": {"type": "c"}, "/dev/nvidiactl": {}, "/dev/nvidia-uvm": {}},
            "commands": [
                {
                    "argv": [
                        "nvidia-smi",
                        QUERY_FIELDS,
                        "--format=csv,noheader,nounits",
                    ],
                    "rc": 0,
                    # linux-x86_64 capture of an RTX 2080 SUPER, driver 610.57.04
                    "stdout": "0, NVIDIA GeForce RTX 2080 SUPER, GPU-1, 00000000:0C:00.0, 8192, 7582, 7.5, 610.57.04, "
                    "[N/A]\n",
                }
            ],
        }
    )
    card = only(detect(machine))
    assert (card.nodes[0].path, truth(card)) == ("/dev/nvidia3", (True, True, True))
    assert (card.arch, card.support) == (Known("sm_75", "nvidia-smi compute_cap"), Support.SUPPORTED)


def test_xml_is_read_where_the_csv_query_has_no_answer(host: Load) -> None:
    card = only(host("rtx3080-xml"))
    assert card.memory_total == Known(10240 * 2**20, "nvidia-smi")  # 10240 MiB in the capture
    assert card.arch == Known("sm_86", "table of device ids")
    assert card.uuid.startswith("GPU-")


def test_a_machine_that_was_recorded_with_the_short_list_alone_still_has_its_cards() -> None:
    first, second = "/sys/bus/pci/devices/0000:01:00.0", "/sys/bus/pci/devices/0000:02:00.0"
    files = {f"{base}/{name}": text for base in (first, second) for name, text in PCI_A10.items()}
    nodes = {path: {"type": "c"} for path in ("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm")}
    listed = "GPU 0: NVIDIA A10 (UUID: GPU-aa)\nGPU 1: NVIDIA A10 (UUID: GPU-bb)\n"
    command = {"argv": ["nvidia-smi", "-L"], "rc": 0, "stdout": listed}
    cards = detect(Recorded({"files": files, "nodes": nodes, "commands": [command]})).accelerators
    assert [(card.pci, card.uuid, truth(card)) for card in cards] == [
        ("0000:01:00.0", "GPU-aa", (True, True, True)),
        ("0000:02:00.0", "GPU-bb", (True, True, True)),
    ]
    assert not cards[0].unified


def test_a_failure_of_the_plain_command_is_the_reason() -> None:
    base = "/sys/bus/pci/devices/0000:01:00.0"
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    machine = Recorded(
        {
            "files": {f"{base}/{name}": text for name, text in PCI_A10.items()},
            "nodes": {path: {"type": "c"} for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")},
            "commands": [{"argv": ["nvidia-smi"], "rc": 9, "stdout": said}],
        }
    )
    assert only(detect(machine)).usable == Unknown(f"nvidia-smi ended with 9: {said}")


def test_a_card_in_the_machines_own_memory_has_no_figure_of_its_own(host: Load) -> None:
    for name in ("gb10", "jetson-thor"):
        card = only(host(name))
        assert card.unified
        assert card.memory_total == Unknown("nvidia-smi answers [N/A]: it shares the machine's memory")
        assert card.support is Support.SUPPORTED


def test_under_mig_the_memory_of_the_whole_card_is_not_claimed(host: Load) -> None:
    assert isinstance(only(host("h100-mig")).memory_total, Unknown)


def test_a_wsl2_card_has_no_pci_function_and_its_driver_is_that_of_windows(host: Load) -> None:
    found = host("wsl2-rtx")
    assert found.pci == ()
    assert found.driver == Known("591.86", "nvidia-smi driver_version")
    assert only(found).nodes[0].path == "/dev/dxg"


def test_an_empty_file_where_a_node_should_be_does_not_count_as_open(host: Load) -> None:
    opened = {node.path: node.opened for node in only(host("lxc")).nodes}
    assert opened == {"/dev/nvidia0": "ok", "/dev/nvidiactl": "ENOENT", "/dev/nvidia-uvm": "ENODEV"}


def test_amd_memory_and_target_come_from_the_kernel_alone(host: Load) -> None:
    card = only(host("amd-usable"))
    assert card.arch == Known("gfx1100", "gfx_target_version of the KFD topology")
    assert isinstance(card.memory_total, Known)
    assert isinstance(card.memory_free, Known)
    assert (card.memory_total.value, card.memory_free.value) == (24 * GIB, 23 * GIB)


def test_an_apu_computes_in_its_carve_out_and_in_the_memory_behind_it(host: Load) -> None:
    card = only(host("strix-halo"))
    assert isinstance(card.memory_total, Known)
    assert card.memory_total.value == 2_147_483_648 + 120_259_084_288
    assert (card.arch, card.unified) == (Known("gfx1151", "gfx_target_version of the KFD topology"), True)


def test_a_masked_kfd_node_is_a_card_that_is_present_and_not_granted(host: Load) -> None:
    granted, masked = host("amd-masked").accelerators
    assert truth(granted) == (True, True, True)
    assert truth(masked) == (True, False, False)


@pytest.mark.parametrize(
    ("target", "name"),
    # ROCm's own names: MI210, MI300X, MI350X, RX 7900, Strix Halo, RX 9070.
    [
        (90010, "gfx90a"),
        (90402, "gfx942"),
        (90500, "gfx950"),
        (110000, "gfx1100"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
    ],
)
def test_a_gfx_target_version_is_written_as_rocm_writes_it(target: int, name: str) -> None:
    assert gfx_name(target) == name


def test_two_battlemage_cards_have_their_memory_and_their_own_nodes(host: Load) -> None:
    first, second = host("arc-b70-pair").accelerators
    assert first.memory_total == Known(34_242_297_856, "physical_vram_size_bytes of every tile")
    assert (truth(first), truth(second)) == ((True, True, True), (True, False, False))
    assert second.openable == Known(value=False, how="/dev/dri/renderD129: EACCES")
    assert first.support is Support.SUPPORTED


def test_a_bmc_is_no_accelerator_and_an_npu_is_named_as_unsupported(host: Load) -> None:
    assert host("bmc-only").accelerators == ()
    npu, grayskull = host("npu-and-tenstorrent").accelerators
    assert (npu.vendor, npu.support) == (Vendor.OTHER, Support.UNSUPPORTED)
    assert npu.name == "Intel NPU accelerator 8086:7d1d"
    assert grayskull.name == "Tenstorrent accelerator 1e52:401e"
    assert grayskull.support_reason == "not supported by a current engine"


@pytest.mark.parametrize(
    ("vendor", "device", "arch"),
    # Names in pci.ids: GTX 1080 Ti, Tesla P100, V100, T4, A100, RTX A6000, L4, RTX 4090, H100, B200, RTX 5090,
    # RTX 5070, GB10, GTX 1660 Ti; RX 480, Vega 64, MI210, MI300X, RX 7900 XTX, RX 9070, Raphael; Arc A770, B580,
    # Flex 170, Max 1100.
    [
        ("10de", "1b06", "sm_61"),
        ("10de", "15f8", "sm_60"),
        ("10de", "1db4", "sm_70"),
        ("10de", "1eb8", "sm_75"),
        ("10de", "20b0", "sm_80"),
        ("10de", "2230", "sm_86"),
        ("10de", "27b8", "sm_89"),
        ("10de", "2684", "sm_89"),
        ("10de", "2330", "sm_90"),
        ("10de", "2901", "sm_100"),
        ("10de", "2b85", "sm_120"),
        ("10de", "2f04", "sm_120"),
        ("10de", "2e12", "sm_121"),
        ("10de", "2182", "sm_75"),
        ("1002", "67df", "gfx803"),
        ("1002", "687f", "gfx900"),
        ("1002", "740f", "gfx90a"),
        ("1002", "74a1", "gfx942"),
        ("1002", "744c", "gfx1100"),
        ("1002", "7550", "gfx1201"),
        ("1002", "164e", "gfx1036"),
        ("8086", "56a0", "acm"),
        ("8086", "e20b", "bmg"),
        ("8086", "56c0", "acm"),
        ("8086", "0bda", "pvc"),
    ],
)
def test_a_device_id_gives_the_architecture(vendor: str, device: str, arch: str) -> None:
    row = lookup(vendor, device)
    assert row is not None
    assert row.arch == arch


@pytest.mark.parametrize(
    ("vendor", "arch", "machine", "expected"),
    # Code in the vLLM 0.33.0 wheels: x86_64 sm_75 80 86 89 90 100 120; aarch64 sm_80 87 89 90 100 110 120.
    [
        ("nvidia", "sm_61", "x86_64", Support.UNSUPPORTED),
        ("nvidia", "sm_70", "x86_64", Support.UNSUPPORTED),
        ("nvidia", "sm_75", "x86_64", Support.SUPPORTED),
        ("nvidia", "sm_103", "x86_64", Support.SUPPORTED),
        ("nvidia", "sm_121", "aarch64", Support.SUPPORTED),
        ("nvidia", "sm_110", "aarch64", Support.SUPPORTED),
        ("nvidia", "sm_75", "aarch64", Support.UNSUPPORTED),
        ("nvidia", "sm_86", "aarch64", Support.SUPPORTED),
        ("amd", "gfx942", "x86_64", Support.SUPPORTED),
        ("amd", "gfx1102", "x86_64", Support.UNSUPPORTED),
        ("amd", "gfx1036", "x86_64", Support.UNSUPPORTED),
        ("intel", "dg1", "x86_64", Support.UNSUPPORTED),
    ],
)
def test_support_follows_from_the_code_in_the_wheels(vendor: str, arch: str, machine: str, expected: Support) -> None:
    assert support(vendor, Known(arch, "test"), architecture=machine)[0] is expected


def test_an_id_in_no_table_is_unknown_and_not_unsupported() -> None:
    assert lookup("10de", "3fff") is None
    assert lookup("10de", "") is None
    assert lookup("10de", "garbage") is None
    assert support("nvidia", Unknown("no row"))[0] is Support.UNKNOWN


def test_no_program_is_started_on_a_machine_without_anything_of_nvidia() -> None:
    class Watched(Recorded):
        asked: tuple[tuple[str, ...], ...] = ()

        def run(
            self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, stdin: str = ""
        ) -> Completed:
            self.asked += (tuple(argv),)
            return super().run(argv, timeout_s=timeout_s, env=env, stdin=stdin)

    here = Path(__file__).parent.parent / "snapshots"
    for name in ("bare-no-cards", "amd-usable", "igpu-only", "bmc-only"):
        machine = Watched.load(here / f"{name}.json")
        assert isinstance(machine, Watched)
        detect(machine)
        assert machine.asked == ()


def test_the_json_form_has_facts_with_their_source_and_reasons_for_what_is_unknown(host: Load) -> None:
    tree = to_json(host("rtx-hung-smi"))
    assert tree["schema"] == "selfhost.host/1"
    (card,) = tree["accelerators"]  # type: ignore[misc]
    assert card["present"] == {"value": True, "how": "PCI function 0000:01:00.0"}
    assert card["usable"] == {"unknown": "nvidia-smi gave no answer within 5 s"}
    machine = tree["machine"]
    assert isinstance(machine, dict)
    assert machine["memory_bytes"] == {"value": 67_108_864_000, "how": "/proc/meminfo MemTotal"}


def test_an_empty_machine_is_detected_without_an_error() -> None:
    found = detect(Recorded({}))
    assert (found.accelerators, found.disks, found.os) == ((), (), "unknown")


def test_the_chip_of_a_jetson_says_its_architecture() -> None:
    # Compute capabilities of Thor, Orin, Xavier and TX2: https://developer.nvidia.com/cuda-gpus
    chips = ("tegra264", "tegra234", "tegra194", "tegra186", "tegra210")
    assert [tegra_arch(chip) for chip in chips] == ["sm_110", "sm_87", "sm_72", "sm_62", ""]


def test_every_table_of_cards_has_its_source() -> None:
    tables = read_table("selfhost.hosts.vendors", "pci_ids.toml")
    flat = [*(tables[name] for name in tables if name != "compiled"), *tables["compiled"].values()]
    assert all("https://" in table["source"] for table in flat)
