"""On each recorded machine devices enter a container by one way, the right one, and our own lint has nothing to say."""

import pytest

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.shapes.host import Vendor
from selfhost.shapes.plan import Injection
from tests.fakes.planning import a_card, a_host
from tests.plan.container_hosts import complaints, host, plan_on, recorded, workload_on

MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
GPU = "025e6de3-5909-1af0-2d07-ba92fc076426"

# What comes in, by hand from each snapshot: uuids as nvidia-smi gives them, nodes and groups as `stat` does.
DOCKER = {
    "rtx3060": ("device request", "GPU-30600000-5909-1af0-2d07-ba92fc076426"),
    "rtx4090": ("device request", "GPU-40900000-5909-1af0-2d07-ba92fc076426"),
    "rtx5090": ("device request", "GPU-50900000-5909-1af0-2d07-ba92fc076426"),
    "two-3090-nvml": ("device request", "GPU-30900000-5909-1af0-2d07-ba92fc076426"),
    "a10-t4-mixed": ("device request", "GPU-e61f5785-cbcd-ab95-144c-184ef6fe8c39"),
    "a100-mig-slice": ("device request", "MIG-a1003000-5909-1af0-2d07-ba92fc076426"),
    "l40s": ("device request", "GPU-14050000-5909-1af0-2d07-ba92fc076426"),
    "h100": ("device request", "GPU-68100000-5909-1af0-2d07-ba92fc076426"),
    "h100-one-of-eight": ("device request", f"GPU-{GPU}"),
    "gb10": ("device request", f"GPU-{GPU}"),
    "gh200": ("device request", f"GPU-{GPU}"),
    "rtx-old-driver": ("device request", f"GPU-{GPU}"),
    "wsl2-rtx": ("device request", "all"),
    "jetson-thor": ("tegra", "nvidia"),
    "amd-mi210": ("nodes", "/dev/kfd /dev/dri/renderD128 +992"),
    "amd-mi300x": ("nodes", "/dev/kfd /dev/dri/renderD128 +992"),
    "amd-card-and-integrated": ("nodes", "/dev/kfd /dev/dri/renderD129 +992"),
    "amd-three-cards-rootless-podman": ("nodes", "/dev/kfd /dev/dri/renderD128 +992"),
    "amd-rootless-docker": ("nodes", "/dev/kfd /dev/dri/renderD128"),
    "rx7900xtx": ("nodes", "/dev/kfd /dev/dri/renderD128 +992"),
    "strix-halo": ("nodes", "/dev/kfd /dev/dri/renderD128"),
    "arc-b580": ("nodes", "/dev/dri/renderD128 +992"),
    "arc-b60-pair": ("nodes", "/dev/dri/renderD128 +992"),
    "flex-sriov": ("nodes", "/dev/dri/renderD129 /dev/dri/renderD130 +992"),
    "bare-no-cards": ("none", ""),
    "igpu-only": ("none", ""),
}
PODMAN = {
    "rtx4090": ("cdi", "nvidia.com/gpu=GPU-40900000-5909-1af0-2d07-ba92fc076426"),
    "a100-mig-slice": ("cdi", "nvidia.com/gpu=MIG-a1003000-5909-1af0-2d07-ba92fc076426"),
    "gb10": ("cdi", f"nvidia.com/gpu=GPU-{GPU}"),
    "wsl2-rtx": ("cdi", "nvidia.com/gpu=all"),
    "jetson-thor": ("cdi", "nvidia.com/gpu=all"),
    "amd-mi210": ("nodes", "/dev/kfd /dev/dri/renderD128 +keep-groups"),
    "rx7900xtx": ("nodes", "/dev/kfd /dev/dri/renderD128 +keep-groups"),
    "fedora-selinux-amd": ("nodes", "/dev/kfd /dev/dri/renderD128 +992"),
    "strix-halo": ("nodes", "/dev/kfd /dev/dri/renderD128"),
    "arc-b580": ("nodes", "/dev/dri/renderD128 +keep-groups"),
    "bare-no-cards": ("none", ""),
}
CASES = [(name, "docker", *row) for name, row in DOCKER.items()] + [
    (name, "podman", *row) for name, row in PODMAN.items()
]


def seen(way: Injection) -> str:
    names = [f"{name.kind}={name.name}" for name in way.cdi]
    asked = ["all" if one.count == -1 else ",".join(one.ids) for one in way.requests]
    nodes = [device.source for device in way.devices]
    return " ".join([*names, *asked, *filter(None, [way.runtime]), *nodes, *(f"+{gid}" for gid in way.group_add)])


