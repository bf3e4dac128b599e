"""Outputs and sysfs of real machines with Intel cards: what is true of each comes out, and nothing that is not."""

import json
from pathlib import Path

from selfhost.core.system import LocalSystem
from selfhost.hosts import intel_tools
from selfhost.hosts.vendors import intel
from selfhost.hosts.xpu_smi import parse_clinfo, parse_sycl
from selfhost.shapes.host import Fact, Known, Partitioning, Support, Unknown
from tests.fakes.seen import cards, only
from tests.hosts.fixture_machines import FIXTURES, machine, recorded, said, tree

PAIR = "intel/xpu-smi-discovery.list-then-device.json"


def value(fact: Fact[object]) -> object:
    return fact.value if isinstance(fact, Known) else "unknown"


def on_bus(address: str, device: str, **files: str) -> dict[str, str]:
    base = f"/sys/bus/pci/devices/{address}"
    return {
        f"{base}/class": "0x030000",
        f"{base}/vendor": "0x8086",
        f"{base}/device": device,
        **{f"{base}/{name}": text for name, text in files.items()},
    }


def test_two_cards_have_their_memory_without_any_program_of_intels() -> None:
    found = cards(tree("intel/sysfs.xe-b70x2.tree.json"))
    assert [(card.pci, value(card.memory_total), card.kernel_driver) for card in found] == [
        ("0000:03:00.0", 34_242_297_856, "xe"),
        ("0000:07:00.0", 34_242_297_856, "xe"),
    ]
    assert [value(card.arch) for card in found] == ["bmg", "bmg"]


def test_a_laptops_graphics_are_integrated_whatever_their_owner_calls_them() -> None:
    card = only(tree("intel/sysfs.igpu-panther-lake.tree.json"))
    assert (card.integrated, card.unified, card.support) == (True, True, Support.UNSUPPORTED)
    assert (card.nodes[0].path, value(card.openable)) == ("/dev/dri/by-path/pci-0000:00:02.0-render", True)


def test_xpu_smi_writes_figures_as_texts() -> None:
    card = only(machine(said("xpu-smi", "discovery", "-j", file="intel/xpu-smi-discovery.b60.json")))
    assert (card.name, card.pci, card.device_id) == ("Intel(R) Arc(TM) Pro B60 Graphics", "0000:97:00.0", "e211")
    assert (value(card.memory_total), value(card.memory_free)) == (25_669_140_480, 25_447_604_224)
    assert (card.uuid, card.tool_index) == ("85cae92f-8cb4-08a4-3c4e-595e8ce2ba0d", {"xpu-smi": 0})
    assert (card.support, value(card.arch)) == (Support.SUPPORTED, "bmg")
    assert isinstance(card.openable, Unknown)


def test_a_list_without_memory_is_completed_card_by_card() -> None:
    questions = ("discovery -j", "discovery -d 0 -j", "discovery -d 1 -j")
    found = cards(machine(*(said("xpu-smi", *words.split(), file=PAIR, key=words) for words in questions)))
    assert [(card.name, value(card.memory_total), card.tool_index) for card in found] == [
        ("Intel Arc Pro B-series (Battlemage)", 34_242_297_856, {"xpu-smi": 0}),
        ("Intel(R) Arc(TM) B580 Graphics", 12_809_404_416, {"xpu-smi": 1}),
    ]


def test_on_a_machine_each_card_of_a_short_list_is_asked_about(tmp_path: Path) -> None:
    pair = json.loads((FIXTURES / PAIR).read_text())
    program = tmp_path / "xpu-smi"
    program.write_text(
        "#!/bin/sh\n"
        f"case \"$*\" in 'discovery -j') echo '{json.dumps(pair['discovery -j'])}';;\n"
        f"'discovery -d 1 -j') echo '{json.dumps(pair['discovery -d 1 -j'])}';; *) exit 1;; esac\n"
    )
    program.chmod(0o755)
    found = intel_tools.ask(LocalSystem(env={"PATH": str(tmp_path)})).cards
    assert [(card.index, card.total) for card in found] == [(0, None), (1, 12_809_404_416)]


