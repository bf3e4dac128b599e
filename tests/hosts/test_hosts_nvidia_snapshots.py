"""Recorded machines with NVIDIA cards, put together from outputs in tests/cases/host-fixtures/nvidia and reports."""

from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.hosts.vendors import nvidia
from selfhost.shapes.host import Known

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


@pytest.mark.parametrize(
    ("name", "cards", "usable", "slices", "links", "cuda"),
    [
        ("a10-t4-mixed", 4, 4, 0, (), "12.8"),
        ("h100-mig-slices", 1, 1, 4, (), "13.1"),
        ("a100-mig-empty", 1, 0, 0, (), "12.2"),
        ("eight-h100", 8, 8, 0, ("NV18",) * 28, "13.0"),
        ("two-5090", 2, 2, 0, ("PHB",), "13.0"),
        ("vgpu-unlicensed", 1, 1, 0, (), "12.2"),
        ("vgpu-host", 1, 0, 0, (), None),
        ("wsl2-two-rtx", 2, 2, 0, (), "12.4"),
        ("rtx-off-the-bus", 2, 1, 0, (), "13.0"),
        ("gh200", 1, 1, 0, (), "13.0"),
        ("two-3090-nvml", 2, 2, 0, ("NV4",), "13.0"),
    ],
)
def test_each_machine_is_what_it_is_named_for(
    name: str, cards: int, usable: int, slices: int, links: tuple[str, ...], cuda: str | None
) -> None:
    machine = Recorded.load(SNAPSHOTS / f"{name}.json")
    found = detect(machine).accelerators
    stack = nvidia.stack(machine, found)
    assert stack is not None
    assert len(found) == cards
    assert sum(isinstance(card.usable, Known) and card.usable.value for card in found) == usable
    assert sum(len(card.partitions) for card in found) == slices
    assert tuple(link.kind for link in nvidia.topology(machine, found)) == links
    assert (stack.cuda.value if isinstance(stack.cuda, Known) else None) == cuda
    assert not any(card.unified for card in found)


def test_the_memory_of_a_gh200_is_that_of_the_card_and_not_of_the_machine() -> None:
    # 97871 MiB of HBM, ATS: https://docs.nvidia.com/grace-perf-tuning-guide/
    (card,) = detect(Recorded.load(SNAPSHOTS / "gh200.json")).accelerators
    assert card.memory_total == Known(97871 * 2**20, "nvidia-smi")
