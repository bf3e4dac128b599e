"""A process is kept to its cards by a mask; what is granted otherwise has none."""

from pathlib import Path

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.plan.devices import choose_devices
from selfhost.plan.mask import mask_of
from selfhost.shapes.host import Host
from tests.fakes.planning import a_card, a_host, a_service

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


def mask(host: Host, device: str | None = None) -> dict[str, str]:
    return mask_of(choose_devices(host=host, service=a_service(device=device)), host=host)


def test_two_of_four_cards_are_masked_by_their_place_on_the_bus() -> None:
    host = a_host(accelerators=tuple(a_card(index) for index in range(4)))
    assert mask(host, "2,1") == {"CUDA_VISIBLE_DEVICES": "2,1"}
    assert mask(host, "0,1,2,3") == {}


def test_a_slice_and_a_card_of_another_maker_are_granted_to_a_container_and_need_none() -> None:
    for name in ("a100-mig-slice", "h100-mig-slices", "amd-mi300x-cpx", "arc-b60-pair"):
        assert mask(detect(Recorded.load(SNAPSHOTS / f"{name}.json"))) == {}


def test_a_slice_beside_a_whole_card_needs_none_either() -> None:
    cut = detect(Recorded.load(SNAPSHOTS / "a100-mig-slice.json")).accelerators[0]
    assert mask(a_host(accelerators=(cut, a_card(1))), "MIG-a1003000") == {}
    assert mask(a_host(accelerators=(cut, a_card(1)))) == {"CUDA_VISIBLE_DEVICES": "0"}
