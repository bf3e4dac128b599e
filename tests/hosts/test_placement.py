"""The gate: an accelerator that is there is used or named as the reason to stop, never passed over in silence."""

from collections.abc import Callable

import pytest

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.hosts.placement import gate
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.host import Host

Load = Callable[[str], Host]
RTX = "GPU-025e6de3-5909-1af0-2d07-ba92fc076426"


@pytest.mark.parametrize("asked", [None, "auto", "0", RTX, "GPU-025e6de3", "0000:01:00.0"])
def test_a_usable_card_is_chosen_however_it_is_asked_for(host: Load, asked: str | None) -> None:
    found = gate(host("rtx-usable"), asked)
    assert (found.device, found.backend, found.device_name) == (RTX, "cuda", "NVIDIA GeForce RTX 4090")
    assert [card.uuid for card in found.accelerators] == [RTX]
    assert found.notes == (
        "AMD Raphael graphics (integrated) is not used: vLLM 0.33.0 for ROCm has no code for gfx1036",
    )


def test_of_two_cards_the_one_with_more_free_memory_is_chosen(host: Load) -> None:
    found = gate(host("two-rtx"), None)  # 3000 MiB free on the 4090, 11900 MiB on the 3060
    assert found.device_name == "NVIDIA GeForce RTX 3060"
    assert found.notes == ("NVIDIA GeForce RTX 4090 (24.0 GiB) is not used: one card is enough",)


@pytest.mark.parametrize(
    ("name", "id", "what", "command"),
    [
        ("rtx-docker-not-granted", "HX301", "is not granted to this container", "docker run --gpus all"),
        ("pod", "HX301", "is not granted to this pod", "nvidia.com/gpu: 1"),
        ("lxc", "HX301", "is not granted to this container", "dev0: /dev/nvidia0"),
        ("rtx-eperm", "HX202", "/dev/nvidia0 may not be opened", "docker run --gpus all"),
        ("rtx-no-driver", "HX001", "has no NVIDIA driver and is bound to nouveau", "ubuntu-drivers install"),
        ("rtx-no-uvm", "HX001", "has no /dev/nvidia-uvm", "nvidia-modprobe -u -c=0"),
        ("rtx-hung-smi", "HX005", "cannot be used", "dmesg"),
        ("rtx-mismatch", "HX005", "cannot be used", "restart the machine"),
        ("h100-mig", "HX005", "cannot be used", "nvidia-smi -mig 0"),
        ("rtx-old-driver", "HX004", "driver is 550.144.03", "580"),
        ("amd-not-permitted", "HX201", "/dev/kfd may not be opened", "getent group 992"),
        ("amd-docker-not-granted", "HX301", "is not granted to this container", "--device /dev/kfd"),
        ("amd-usable", "HX008", "not by this version", "--device cpu"),
        ("strix-halo", "HX008", "not by this version", "--device cpu"),
        ("arc-b70-pair", "HX008", "not by this version", "--device cpu"),
    ],
)
def test_a_supported_card_that_cannot_be_used_stops_with_reason_and_grant(
    host: Load, name: str, id: str, what: str, command: str
) -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        gate(host(name), None)
    error = caught.value
    assert (error.exit_code, error.id) == (ExitCode.ENVIRONMENT, id)
    assert what in error.what
    assert error.why
    assert any(command in action for action in error.fix)
    last = error.fix[-1 if "NVIDIA" in error.what else 0]
    assert last.endswith("selfhost up MODEL --device cpu")


def test_podman_is_told_its_own_way(host: Load) -> None:
    inside = host("podman-rootless")
    card = host("rtx-docker-not-granted")
    podman = Host(
        os=card.os,
        kernel=card.kernel,
        python=card.python,
        cpu=card.cpu,
        memory=card.memory,
        accelerators=card.accelerators,
        nesting=inside.nesting,
    )
    with pytest.raises(EnvironmentMissing) as caught:
        gate(podman, None)
    assert "podman run --device nvidia.com/gpu=all" in caught.value.fix[0]


