"""Container engines that are silent, closed, or cannot hand a card in."""

from dataclasses import replace

import pytest

from selfhost.core.recorded import Recorded
from selfhost.doctor.area import Seen
from selfhost.doctor.areas.containers import containers
from selfhost.doctor.look import Look
from selfhost.hosts.detect import detect
from selfhost.shapes.fact import Known, Unknown
from selfhost.shapes.host import Nesting
from selfhost.shapes.surroundings import CdiSpec, Engine, Surroundings

DOCKER = Engine(kind="docker", version="28.3", answers=Known(value=True, how="docker info"), injects=("nodes",))
DENIED = Unknown("permission denied while trying to connect to the Docker daemon socket")


def _ids(snapshot, *, name="two-rtx", nesting=(), cdi=(), engine=None):
    machine = detect(Recorded(snapshot(name)))
    around = Surroundings(engines=(engine,) if engine else (), cdi=cdi)
    seen = Seen(host=replace(machine, surroundings=around, nesting=nesting), look=Look())
    containers(seen)
    return [one.id for one in seen.findings]


@pytest.mark.parametrize(
    ("engine", "ids"),
    [
        (replace(DOCKER, answers=Known(value=False, how="its daemon is not running")), ["HX101"]),
        (replace(DOCKER, answers=DENIED), ["HX102"]),
        (replace(DOCKER, answers=Unknown("no answer within 5 s")), []),
        (DOCKER, ["HX103"]),
        (replace(DOCKER, injects=("nvidia:cdi",)), []),
        (replace(DOCKER, remote="tcp://other:2376"), []),
        (replace(DOCKER, desktop=True), ["HX104"]),
    ],
)
def test_an_engine_on_a_machine_with_cards(engine, ids, snapshot):
    assert _ids(snapshot, engine=engine) == ids


def test_an_engine_without_a_card_has_nothing_to_hand_in(snapshot):
    assert _ids(snapshot, name="bare-no-cards", engine=DOCKER) == []


def test_an_engine_inside_a_container_is_not_asked_for_cards(snapshot):
    assert _ids(snapshot, engine=DOCKER, nesting=(Nesting(label="docker", proof="/.dockerenv"),)) == []


@pytest.mark.parametrize(("fault", "ids"), [("line 3: no mapping", ["HX105"]), ("", [])])
def test_a_specification_that_cannot_be_read(fault, ids, snapshot):
    spec = CdiSpec(file="/etc/cdi/nvidia.yaml", kind="nvidia.com/gpu", version="0.6.0", fault=fault)
    assert _ids(snapshot, cdi=(spec,)) == ids
