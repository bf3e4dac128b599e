"""Cards by name: what a person types, what a tool reports, and the memory that an engine really sees."""

from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts import cards
from selfhost.hosts.detect import detect
from selfhost.shapes.host import Known
from selfhost.shapes.units import GIB
from tests.fakes.planning import a_card

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("RTX 4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("H100", "H100 SXM 80GB"),
        ("H100 PCIe", "H100 PCIe 80GB"),
        ("a100-80", "A100 SXM 80GB"),
        ("A10G", "A10 / A10G"),
        ("L4", "L4"),
        ("L40S", "L40S"),
        ("DGX Spark", "GB10 (DGX Spark)"),
        ("GB200", "GB200"),
        ("7900 xtx", "Radeon RX 7900 XTX"),
        ("Strix Halo", "Ryzen AI Max+ 395 (Strix Halo, Radeon 8060S)"),
    ],
)
def test_a_card_is_found_by_what_people_call_it(typed: str, name: str) -> None:
    found = cards.named(typed)
    assert found is not None
    assert found.name == name


def test_a_card_that_no_row_describes_is_none_and_has_neighbours() -> None:
    assert cards.named("GTX 1080") is None
    assert "RTX 5080" in cards.nearest("GTX 1080")


@pytest.mark.parametrize(
    ("snapshot", "name", "gib"),
    [
        ("rtx-usable", "RTX 4090", 23.52),  # nvidia-smi says 24564 MiB
        ("two-3090-nvml", "RTX 3090", 23.57),
        ("eight-h100", "H100 SXM 80GB", 79.19),
        ("gb10", "GB10 (DGX Spark)", 121.69),  # its tool says [N/A]
        ("amd-mi300x", "Instinct MI300X", 191.98),
        ("arc-b60-pair", "Arc Pro B60 24GB", 23.91),
    ],
)
def test_the_total_is_what_cuda_or_hip_reports_not_what_the_tool_shows(snapshot: str, name: str, gib: float) -> None:
    card = detect(Recorded.load(SNAPSHOTS / f"{snapshot}.json")).accelerators[0]
    found, total = cards.of(card), cards.seen_by_engine(card)
    assert found is not None
    assert found.name == name
    assert isinstance(total, Known)
    assert total.value / GIB == pytest.approx(gib, abs=0.01)


def test_a_laptop_card_is_not_its_desktop_namesake() -> None:
    laptop = a_card(name="NVIDIA GeForce RTX 4090 Laptop GPU", gib=15.99)
    assert cards.of(laptop) is None
    total = cards.seen_by_engine(laptop)
    assert isinstance(total, Known)
    assert total.value == int(int(15.99 * GIB) * 0.98)


def test_every_row_is_complete_and_found_by_its_own_name() -> None:
    names = [card.name for card in cards.cards()]
    assert len(names) == len(set(names)) >= 50
    for card in cards.cards():
        assert cards.named(card.name) is card, card.name
        assert card.bandwidth > 100e9, card.name
        assert not card.memory or card.memory > 7 * GIB, card.name
