"""What doctor says of recorded machines: of the machine alone, each cause once, and calm where nothing is wrong."""

import json
from pathlib import Path

import pytest

from selfhost.doctor.examine import state

SNAPSHOTS = sorted(path.stem for path in (Path(__file__).parent.parent / "snapshots").glob("*.json"))


def ids(examination) -> list[str]:
    return [one.id for one in examination.report.findings]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_doctor_speaks_of_the_machine_and_not_of_what_this_version_starts(name, snapshot, examined):
    for one in examined(snapshot(name)).report.findings:
        said = " ".join((one.title, one.why, *one.fix))
        assert "this version" not in said.lower()
        assert "left unused" not in said
        assert "--device cpu" not in said


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_machine_of_a_fix_is_named_once(name, snapshot, examined):
    for one in examined(snapshot(name)).report.findings:
        if one.run_on.value != "here":
            assert not any("on the machine around it" in way for way in one.fix)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_no_finding_is_said_twice(name, snapshot, examined):
    said = [(one.id, one.title, str(one.place)) for one in examined(snapshot(name)).report.findings]
    assert len(said) == len(set(said))


@pytest.mark.parametrize(
    ("name", "only"),
    [
        ("rtx-no-uvm", "DV083"),
        ("rtx-no-driver", "HX010"),
        ("rtx-mismatch", "HX003"),
    ],
)
def test_one_cause_is_said_once(name, only, snapshot, examined):
    assert ids(examined(snapshot(name))) == [only]


def test_a_card_without_its_module_is_told_how_to_get_it_on_ubuntu(snapshot, examined):
    (found,) = examined(snapshot("rtx-no-driver")).report.findings
    assert "sudo ubuntu-drivers install" in found.fix[0]


def test_a_blackwell_card_on_the_closed_module_is_told_that_and_no_more(snapshot, examined):
    content = snapshot("two-5090")
    content["files"]["/proc/driver/nvidia/version"] = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n"
    content.pop("nvml", None)
    content["commands"] = [{"argv": ["nvidia-smi"], "rc": 0, "stdout": "No devices were found\n"}]
    assert ids(examined(content)) == ["HX013"]


def test_a_tool_that_lists_what_does_not_open_is_an_error_with_the_grant_by_number(snapshot, examined):
    content = snapshot("amd-not-permitted")
    listed = [{"gpu": 0, "bdf": "0000:03:00.0", "uuid": "79ff744c-0000-1000-8000-000000000000"}]
    content["commands"] = [{"argv": ["amd-smi", "list", "-e", "--json"], "rc": 0, "stdout": json.dumps(listed)}]
    (found,) = examined(content).report.findings
    assert (found.id, found.severity.value) == ("DV084", "error")
    assert "getent group 992" in found.fix[0]


def test_what_a_pod_lacks_is_for_the_cluster_s_admin(snapshot, examined):
    content = snapshot("pod")
    content["nodes"] = {
        f"/dev/{name}": {"type": "c", "major": 195, "minor": 0, "mode": "0666", "open": "ok"}
        for name in ("nvidia0", "nvidiactl")
    }
    found = [one for one in examined(content).report.findings if one.id == "DV083"]
    assert [one.run_on.value for one in found] == ["cluster admin"]


def test_mig_instances_are_as_old_as_their_driver(snapshot, examined):
    content = json.loads(json.dumps(snapshot("h100-mig-slices")).replace("590.48.01", "570.86.15"))
    assert ids(examined(content)) == ["HX004"]


def test_a_card_in_mig_mode_whose_instances_nobody_listed_is_no_error(snapshot, examined):
    (found,) = examined(snapshot("h100-mig")).report.findings
    assert found.severity.value == "warning"


def test_a_host_of_vgpus_is_one_by_choice(snapshot, examined):
    (found,) = examined(snapshot("vgpu-host")).report.findings
    assert found.severity.value == "info"
    assert "virtual machine" in found.fix[0]