def test_what_nvidia_smi_said_is_shown_once_as_evidence(host: Load) -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        gate(host("rtx-mismatch"), None)
    assert caught.value.evidence == "Failed to initialize NVML: Driver/library version mismatch"
    assert caught.value.evidence not in caught.value.why


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("bare-no-cards", None),
        (
            "pascal-only",
            "NVIDIA GeForce GTX 1080 Ti is not used: vLLM 0.33.0 has no code for sm_61, it starts at sm_75",
        ),
        (
            "amd-igpu-only",
            "AMD Raphael graphics (integrated) is not used: vLLM 0.33.0 for ROCm has no code for gfx1036",
        ),
        ("igpu-only", "no engine build has code for Intel's integrated graphics"),
        ("bmc-only", "ASPEED graphics of the management controller (BMC) at 0000:03:00.0 does not compute"),
        ("rtx-vfio", "is set aside for a virtual machine (vfio-pci)"),
        ("wsl2-no-card", None),
    ],
)
def test_a_machine_without_an_accelerator_uses_the_cpu_and_says_in_one_line_what_it_saw(
    host: Load, name: str, note: str | None
) -> None:
    found = gate(host(name), None)
    assert (found.device, found.backend, found.accelerators) == ("cpu", "cpu", ())
    assert len(found.notes) == (0 if note is None else 1)
    assert note is None or note in found.notes[0]


@pytest.mark.parametrize("name", ["rtx-usable", "rtx-eperm", "rtx-hung-smi", "amd-not-permitted"])
def test_asked_for_the_cpu_it_is_the_cpu_and_each_card_left_unused_is_named(host: Load, name: str) -> None:
    found = gate(host(name), "cpu")
    assert found.backend == "cpu"
    assert "is left unused: --device cpu" in found.notes[0]


def test_seven_cards_that_are_not_granted_take_one_line(host: Load) -> None:
    found = gate(host("h100-one-of-eight"), None)
    assert found.notes == ("NVIDIA Hopper card is on the bus, not granted here (7 times)",)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("bare-no-cards", "There is no accelerator here, only the CPU."),
        ("h100-mig", "There is 1 accelerator here, and the CPU."),
        ("two-rtx", "There are 2 accelerators here, and the CPU."),
    ],
)
def test_how_many_there_are_is_said_in_plain_words(host: Load, name: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        gate(host(name), "99")
    assert caught.value.why == says


@pytest.mark.parametrize("asked", ["7", "GPU-00000000", "cuda", "0,7"])
def test_a_device_that_is_not_there_is_refused_with_the_list_of_those_that_are(host: Load, asked: str) -> None:
    with pytest.raises(InputError) as caught:
        gate(host("rtx-usable"), asked)
    assert caught.value.id == "CF030"
    assert f"0  {RTX}  NVIDIA GeForce RTX 4090" in caught.value.evidence


def test_asked_for_a_card_without_engine_code_it_stops(host: Load) -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        gate(host("pascal-only"), "0")
    assert caught.value.id == "HX007"


def test_asked_for_a_card_that_is_not_granted_it_stops_although_another_works(host: Load) -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        gate(host("h100-one-of-eight"), "3")
    assert caught.value.id == "HX301"


def test_a_jetson_thor_with_its_plain_580_driver_is_not_told_to_update(host: Load) -> None:
    assert gate(host("jetson-thor"), None).backend == "cuda"


def test_a_card_in_the_machines_memory_says_so(host: Load) -> None:
    assert "computes in the machine's memory" in gate(host("gb10"), None).notes[0]


@pytest.mark.parametrize("name", ["amd-docker-not-granted", "amd-not-permitted"])
def test_a_grant_that_would_change_nothing_is_not_the_first_thing_to_do(host: Load, name: str) -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        gate(host(name), None)
    first, *others = caught.value.fix
    assert first == "run on the CPU:\nselfhost up MODEL --device cpu"
    assert others
    assert all(way.startswith("for a version that uses this card: ") for way in others)


def test_a_card_of_a_virtual_machine_that_is_asked_for_is_said_to_be_one(host: Load) -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        gate(host("rtx-vfio"), "0")
    assert caught.value.id == "HX006"
    assert "virtual machine" in caught.value.what


def test_of_a_pair_only_the_card_that_is_usable_is_called_so(host: Load) -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        gate(host("arc-b70-pair"), None)
    assert "more" not in caught.value.what  # the second one may not be opened
