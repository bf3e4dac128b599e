"""What a container was granted beside what works in it."""

from dataclasses import replace

import pytest

from selfhost.core.recorded import Recorded
from selfhost.doctor.granted import compare
from selfhost.hosts.detect import detect
from selfhost.shapes.fact import Known
from selfhost.shapes.host import DeviceNode


@pytest.fixture
def machine(snapshot):
    return detect(Recorded(snapshot("two-rtx")), wide=True)


def _inspect(env=(), **host):
    return {"Name": "/vllm", "Config": {"Env": list(env)}, "HostConfig": host}


GPUS = {"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}


@pytest.mark.parametrize(
    ("inspect", "granted"),
    [
        (_inspect(), ["no", "no"]),
        (_inspect(Privileged=True), ["privileged", "privileged"]),
        (_inspect(DeviceRequests=[GPUS]), ["--gpus", "--gpus"]),
        (_inspect(DeviceRequests=[{"Count": 1}]), ["--gpus", "no"]),
        (_inspect(DeviceRequests=[{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=1"]}]), ["no", "a CDI device"]),
        (_inspect(env=["NVIDIA_VISIBLE_DEVICES=0"], Runtime="nvidia"), ["NVIDIA_VISIBLE_DEVICES=0", "no"]),
        (_inspect(env=["NVIDIA_VISIBLE_DEVICES=void"], Runtime="nvidia"), ["no", "no"]),
        (_inspect(env=["NVIDIA_VISIBLE_DEVICES=all"], Runtime="runc"), ["no", "no"]),
        (_inspect(Devices=[{"PathOnHost": "/dev/nvidiactl"}]), ["no", "no"]),
        (_inspect(Devices=[{"PathOnHost": "/dev/nvidia1"}]), ["no", "--device"]),
    ],
)
def test_what_lets_a_card_in(inspect, granted, machine):
    rows = {row.card: row.granted for row in compare(inspect, machine, machine).rows}
    by_number = sorted(machine.accelerators, key=lambda card: card.index)
    assert [rows[str(card.index)] for card in by_number] == granted


def test_a_container_that_has_its_cards_has_no_gap(machine):
    assert compare(_inspect(DeviceRequests=[GPUS]), machine, machine).findings == ()


@pytest.mark.parametrize(
    ("path", "opened", "wanted"),
    [
        ("/dev/nvidiactl", "EPERM", "HX305"),
        ("/dev/nvidia0", "EACCES", "HX306"),
        ("/dev/nvidia-uvm", "ENOENT", "HX307"),
    ],
)
def test_a_node_that_does_not_open_inside(path, opened, wanted, machine):
    node = DeviceNode(path=path, opened=opened, mode=0o660, gid=44)
    inside = replace(machine, accelerators=tuple(replace(card, nodes=(node,)) for card in machine.accelerators))
    found = compare(_inspect(DeviceRequests=[GPUS]), machine, inside).findings
    assert {(one.id, one.run_on.value) for one in found} == {(wanted, "container host")}


def test_nodes_without_the_libraries(machine):
    dead = tuple(replace(card, usable=Known(value=False, how="no libcuda")) for card in machine.accelerators)
    found = compare(_inspect(DeviceRequests=[GPUS]), machine, replace(machine, accelerators=dead)).findings
    assert {one.id for one in found} == {"HX308"}


@pytest.mark.parametrize(("value", "ids"), [("", ["HX309"]), ("-1", ["HX309"]), ("0", [])])
def test_a_mask_inside(value, ids, machine):
    inside = replace(machine, env={"CUDA_VISIBLE_DEVICES": value})
    assert [one.id for one in compare(_inspect(DeviceRequests=[GPUS]), machine, inside).findings] == ids


@pytest.mark.parametrize("inspect", [{}, {"HostConfig": None, "Config": None}, {"HostConfig": {"Devices": None}}])
def test_an_empty_inspect_grants_nothing(inspect, machine):
    assert {row.granted for row in compare(inspect, machine, machine).rows} == {"no"}
