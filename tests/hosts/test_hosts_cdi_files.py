"""CDI files and the lists of the toolkit (tests/cases/host-fixtures/cdi), toolkits, cluster, and their JSON."""

import json
from pathlib import Path
from typing import Any

from selfhost.core.recorded import Recorded
from selfhost.hosts import cluster
from selfhost.hosts.detect import detect
from selfhost.hosts.to_json import to_json
from selfhost.shapes.fact import Known
from selfhost.shapes.surroundings import Surroundings

FIXTURES = Path(__file__).parent.parent / "cases" / "host-fixtures"


def around(**snapshot: Any) -> Surroundings:
    seen = detect(Recorded({"schema": "selfhost.snapshot/1", **snapshot}), wide=True).surroundings
    assert seen is not None
    return seen


def text(name: str) -> str:
    return (FIXTURES / name).read_text("utf-8")


def test_a_specification_gives_driver_devices_and_their_nodes() -> None:
    (spec,) = around(files={"/etc/cdi/nvidia.yaml": text("cdi/nvidia.0.5.0.yaml")}).cdi
    assert (spec.kind, spec.version, spec.driver, spec.fault) == ("nvidia.com/gpu", "0.5.0", "575.57.08", "")
    assert [device.name for device in spec.devices] == ["nvidia.com/gpu=0", "nvidia.com/gpu=all"]
    assert {"/dev/nvidia-uvm", "/dev/nvidia0"} <= set(spec.devices[0].nodes)


def test_frozen_numbers_of_amd_are_compared_with_the_nodes_here() -> None:
    kfd = {"type": "c", "major": 510, "minor": 0}
    (spec,) = around(files={"/etc/cdi/amd.json": text("cdi/amd.json")}, nodes={"/dev/kfd": kfd}).cdi
    assert spec.stale == ("/dev/kfd is 510:0 here, 511:0 in the file",)


def test_one_file_under_two_names_of_a_folder_is_one() -> None:
    held = text("cdi/nvidia.0.5.0.yaml")
    assert len(around(files={"/run/cdi/n.yaml": held, "/var/run/cdi/n.yaml": held}).cdi) == 1


def test_a_damaged_file_says_why() -> None:
    specs = around(files={"/etc/cdi/a.json": "{", "/etc/cdi/b.yaml": "a: [", "/etc/cdi/c.yaml": "kind: x\n"}).cdi
    assert [bool(spec.fault) for spec in specs] == [True, True, True]


def test_info_lines_of_the_list_are_no_devices() -> None:
    listed = {"argv": ["nvidia-ctk", "cdi", "list"], "rc": 0, "stdout": text("cdi/nvidia-ctk-cdi-list.old.txt")}
    (spec,) = around(commands=[listed]).cdi
    assert [device.name for device in spec.devices] == ["nvidia.com/gpu=0", "nvidia.com/gpu=all"]


def test_a_toolkit_is_read_from_its_version_and_configuration() -> None:
    config = (
        "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n[nvidia-container-cli]\nno-cgroups = true\n"
    )
    asked = {
        "argv": ["nvidia-container-cli", "--version"],
        "rc": 0,
        "stdout": "cli-version: 1.17.8\nlib-version: 1.17.8\n",
    }
    (kit,) = around(files={"/etc/nvidia-container-runtime/config.toml": config}, commands=[asked]).toolkits
    assert kit.version == Known("1.17.8", "nvidia-container-cli --version")
    assert (kit.no_cgroups, kit.accepts_env_unprivileged, kit.mode) == (True, False, "")


def test_quantities_of_a_node_are_text() -> None:
    node = json.loads(text("k8s/node.mi300x-8.json"))
    assert cluster.devices(node) == {"amd.com/gpu": 8}
    assert cluster.devices(json.loads(text("k8s/node.mi300x-cpx-mixed.json"))) == {
        "amd.com/spx_nps1": 5,
        "amd.com/cpx_nps1": 24,
    }
    assert cluster.devices(json.loads(text("k8s/node.intel-xe.json"))) == {"gpu.intel.com/xe": 1}


def test_a_shared_card_is_known_without_the_suffix() -> None:
    labels = {"nvidia.com/gpu.count": "4", "nvidia.com/gpu.product": "Tesla-T4"}
    node = {
        "metadata": {"labels": labels},
        "status": {"allocatable": {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "16"}},
    }
    assert cluster.replicas(node) == 4
    assert cluster.replicas({"metadata": {"labels": json.loads(text("k8s/node.h100-mig-mixed.labels.json"))}}) == 1


def test_json_holds_every_part_and_is_null_without_a_wide_look() -> None:
    snapshot = {"schema": "selfhost.snapshot/1", "docker": {"info": json.loads(text("engines/docker-info.snap.json"))}}
    wide = to_json(detect(Recorded(snapshot), wide=True))
    parts = ("drivers", "engines", "cdi", "toolkits", "limits", "kernel", "cluster")
    assert all(wide[part] is not None for part in parts)
    assert json.loads(json.dumps(wide)) == wide
    narrow = to_json(detect(Recorded(snapshot)))
    assert all(narrow[part] is None for part in parts)
