"""NVML in a process of its own: the real bindings, over a library that is built here, broken, or does not answer."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.recorded import Recorded
from selfhost.core.system import LocalSystem
from selfhost.hosts.detect import detect
from selfhost.hosts.nvml_answer import answer_of
from selfhost.hosts.vendors import nvidia
from selfhost.shapes.host import Accelerator, Known, Partitioning, Tenant, Unknown
from tests.fakes.nvidia_machines import machine, smi

MIB = 2**20
SOURCE = Path(__file__).parent.parent / "fakes" / "libnvidia_ml.c"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    built = ["cc", "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)]
    subprocess.run(built, check=True)
    return folder


def ask(folder: Path, name: str) -> dict[str, Any]:
    return dict(LocalSystem({**os.environ, "LD_LIBRARY_PATH": str(folder), "MACHINE": name}).nvml())


def cards(folder: Path, name: str, functions: dict[str, str]) -> tuple[tuple[Accelerator, ...], Recorded]:
    recorded = machine(functions, nvml=ask(folder, name))
    return detect(recorded).accelerators, recorded


@pytest.mark.slow  # needs a C compiler, which a bare machine has not
def test_two_linked_cards_have_their_minors_tenants_and_nvlink(library: Path) -> None:
    (first, second), recorded = cards(library, "pair", {"0000:01:00.0": "2204", "0000:02:00.0": "2204"})
    assert (first.name, first.uuid, first.arch) == (
        "NVIDIA GeForce RTX 3090",
        "GPU-00000000",
        Known("sm_86", "NVML compute capability"),
    )
    assert (first.memory_total, first.memory_used) == (Known(24576 * MIB, "NVML"), Known(512 * MIB, "NVML"))
    assert (first.nodes[0].path, second.nodes[0].path) == ("/dev/nvidia1", "/dev/nvidia0")
    assert first.tenants == (Tenant(pid=4711, name="/usr/bin/python3", memory=Known(300 * MIB, "NVML")),)
    assert first.usable == Known(value=True, how="NVML lists it")
    (link,) = nvidia.topology(recorded, (first, second))
    assert (link.a, link.b, link.kind, link.peer_access) == (0, 1, "NV4", "GNS")
    stack = nvidia.stack(recorded, (first, second))
    assert stack is not None
    assert (stack.cuda, stack.library) == (Known("13.0", "NVML"), Known("580.95.05", "NVML library version"))


@pytest.mark.slow  # needs a C compiler, which a bare machine has not
def test_a_gb10_answers_that_it_has_no_memory_of_its_own(library: Path) -> None:
    ((card,), _) = cards(library, "gb10", {"000f:01:00.0": "2e12"})
    assert card.unified
    assert card.memory_total == Unknown("NVML answers Not Supported: it shares the machine's memory")
    assert card.usable == Known(value=True, how="NVML lists it")


@pytest.mark.slow  # needs a C compiler, which a bare machine has not
def test_mig_slices_come_with_profile_uuid_and_memory(library: Path) -> None:
    ((card,), _) = cards(library, "mig", {"0000:01:00.0": "2330"})
    assert card.partitioning is Partitioning.MIG
    assert [(part.name, part.uuid, part.memory) for part in card.partitions] == [
        ("3g.40gb", "MIG-00000000", Known(40448 * MIB, "NVML")),
        ("1g.10gb", "MIG-00000001", Known(40448 * MIB, "NVML")),
    ]
    assert (card.fabric, card.link_group) == ("Completed/Success", f"{'0' * 32}/7")


@pytest.mark.slow  # needs a C compiler, which a bare machine has not
def test_a_card_off_the_bus_leaves_the_other_one_usable(library: Path) -> None:
    (first, second), _ = cards(library, "lost", {"0000:01:00.0": "2204", "0000:02:00.0": "2204"})
    assert first.usable == Known(value=True, how="NVML lists it")
    assert second.usable == Unknown("NVML does not list this card: NVML has no handle for card 1: GPU is lost")


@pytest.mark.slow  # needs a C compiler, which a bare machine has not
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mismatch", {"failure": "RM has detected an NVML/RM version mismatch.", "code": 18}),
        ("unloaded", {"failure": "Driver Not Loaded", "code": 9}),
    ],
)
def test_a_library_that_does_not_start_says_why(library: Path, name: str, said: dict[str, object]) -> None:
    assert ask(library, name) == said


@pytest.mark.slow  # waits for the time-out
def test_a_hung_library_is_ended_and_reported(library: Path) -> None:
    assert ask(library, "hung") == {"failure": "NVML gave no answer within 5 s", "timed_out": True}


@pytest.mark.slow  # waits for the time-out
def test_a_library_that_cannot_even_be_loaded_is_ended_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "libnvidia-ml.so.1")  # opening it waits for a writer
    assert ask(tmp_path, "hung")["timed_out"] is True


def test_a_broken_library_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("")
    assert ask(tmp_path, "") == {"failure": "NVML Shared Library Not Found", "code": 12}


def test_a_python_that_cannot_run_is_a_reason_and_no_error(tmp_path: Path) -> None:
    # A home that does not exist keeps the interpreter from starting.
    broken = LocalSystem({"PYTHONHOME": str(tmp_path / "none")}).nvml()
    assert set(broken) == {"failure"}
    assert str(broken["failure"]).startswith("NVML could not be asked: ")


def test_after_nvml_hung_nvidia_smi_is_not_started() -> None:
    asked: list[str] = []

    class Watched(Recorded):
        def run(self, argv: Any, **more: Any) -> Any:
            asked.append(argv[0])
            return super().run(argv, **more)

        def nvml(self) -> Any:
            return {"failure": "NVML gave no answer within 5 s", "timed_out": True}

    base = "/sys/bus/pci/devices/0000:01:00.0"
    files = {f"{base}/class": "0x030000", f"{base}/vendor": "0x10de", f"{base}/device": "0x2684"}
    nodes = {path: {"type": "c"} for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")}
    of = Watched({"files": files, "nodes": nodes})
    (card,) = detect(of).accelerators
    assert card.usable == Unknown("NVML gave no answer within 5 s")
    stack = nvidia.stack(of, (card,))
    assert stack is not None
    assert "NVML gave no answer within 5 s" in stack.failure
    assert nvidia.topology(of, (card, card)) == ()
    assert asked == []


@pytest.mark.parametrize(
    "facts",
    [
        {"devices": [{"index": 0, "uuid": "GPU-1", "memory": {"total": 24 * 2**30}, "compute_capability": [8, 9]}]},
        {"gpus": [{"uuid": "GPU-1", "memory_total": 24 * 2**30, "cuda_compute_capability": "8.9"}]},
    ],
)
def test_a_snapshot_of_another_hand_is_understood(facts: dict[str, Any]) -> None:
    (card,) = answer_of(facts).cards
    assert (card.uuid, card.memory_total, card.arch) == (
        "GPU-1",
        Known(24 * 2**30, "NVML"),
        Known("sm_89", "NVML compute capability"),
    )


@pytest.mark.parametrize(
    "facts",
    [{"devices": 3}, {"devices": [1, None, {}]}, {"devices": [{"memory": "x", "slices": [4]}]}, {"links": [{}]}, {}],
)
def test_nonsense_is_no_card_with_figures(facts: dict[str, Any]) -> None:
    assert all(card.uuid == "" and isinstance(card.memory_total, Unknown) for card in answer_of(facts).cards)


def test_nvml_and_nvidia_smi_meet_by_uuid_and_not_by_number() -> None:
    of = machine(
        {"0000:01:00.0": "2684", "0000:02:00.0": "2684"},
        smi("-L", text="GPU 0: NVIDIA A (UUID: GPU-aa)\nGPU 1: NVIDIA B (UUID: GPU-bb)\n"),
        nvml={
            "devices": [
                {"index": 0, "uuid": "GPU-bb", "pci": {"bus_id": "00000000:02:00.0"}, "memory": {"total": 2}},
                {"index": 1, "uuid": "GPU-aa", "pci": {"bus_id": "00000000:01:00.0"}, "memory": {"total": 4}},
            ]
        },
    )
    found = {card.pci: (card.name, card.memory_total) for card in detect(of).accelerators}
    assert found == {
        "0000:01:00.0": ("NVIDIA A", Known(4, "NVML")),
        "0000:02:00.0": ("NVIDIA B", Known(2, "NVML")),
    }