def test_a_hung_driver_is_not_answered_with_the_command_that_hangs(snapshot, examined):
    (found,) = examined(snapshot("rtx-hung-smi")).report.findings
    assert "nvidia-smi" not in "\n".join(found.fix)


def test_a_missing_tool_says_nothing_of_the_card(snapshot, examined):
    content = snapshot("rtx-usable") | {"commands": []}
    (found,) = (one for one in examined(content).report.findings if one.id == "HX005")
    assert found.severity.value == "warning"
    assert "nothing shows that it computes" in found.title


def test_graphics_that_nobody_computes_on_need_no_driver(snapshot, examined):
    driver = examined(snapshot("rtx-usable")).areas[0]
    assert driver.unknowns == ()
    assert examined(snapshot("amd-igpu-only")).areas[0].calm == "none needed"


def test_a_daemon_that_refuses_this_user_is_not_one_that_is_stopped(snapshot, examined):
    said = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock\n"
    refused = {"argv": ["docker", "info", "--format", "{{json .}}"], "rc": 1, "stdout": "", "stderr": said}
    assert ids(examined(snapshot("bare-no-cards") | {"commands": [refused]})) == ["HX102"]


def _node(name: object, offered: object) -> dict[str, object]:
    return {
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": offered, "allocatable": offered},
    }


def test_cards_of_several_nodes_are_added_up(snapshot, examined):
    objects = [_node("a", {"nvidia.com/gpu": "8"}), _node("b", {"nvidia.com/gpu": "4"})]
    areas = examined(snapshot("bare-no-cards") | {"kubernetes": {"objects": objects}}).areas
    assert next(one.calm for one in areas if one.name == "kubernetes") == "12 nvidia.com/gpu"


@pytest.mark.parametrize("offered", [None, [], "x", 1.5, {"nvidia.com/gpu": None}])
def test_a_node_of_another_shape_offers_nothing(offered, snapshot, examined):
    objects = [_node("a", offered), {"kind": "Node", "metadata": [], "status": "x"}]
    areas = examined(snapshot("bare-no-cards") | {"kubernetes": {"objects": objects}}).areas
    assert next(state(one) for one in areas if one.name == "kubernetes") == "ok"


@pytest.mark.parametrize(("vendor", "device", "driver"), [("8086", "e20b", "xe"), ("1002", "744c", "amdgpu")])
def test_a_driver_that_is_bound_and_made_no_node_is_not_to_be_loaded_again(vendor, device, driver, snapshot, examined):
    # A card in survivability mode: intel/xpumanager#158.
    content = snapshot("bare-no-cards")
    bus = "/sys/bus/pci/devices/0000:03:00.0"
    for name, text in (("vendor", f"0x{vendor}\n"), ("device", f"0x{device}\n"), ("class", "0x030000\n")):
        content["files"][f"{bus}/{name}"] = text
    content.setdefault("links", {})[f"{bus}/driver"] = f"../../../bus/pci/drivers/{driver}"
    (found,) = examined(content).report.findings
    assert found.id == "HX001"
    assert "modprobe" not in found.fix[0]
    assert "dmesg" in found.fix[0]


def test_apptainer_without_its_flag_is_told_the_flag(snapshot, examined):
    # https://apptainer.org/docs/user/main/gpu.html
    content = snapshot("rtx-usable") | {"commands": [], "env": {"APPTAINER_CONTAINER": "/home/me/vllm.sif"}}
    (found,) = (one for one in examined(content).report.findings if one.id == "HX005")
    assert "apptainer exec --nv" in found.fix[0]


def test_a_jetson_is_told_of_its_jetpack(snapshot, examined):
    content = json.loads(json.dumps(snapshot("jetson-thor")).replace("580.00", "540.4.0"))
    (found,) = (one for one in examined(content).report.findings if one.id == "HX004")
    assert found.fix == ("install a JetPack whose driver is 580 or later, and restart it",)
