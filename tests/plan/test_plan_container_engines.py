"""What a container engine and its toolkit were seen to have decides by which way an NVIDIA card comes in."""

from typing import Any

import pytest

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Injection, Plan
from tests.plan.container_hosts import cdi, complaints, docker, host, plan_on, podman, workload_on

CARD = "GPU-40900000-5909-1af0-2d07-ba92fc076426"
TWO = ("GPU-30900000-5909-1af0-2d07-ba92fc076426", "GPU-30900001-5909-1af0-2d07-ba92fc076426")
CDI_ON = {"CDISpecDirs": ["/etc/cdi", "/var/run/cdi"]}


def way(plan: Plan) -> Injection:
    assert plan.container is not None
    return plan.container.injection


def with_hook(*parts: dict[str, Any], files: dict[str, str] | None = None, name: str = "rtx4090") -> Host:
    return host(name, *parts, files={**(files or {}), "/usr/bin/nvidia-container-runtime-hook": ""})


def test_cdi_is_taken_by_uuid_where_the_file_has_such_names() -> None:
    files = cdi(("0", "/dev/nvidia0"), (CARD, "/dev/nvidia0"), ("all", "/dev/nvidia0"))
    machine = host("rtx4090", docker("28.5.1", **CDI_ON), files=files)
    plan = plan_on(machine, "docker")
    assert [f"{one.kind}={one.name}" for one in way(plan).cdi] == [f"nvidia.com/gpu={CARD}"]
    assert complaints(plan, machine) == []
    assert plan_on(machine, None).runtime == "docker"


def test_else_by_the_number_whose_node_is_that_of_the_card() -> None:
    swapped = cdi(("0", "/dev/nvidia1"), ("1", "/dev/nvidia0"), ("all", "/dev/nvidia0"))
    machine = host("two-3090-nvml", docker("28.5.1", **CDI_ON), files=swapped)
    for device, number in (("0", "1"), ("1", "0")):
        plan = plan_on(machine, "docker", device=device)
        assert [one.name for one in way(plan).cdi] == [number]


def test_a_number_without_nodes_proves_nothing_on_a_machine_with_two_cards() -> None:
    offered = [{"ID": "nvidia.com/gpu=0"}, {"ID": "nvidia.com/gpu=1"}]
    info = docker("29.1.0", runtimes=("runc", "nvidia"), DiscoveredDevices=offered, **CDI_ON)
    plan = plan_on(host("two-3090-nvml", info), "docker", device="1")
    assert way(plan).cdi == ()
    assert way(plan).requests[0].ids == (TWO[1],)
    named = docker("29.1.0", DiscoveredDevices=[{"ID": f"nvidia.com/gpu={uuid}"} for uuid in TWO], **CDI_ON)
    assert [one.name for one in way(plan_on(host("two-3090-nvml", named), "docker", device="1")).cdi] == [TWO[1]]


def test_a_runtime_without_the_hook_is_told_the_uuid_and_is_asked_for_nothing() -> None:
    base_package = {"/usr/bin/nvidia-container-runtime": "", "/usr/bin/nvidia-ctk": ""}
    info = docker("27.5.1", runtimes=("runc", "nvidia"))
    plan = plan_on(host("rtx4090", info, files=base_package), "docker")
    assert (way(plan).runtime, way(plan).env["NVIDIA_VISIBLE_DEVICES"], way(plan).requests) == ("nvidia", CARD, ())
    both = {**base_package, "/usr/bin/nvidia-container-runtime-hook": ""}
    assert way(plan_on(host("rtx4090", info, files=both), "docker")).requests[0].ids == (CARD,)


@pytest.mark.parametrize(
    "files",
    [
        {**cdi((CARD, "/dev/nvidia0"), driver="535.54.03"), "/usr/bin/nvidia-cdi-hook": ""},
        cdi((CARD, "/dev/nvidia0"), driver="580.95.05"),
        {"/etc/cdi/nvidia.yaml": "kind: [\n"},
        cdi((CARD, "/dev/nvidia0"), version="0.7.0"),
    ],
    ids=["another driver", "its hook is not here", "no YAML", "too new for this docker"],
)
def test_a_file_that_does_not_fit_is_not_followed(files: dict[str, str]) -> None:
    machine = with_hook(docker("25.0.3", runtimes=("runc", "nvidia"), **CDI_ON), files=files)
    assert way(plan_on(machine, "docker")).way == "device request"


def test_where_systemd_would_take_the_card_away_its_nodes_stand_beside_the_request() -> None:
    machine = with_hook(docker("27.5.1", runtimes=("runc", "nvidia")))
    plan = plan_on(machine, "docker")
    nodes = [device.source for device in way(plan).devices]
    assert way(plan).requests[0].ids == (CARD,)
    assert nodes == ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]
    assert complaints(plan, machine) == []
    cgroupfs = with_hook(docker("27.5.1", runtimes=("runc", "nvidia"), CgroupDriver="cgroupfs"))
    assert way(plan_on(cgroupfs, "docker")).devices == ()


