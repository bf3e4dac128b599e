"""What a role of `prepare` mends, doctor's fix says: on every recorded machine, and for each finding by its id."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.doctor.area import Seen
from selfhost.doctor.areas.containers import containers
from selfhost.doctor.look import Look
from selfhost.hosts.detect import detect
from selfhost.shapes.fact import Known, Unknown
from selfhost.shapes.surroundings import CdiSpec, Engine, Surroundings
from selfhost.visibility.rules.host_cdi import specification_is_stale

SNAPSHOTS = sorted(path.stem for path in (Path(__file__).parent.parent / "snapshots").glob("*.json"))
DOCKER = Engine(kind="docker", version="28.3", answers=Known(value=True, how="docker info"), injects=("nodes",))
BROKEN = CdiSpec(file="/etc/cdi/nvidia.yaml", kind="nvidia.com/gpu", version="0.6.0", fault="line 3")
_BY_ROLE = {
    "nvidia_container_toolkit": r"nvidia-ctk cdi generate --output=/etc/cdi/nvidia\.yaml$|nvidia-ctk runtime configure "
    r"--runtime=docker$",
    "docker": r"usermod -aG docker|systemctl (?:enable --now|start) docker",
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_fix_by_hand_that_a_role_does_names_the_role(name, snapshot, examined):
    for one in examined(snapshot(name)).report.findings:
        text = "\n".join(one.fix)
        for role, by_hand in _BY_ROLE.items():
            if one.run_on.value == "here" and re.search(by_hand, text, re.MULTILINE):
                assert f"selfhost prepare --only {role}" in text, (one.id, text)


@pytest.mark.parametrize(
    ("engine", "specs", "id", "role"),
    [
        (replace(DOCKER, answers=Known(value=False, how="not running")), (), "HX101", "docker"),
        (replace(DOCKER, answers=Unknown("permission denied")), (), "HX102", "docker"),
        (replace(DOCKER, kind="podman", answers=Unknown("permission denied")), (), "HX102", "podman"),
        (DOCKER, (), "HX103", "nvidia_container_toolkit"),
        (replace(DOCKER, injects=("nvidia:cdi",)), (BROKEN,), "HX105", "nvidia_container_toolkit"),
    ],
)
def test_the_role_of_each_finding(engine, specs, id, role, snapshot):
    machine = detect(Recorded(snapshot("two-rtx")))
    around = Surroundings(engines=(engine,), cdi=specs)
    seen = Seen(host=replace(machine, surroundings=around, nesting=()), look=Look())
    containers(seen)
    (found,) = seen.findings
    assert found.id == id
    assert found.fix[-1].endswith(f"\nselfhost prepare --only {role}")


def test_a_stale_specification_is_written_anew_by_the_role(snapshot):
    machine = detect(Recorded(snapshot("two-rtx")))
    stale = replace(BROKEN, fault="", missing=("/usr/lib/libcuda.so.1",))
    (found,) = specification_is_stale(replace(machine, surroundings=Surroundings(cdi=(stale,))))
    assert found.fix[-1].endswith("\nselfhost prepare --only nvidia_container_toolkit")
