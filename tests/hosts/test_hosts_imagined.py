"""Machines that nobody owns: what is assumed of them is known, what is not is said."""

import pytest

from selfhost.core.errors import InputError
from selfhost.hosts.imagined import host_with
from selfhost.shapes.host import Known, Unknown
from selfhost.shapes.units import GIB


def test_cards_of_one_name_are_usable_and_empty() -> None:
    host = host_with("RTX 3090", count=2)
    assert [card.name for card in host.usable_accelerators] == ["RTX 3090", "RTX 3090"]
    assert host.accelerators[0].memory_total == Known(int(23.57 * GIB), "cards.toml")
    assert isinstance(host.accelerators[0].memory_free, Unknown)
    assert host.links == ()


def test_server_cards_are_joined() -> None:
    host = host_with("H100", count=4)
    assert len(host.links) == 6
    assert {card.link_group for card in host.accelerators} == {"imagined"}


def test_a_firmware_decides_the_memory_of_an_apu_until_somebody_says_it() -> None:
    unsaid = host_with("Strix Halo").accelerators[0].memory_total
    assert isinstance(unsaid, Unknown)
    assert "--gpu-memory" in unsaid.reason
    assert host_with("Strix Halo", memory=96 * GIB).accelerators[0].memory_total == Known(96 * GIB, "--gpu-memory")


def test_a_name_in_no_row_is_refused_with_its_neighbours() -> None:
    with pytest.raises(InputError) as refused:
        host_with("RTX 4091")
    assert any("RTX 4090" in fix for fix in refused.value.fix)