def test_a_jetson_goes_through_the_runtime_alone() -> None:
    machine = host("jetson-thor", docker("27.5.1", runtimes=("runc", "nvidia")))
    plan = plan_on(machine, "docker")
    made = workload_on(plan)
    assert (way(plan).way, made.runtime, made.requests) == ("tegra", "nvidia", ())
    assert made.env["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert complaints(plan, machine) == []


def test_a_docker_without_a_toolkit_is_refused_with_the_role_that_sets_it_up() -> None:
    machine = host("rtx4090", docker("28.5.1"))
    with pytest.raises(EnvironmentMissing) as caught:
        plan_on(machine, "docker")
    assert caught.value.id == "PL078"
    assert "runtimes are runc" in caught.value.why
    assert caught.value.fix[0].endswith("selfhost prepare --only nvidia_container_toolkit")
    automatic = plan_on(machine, None)
    decision = automatic.decision("runtime")
    assert automatic.runtime == "process"
    assert decision is not None
    assert "docker 28.5.1 has no way" in decision.reason


def test_a_podman_without_a_cdi_file_is_refused_too() -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        plan_on(host("rtx4090", podman()), "podman")
    assert caught.value.id == "PL078"
    machine = host("rtx4090", podman(), files=cdi((CARD, "/dev/nvidia0")))
    plan = plan_on(machine, "quadlet")
    assert [one.name for one in way(plan).cdi] == [CARD]
    assert workload_on(plan).user == "0:0"
    assert complaints(plan, machine) == []


def test_docker_comes_before_podman_and_podman_before_a_process() -> None:
    files = cdi((CARD, "/dev/nvidia0"))
    assert plan_on(host("rtx4090", docker("28.5.1", **CDI_ON), podman(), files=files), None).runtime == "docker"
    assert plan_on(host("rtx4090", docker("24.0.7"), podman(), files=files), None).runtime == "podman"
    assert plan_on(host("rtx4090", podman("4.0.2"), files=files), None).runtime == "process"


def test_wsl2_without_a_toolkit_uses_windows_own_device() -> None:
    machine = host("wsl2-rtx", docker("28.5.1"))
    plan = plan_on(machine, "docker")
    made = workload_on(plan)
    assert way(plan).way == "dxg"
    assert [device.source for device in made.devices] == ["/dev/dxg"]
    assert made.env["LD_LIBRARY_PATH"] == "/usr/lib/wsl/lib"
    assert [(mount.source, mount.read_only) for mount in made.mounts][-1] == ("/usr/lib/wsl", True)
    assert complaints(plan, machine) == []


def test_a_rootless_docker_is_trusted_with_cdi_only_unless_its_rules_are_off() -> None:
    rootless = {"SecurityOptions": ["name=seccomp", "name=rootless"], "DockerRootDir": "/home/ana/.local/share/docker"}
    bare = with_hook(docker("27.5.1", runtimes=("runc", "nvidia"), **rootless))
    on = {"/etc/nvidia-container-runtime/config.toml": "[nvidia-container-cli]\nno-cgroups = false\n"}
    ruled = with_hook(docker("27.5.1", runtimes=("runc", "nvidia"), **rootless), files=on)
    for machine in (bare, ruled):
        with pytest.raises(EnvironmentMissing):
            plan_on(machine, "docker")
    off = {"/etc/nvidia-container-runtime/config.toml": "[nvidia-container-cli]\nno-cgroups = true\n"}
    relaxed = with_hook(docker("27.5.1", runtimes=("runc", "nvidia"), **rootless), files=off)
    assert way(plan_on(relaxed, "docker")).way == "device request"


def test_quadlet_needs_podman_4_7() -> None:
    files = cdi((CARD, "/dev/nvidia0"))
    with pytest.raises(InputError) as caught:
        plan_on(host("rtx4090", podman("4.6.2"), files=files), "quadlet")
    assert caught.value.id == "PL076"
    assert "--runtime podman" in caught.value.fix[0]
    assert plan_on(host("rtx4090", podman("4.7.0"), files=files), "quadlet").runtime == "quadlet"


def test_a_podman_with_runc_cannot_keep_the_groups_that_open_a_node() -> None:
    machine = host("amd-mi210", podman(runtime="runc"), ids={"uid": 1000, "gid": 1000, "groups": [992]})
    with pytest.raises(EnvironmentMissing) as caught:
        plan_on(machine, "podman")
    assert caught.value.id == "PL080"
    assert "crun" in caught.value.fix[0]
