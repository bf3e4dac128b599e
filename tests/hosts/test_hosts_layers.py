"""What counts as a container is spelled as nesting spells it."""

from selfhost.doctor.area import CONTAINERS as OF_DOCTOR
from selfhost.hosts.layers import CONTAINERS
from selfhost.hosts.nesting import _PROBES


def test_every_container_is_a_label_that_nesting_gives() -> None:
    labels = {label for label, _ in _PROBES}
    assert set(CONTAINERS) <= labels
    assert set(OF_DOCTOR) <= labels
