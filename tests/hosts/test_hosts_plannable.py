"""What a plan may be made for: every card that computes, also one on which this version starts nothing."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.hosts.plannable import plannable
from selfhost.shapes.host import Host, Known, Link, Partition, Partitioning
from tests.fakes.planning import GIB, a_card, a_host

Load = Callable[[str], Host]


@pytest.mark.parametrize(
    ("name", "backend", "arch", "gib"),
    [
        # Sizes as nvidia-smi, amdgpu's mem_info_vram_total and xe's physical_vram_size_bytes give them.
        ("rtx3060", "cuda", "sm_86", 12.0),
        ("rtx4090", "cuda", "sm_89", 24564 / 1024),
        ("rtx5090", "cuda", "sm_120", 32607 / 1024),
        ("two-3090-nvml", "cuda", "sm_86", 24.0),
        ("a100-mig-slice", "cuda", "sm_80", 40192 / 1024),
        ("l40s", "cuda", "sm_89", 46068 / 1024),
        ("h100", "cuda", "sm_90", 81559 / 1024),
        ("gb10", "cuda", "sm_121", None),
        ("dgx-spark", "cuda", "sm_121", None),
        ("amd-mi300x", "rocm", "gfx942", 191.984375),
        ("rx7900xtx", "rocm", "gfx1100", 23.984375),
        ("strix-halo", "rocm", "gfx1151", 114.0),
        ("arc-b580", "xpu", "bmg", 11.9297),
    ],
)
def test_each_machine_has_one_card_to_begin_with(
    host: Load, name: str, backend: str, arch: str, gib: float | None
) -> None:
    placed = plannable(host(name), None).placement
    (card,) = placed.accelerators
    assert placed.backend == backend
    assert isinstance(card.arch, Known)
    assert card.arch.value == arch
    size = card.memory_total.value / GIB if isinstance(card.memory_total, Known) else None
    assert size == (None if gib is None else pytest.approx(gib, abs=0.001))


@pytest.mark.parametrize("name", ["rtx3060", "rtx4090", "rtx5090", "l40s", "h100", "a100-mig-slice"])
def test_each_nvidia_card_stands_behind_a_driver_that_the_engine_takes(host: Load, name: str) -> None:
    driver = host(name).driver
    assert isinstance(driver, Known)
    assert int(driver.value.partition(".")[0]) >= 580


def test_a_machine_without_a_card_is_planned_on_its_processor(host: Load) -> None:
    found = plannable(host("bare-no-cards"), None)
    assert (found.placement.backend, found.candidates) == ("cpu", ())


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("rtx4090", [1]),
        ("two-3090-nvml", [1, 2]),
        ("eight-h100", [1, 2, 4, 8]),
        ("two-rtx", [1]),  # a 3060 and a 4090 are not equal
        ("a10-t4-mixed", [1, 2]),  # two A10, two T4
        ("h100-mig-slices", [1]),  # no link joins slices
        ("arc-b60-pair", [1, 2]),
        ("amd-mi300x-cpx", [1, 2, 4]),
    ],
)
def test_equal_cards_may_be_taken_together_one_first(host: Load, name: str, sizes: list[int]) -> None:
    assert [len(group) for group in plannable(host(name), None).candidates] == sizes


def test_of_four_cards_the_pair_with_a_link_is_taken_before_the_pair_with_more_room() -> None:
    cards = tuple(a_card(index, free_gib=room) for index, room in enumerate((23, 20, 22, 10)))
    machine = a_host(accelerators=cards, links=(Link(a=0, b=3, kind="NV4"), Link(a=0, b=1, kind="PHB")))
    pair = plannable(machine, None).candidates[1]
    assert [card.index for card in pair] == [0, 3]
    without = plannable(a_host(accelerators=cards), None).candidates[1]
    assert [card.index for card in without] == [0, 2]


def test_the_largest_slice_comes_first_and_any_is_named_by_its_uuid(host: Load) -> None:
    machine = host("h100-mig-slices")
    assert plannable(machine, None).placement.device_name == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert plannable(machine, "0").placement.device == "MIG-025e6de3-5909-1af0-2d07-ba92fc076426"
    named = plannable(machine, "MIG-bdc30fc5-21e6-a3d9-22a9-4eae4faf4bf3").placement
    assert named.accelerators[0].memory_total == Known(9984 * 2**20, "nvidia-smi")


def test_equal_slices_are_never_taken_together() -> None:
    halves = tuple(
        Partition(
            name="3g.40gb", uuid=f"MIG-1b1c2d3e-0000-5000-8000-00000000000{number}", memory=Known(40 * GIB, "nvml")
        )
        for number in (1, 2)
    )
    cut = replace(a_card(arch="sm_90"), partitioning=Partitioning.MIG, partitions=halves)
    assert [len(group) for group in plannable(a_host(accelerators=(cut,)), None).candidates] == [1]
    beside = plannable(a_host(accelerators=(cut, a_card(1))), None)
    assert beside.placement.accelerators[0].partitioning is Partitioning.NONE  # a whole card comes first


def test_a_list_of_cards_is_taken_as_it_is_given(host: Load) -> None:
    found = plannable(host("eight-h100"), "1,0")
    assert [card.index for card in found.placement.accelerators] == [1, 0]
    assert found.placement.device_name == "2 × NVIDIA H100 80GB HBM3"
    assert [len(group) for group in found.candidates] == [2]


@pytest.mark.parametrize(
    ("name", "asked", "id", "says"),
    [
        ("eight-h100", "0,0", "CF036", "twice"),
        ("rtx-usable", "0,1", "CF036", "different builds"),
        ("h100-mig-slices", "MIG-97808000,MIG-bdc30fc5", "CF036", "whose slices reach no other device"),
        ("eight-h100", "0,9", "CF030", "9 of --device 0,9 is none of the devices"),
    ],
)
def test_cards_that_cannot_compute_together_are_refused(host: Load, name: str, asked: str, id: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        plannable(host(name), asked)
    assert caught.value.id == id
    assert says in caught.value.what


def test_more_cards_than_there_are_equal_ones_are_refused(host: Load) -> None:
    assert len(plannable(host("two-3090-nvml"), None, count=2).placement.accelerators) == 2
    with pytest.raises(InputError) as caught:
        plannable(host("two-rtx"), None, count=2)
    assert caught.value.id == "CF037"


@pytest.mark.parametrize(
    ("name", "id"),
    [("rtx-eperm", "HX202"), ("rtx-mismatch", "HX005"), ("a100-mig-empty", "HX005"), ("amd-not-permitted", "HX201")],
)
def test_a_card_that_cannot_be_used_stops_a_plan_too(host: Load, name: str, id: str) -> None:
    for asked in (None, "0"):
        with pytest.raises(EnvironmentMissing) as caught:
            plannable(host(name), asked)
        assert caught.value.id == id


def test_a_card_without_engine_code_is_sent_to_llama_cpp_when_asked_for(host: Load) -> None:
    assert plannable(host("pascal-only"), None).placement.backend == "cpu"
    with pytest.raises(EnvironmentMissing) as caught:
        plannable(host("pascal-only"), "0")
    assert caught.value.id == "HX007"
    assert "llama.cpp" in caught.value.fix[-1]


def test_a_card_behind_an_old_driver_is_planned_for_an_older_engine(host: Load) -> None:
    assert plannable(host("rtx-old-driver"), None).placement.backend == "cuda"