def test_level_zero_that_does_not_start_is_the_drivers_failure_and_the_card_is_not_usable() -> None:
    of = machine(
        recorded("intel/xpu-smi-fail.level-zero.json"),
        files={**on_bus("0000:03:00.0", "0xe20b"), "/sys/bus/pci/devices/0000:03:00.0/drm/renderD128/dev": ""},
        links={"/sys/bus/pci/devices/0000:03:00.0/driver": "../../drivers/xe"},
        nodes={"/dev/dri/renderD128": {}},
    )
    card = only(of)
    found = intel.stack(of, (card,))
    assert found is not None
    assert found.failure.startswith("Level Zero does not start: no permission on the render node")
    assert (value(card.openable), value(card.usable)) == (True, False)


def test_sycl_ls_lists_a_gpu_once_and_a_processor_never() -> None:
    of = machine(said("sycl-ls", file="intel/sycl-ls.b390.new.txt"))
    card = only(of)
    assert (card.name, card.tool_index) == ("Intel(R) Arc(TM) B390 GPU", {"level-zero": 0})
    assert cards(machine(said("sycl-ls", file="intel/sycl-ls.cpu-only.txt"))) == ()


def test_the_old_form_of_sycl_ls_is_read_too() -> None:
    text = (
        "[opencl:cpu:0] Intel(R) OpenCL, Intel(R) Xeon(R) OpenCL 3.0 [2024.17.3]\n"
        "[opencl:gpu:1] Intel(R) OpenCL Graphics, Intel(R) Arc(TM) A770 Graphics OpenCL 3.0 NEO  [23.43.27642.40]\n"
        "[ext_oneapi_level_zero:gpu:0] Intel(R) Level-Zero, Intel(R) Arc(TM) A770 Graphics 1.3 [1.3.27642]\n"
    )
    (reading,) = parse_sycl(text)
    assert (reading.name, reading.level_zero) == ("Intel(R) Arc(TM) A770 Graphics", 0)


def test_clinfo_gives_intels_gpus_alone() -> None:
    text = (
        "  Device Name                                     Intel(R) Arc(TM) A770 Graphics\n"
        "  Device Vendor                                   Intel(R) Corporation\n"
        "  Device Type                                     GPU\n"
        "  Global memory size                              16225243136 (15.11GiB)\n"
        "  Device Name                                     Intel(R) Core(TM) i7\n"
        "  Device Type                                     CPU\n"
    )
    (reading,) = parse_clinfo(text)
    assert (reading.name, reading.total) == ("Intel(R) Arc(TM) A770 Graphics", 16_225_243_136)


def test_a_card_of_two_tiles_is_one_card_with_the_memory_of_both() -> None:
    files = on_bus("0000:3a:00.0", "0x0bd5")
    base = "/sys/bus/pci/devices/0000:3a:00.0"
    files |= {f"{base}/tile{n}/physical_vram_size_bytes": "68719476736" for n in (0, 1)}
    card = only(machine(files=files))
    assert (card.partitioning, card.partition_mode) == (Partitioning.TILE, "2 tiles")
    assert value(card.memory_total) == 137_438_953_472


def test_a_function_with_guests_and_its_virtual_functions_are_told_apart() -> None:
    files = on_bus("0000:03:00.0", "0x56c0", sriov_numvfs="2\n") | on_bus("0000:03:00.1", "0x56c0")
    of = machine(files=files, links={"/sys/bus/pci/devices/0000:03:00.1/physfn": "../0000:03:00.0"})
    physical, virtual = cards(of)
    assert (physical.partitioning, physical.partition_mode) == (Partitioning.NONE, "2 virtual functions")
    assert virtual.partitioning is Partitioning.SRIOV_VF


def test_a_card_set_aside_for_a_guest_is_not_broken() -> None:
    of = machine(
        files=on_bus("0000:03:00.0", "0xe20b"),
        links={"/sys/bus/pci/devices/0000:03:00.0/driver": "../../drivers/vfio-pci"},
    )
    assert only(of).usable == Known(value=False, how="set aside for a virtual machine (vfio-pci)")


def test_the_module_of_the_kernel_is_said_with_the_kernels_release() -> None:
    of = tree("intel/sysfs.xe-b70x2.tree.json")
    found = intel.stack(of, cards(of))
    assert found is not None
    assert (value(found.module), found.flavour, value(found.loaded)) == ("in-tree (xe)", "in-tree", True)
