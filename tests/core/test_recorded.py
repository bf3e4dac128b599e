"""A recorded machine behaves like the machine it was recorded on."""

import json
from pathlib import Path

import pytest

from selfhost.core.errors import InputError
from selfhost.core.recorded import Recorded

SNAPSHOT = {
    "schema": "selfhost.snapshot/1",
    "files": {"/proc/meminfo": "MemTotal: 4 kB\n", "/sys/devices/pci0/0000:01:00.0/vendor": "0x10de\n"},
    "links": {
        "/sys/bus/pci/devices/0000:01:00.0": "../../../devices/pci0/0000:01:00.0",
        "/sys/devices/pci0/0000:01:00.0/driver": "../../../bus/pci/drivers/nvidia",
        "/loop": "/loop",
    },
    "nodes": {
        "/dev/nvidia0": {"type": "c", "major": 195, "minor": 0, "mode": "0666", "uid": 0, "gid": 44, "open": "EPERM"},
        "/dev/null": {"type": "c", "major": 1, "minor": 3},
    },
    "commands": [
        {"argv": ["nvidia-smi", "-L"], "rc": 0, "stdout": "GPU 0: …\n", "stderr": ""},
        {"argv": ["nvidia-smi"], "timed_out": True, "stdout": "half a "},
        {"argv": ["false"], "rc": 1, "stderr": "no\n"},
    ],
    "errors": {"/sys/class/kfd/kfd/topology/nodes/2/properties": "EPERM"},
    "disks": {"/": {"total": 250e9, "free": 80e9}, "/home": {"total": 10, "free": 4}},
    "env": {"CUDA_VISIBLE_DEVICES": "1"},
    "ids": {"uid": 1000},
}


@pytest.fixture
def machine() -> Recorded:
    return Recorded(SNAPSHOT)


def test_a_file_is_read_and_what_is_not_in_the_snapshot_does_not_exist(machine: Recorded) -> None:
    assert machine.read("/proc/meminfo") == "MemTotal: 4 kB\n"
    with pytest.raises(FileNotFoundError):
        machine.read("/proc/cpuinfo")
    with pytest.raises(FileNotFoundError):
        machine.stat("/proc/cpuinfo")


def test_parent_directories_are_implied(machine: Recorded) -> None:
    assert machine.listdir("/") == ("dev", "loop", "proc", "sys")
    assert machine.stat("/sys/class/kfd").kind == "d"
    with pytest.raises(IsADirectoryError):
        machine.read("/proc")
    with pytest.raises(FileNotFoundError):
        machine.listdir("/etc")
    with pytest.raises(NotADirectoryError):
        machine.listdir("/proc/meminfo")


def test_links_are_followed_wherever_they_stand_on_the_way(machine: Recorded) -> None:
    assert machine.read("/sys/bus/pci/devices/0000:01:00.0/vendor") == "0x10de\n"
    assert machine.listdir("/sys/bus/pci/devices") == ("0000:01:00.0",)
    assert machine.listdir("/sys/bus/pci/devices/0000:01:00.0") == ("driver", "vendor")
    assert machine.readlink("/sys/bus/pci/devices/0000:01:00.0/driver") == "../../../bus/pci/drivers/nvidia"
    with pytest.raises(OSError, match="symbolic links"):
        machine.read("/loop")
    with pytest.raises(OSError, match="Invalid argument"):
        machine.readlink("/proc/meminfo")


def test_opening_says_what_the_machine_said(machine: Recorded) -> None:
    assert machine.try_open("/dev/nvidia0") == "EPERM"
    assert machine.try_open("/dev/null") == "ok"
    assert machine.try_open("/dev/kfd") == "ENOENT"
    assert machine.try_open("/sys/class/kfd/kfd/topology/nodes/2/properties") == "EPERM"
    assert machine.try_open("/dev") == "EISDIR"
    node = machine.stat("/dev/nvidia0")
    assert (node.kind, node.major, node.mode, node.gid) == ("c", 195, 0o666, 44)


def test_a_path_that_refuses_exists_and_cannot_be_read(machine: Recorded) -> None:
    path = "/sys/class/kfd/kfd/topology/nodes/2/properties"
    assert machine.listdir("/sys/class/kfd/kfd/topology/nodes/2") == ("properties",)
    assert machine.stat(path).kind == "f"
    with pytest.raises(PermissionError):
        machine.read(path)


def test_commands_answer_as_recorded_and_others_are_not_installed(machine: Recorded) -> None:
    assert machine.run(["nvidia-smi", "-L"], timeout_s=1).ok
    late = machine.run(["nvidia-smi"], timeout_s=1)
    assert (late.timed_out, late.rc, late.stdout, late.ok) == (True, 124, "half a ", False)
    assert machine.run(["false"], timeout_s=1).rc == 1
    missing = machine.run(["docker", "info"], timeout_s=1)
    assert (missing.missing, missing.rc) == (True, 127)


def test_a_disk_is_that_of_the_nearest_recorded_parent(machine: Recorded) -> None:
    assert machine.disk("/var/lib/docker") == (250_000_000_000, 80_000_000_000)
    assert machine.disk("/home/ana/.cache") == (10, 4)
    with pytest.raises(FileNotFoundError):
        Recorded({}).disk("/")


def test_an_empty_snapshot_is_an_empty_machine() -> None:
    machine = Recorded({})
    assert dict(machine.env) == {}
    assert machine.try_open("/dev/null") == "ENOENT"
    with pytest.raises(FileNotFoundError):
        machine.listdir("/")


@pytest.mark.parametrize(
    ("text", "id", "said"),
    [
        ('{"schema": "selfhost.snapshot/2"}', "CF042", "has schema selfhost.snapshot/2"),
        ('{"schema": "selfhost.host/1"}', "CF041", "not a snapshot"),
        ("[1, 2]", "CF041", "not a snapshot"),
        ('{"schema": "selfhost.snap', "CF041", "not JSON"),
        ('{"schema": "selfhost.snapshot/1", "files": {"/a": 5}}', "CF043", "damaged in 1 place"),
        ('{"schema": "selfhost.snapshot/1", "errors": {"/a": "EPREM"}, "commands": [{}]}', "CF043", "in 2 places"),
        ('{"schema": "selfhost.snapshot/1", "nodes": {"/a": {"mode": "rw"}}}', "CF043", "damaged"),
        ('{"schema": "selfhost.snapshot/1", "nodes": [], "commands": {}}', "CF043", "in 2 places"),
        ('{"schema": "selfhost.snapshot/1", "disks": {"/": {"total": 1}}}', "CF043", "damaged"),
    ],
)
def test_a_file_that_is_no_good_snapshot_is_refused_in_words(tmp_path: Path, text: str, id: str, said: str) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Recorded.load(path)
    assert caught.value.id == id
    assert said in caught.value.what
    assert caught.value.fix


def test_a_snapshot_that_is_not_there_names_the_path_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.json") as caught:
        Recorded.load(tmp_path / "nowhere.json")
    assert caught.value.id == "CF040"
    assert "selfhost detect" in caught.value.fix[0]


def test_a_good_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(SNAPSHOT), encoding="utf-8")
    assert Recorded.load(path).env["CUDA_VISIBLE_DEVICES"] == "1"