@pytest.mark.parametrize(("name", "runtime", "way", "what"), CASES)
def test_devices_enter_by_one_way_and_lint_is_silent(name: str, runtime: str, way: str, what: str) -> None:
    machine = recorded(name)
    plan = plan_on(machine, runtime)
    assert plan.container is not None
    injection = plan.container.injection
    assert (injection.way, seen(injection)) == (way, what)
    assert sum(map(bool, (injection.cdi, injection.requests, injection.runtime))) <= 1
    assert complaints(plan, machine) == []


@pytest.mark.parametrize(("name", "runtime", "way", "what"), CASES)
def test_no_container_is_privileged_or_masked(name: str, runtime: str, way: str, what: str) -> None:
    del way, what
    made = workload_on(plan_on(recorded(name), runtime))
    assert not made.privileged
    assert (made.ipc, made.pid, made.cap_drop, made.cap_add) == ("", "", ("ALL",), ())
    assert "no-new-privileges:true" in made.security_opt
    assert not set(MASKS) & set(made.env)
    assert not any(mask in word for word in made.argv for mask in MASKS)
    assert not [mount for mount in made.mounts if mount.source.startswith(("/root", "/home")) and not mount.read_only]


@pytest.mark.parametrize("name", ["rtx4090", "h100", "gb10"])
def test_cards_are_numbered_by_their_bus_inside_too(name: str) -> None:
    assert workload_on(plan_on(recorded(name), "docker")).env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_two_cards_of_four_are_handed_in_and_not_chosen_again_inside() -> None:
    machine = recorded("two-3090-nvml")
    plan = plan_on(machine, "docker", device="1")
    made = workload_on(plan)
    assert made.requests[0].ids == ("GPU-30900001-5909-1af0-2d07-ba92fc076426",)
    assert not set(MASKS) & set(made.env)
    process = plan_on(machine, None, device="1")
    assert process.env["CUDA_VISIBLE_DEVICES"] == "1"


def test_a_rootless_podman_is_not_trusted_to_hold_an_amd_card_back() -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        plan_on(recorded("amd-three-cards-rootless-podman"), "podman")
    assert caught.value.id == "PL081"
    assert "2 of 3" in caught.value.what
    assert "--runtime docker" in caught.value.fix[0]


def test_docker_desktop_has_no_amd_card() -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        plan_on(recorded("amd-docker-desktop"), "docker")
    assert caught.value.id == "PL078"
    assert plan_on(recorded("amd-docker-desktop"), None).runtime == "container"


def test_under_wsl2_only_the_first_card_can_be_meant() -> None:
    machine = recorded("wsl2-two-rtx")
    assert plan_on(machine, "docker", device="0").container is not None
    with pytest.raises(InputError) as caught:
        plan_on(machine, "docker", device="1")
    assert caught.value.id == "PL079"
    assert "--device 0" in caught.value.fix[0]


def test_ranks_on_amd_may_read_each_other_as_vllm_documents() -> None:
    cards = tuple(
        a_card(index, name="AMD Instinct MI300X", vendor=Vendor.AMD, arch="gfx942", gib=32) for index in range(2)
    )
    made = workload_on(plan_on(a_host(accelerators=cards, gib=256), "docker", model="qwen3-32b", device="0,1"))
    assert "seccomp=unconfined" in made.security_opt
    assert made.shm_bytes == 16 * 2**30


def test_two_battlemages_use_the_ring_that_does_not_hang() -> None:
    machine = recorded("arc-b60-pair")
    plan = plan_on(machine, "docker", model="qwen3-32b")
    assert plan.device_count == 2
    assert workload_on(plan).env["CCL_ALLREDUCE"] == "ring"
    assert complaints(plan, machine) == []


def test_the_physical_function_of_a_cut_card_is_taken_only_by_name() -> None:
    machine = recorded("flex-sriov")
    assert plan_on(machine, "docker").device == "0000:03:00.1,0000:03:00.2"
    assert plan_on(machine, "docker", device="0").device == "0000:03:00.0"


def test_selinux_is_answered_by_dropping_the_label_and_not_by_a_new_one_on_your_files() -> None:
    made = workload_on(plan_on(recorded("fedora-selinux-amd"), "podman"))
    assert "label=disable" in made.security_opt


def test_nothing_is_asked_of_an_engine_where_nobody_looked() -> None:
    machine = a_host(accelerators=(a_card(),))
    plan = plan_on(machine, "docker")
    decision = plan.decision("devices enter by")
    assert decision is not None
    assert decision.evidence.value == "assumed"


def test_the_same_machine_gives_the_same_plan() -> None:
    first, second = (plan_on(host("amd-mi210"), "docker") for _ in range(2))
    assert first == second
