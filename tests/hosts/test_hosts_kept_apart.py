"""Machines whose sources contradict each other or end early: each card once, and no more said than was seen."""

import json
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.hosts.placement import gate
from selfhost.shapes.host import Host, Known, Unknown

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"
ID = "0123456789abcdef" * 4
OVERLAY = "601 500 0:51 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n"


def content(name: str) -> dict[str, Any]:
    return dict(json.loads((SNAPSHOTS / f"{name}.json").read_text()))


def seen(snapshot: dict[str, Any]) -> Host:
    return detect(Recorded(snapshot), wide=True)


def command(*argv: str, out: str = "", rc: int = 0) -> dict[str, Any]:
    return {"argv": list(argv), "rc": rc, "stdout": out, "stderr": ""}


def of_amd(address: str, device: str, render: int, node: int, gfx: int, *, kfd_id: int) -> dict[str, str]:
    bus, kfd = f"/sys/bus/pci/devices/{address}", f"/sys/class/kfd/kfd/topology/nodes/{node}"
    place = int(address[5:7], 16) << 8
    return {
        f"{bus}/vendor": "0x1002\n",
        f"{bus}/device": f"0x{device}\n",
        f"{bus}/class": "0x030000\n",
        f"{bus}/drm/renderD{render}/dev": f"226:{render}\n",
        f"{kfd}/gpu_id": f"{kfd_id}\n",
        f"{kfd}/properties": f"simd_count 192\ngfx_target_version {gfx}\nvendor_id 4098\ndevice_id {int(device, 16)}\n"
        f"location_id {place}\ndomain 0\ndrm_render_minor {render}\n",
    }


def test_a_card_is_one_card_though_a_tool_numbers_it_otherwise() -> None:
    # amd-smi of an image that is older than the card gives numbers of its own; the address is the same.
    listed = [{"gpu": 0, "bdf": "0000:03:00.0", "kfd_id": 5567, "node_id": 1}]
    listed += [{"gpu": 1, "bdf": "0000:0f:00.0", "kfd_id": 111, "node_id": 2}]
    warning = "WARNING: User is missing the following required groups: render, video.\n"
    files = of_amd("0000:03:00.0", "7448", 128, 1, 110000, kfd_id=1001)
    files |= of_amd("0000:0f:00.0", "164e", 129, 2, 100306, kfd_id=1002)
    host = seen({"files": files, "commands": [command("amd-smi", "list", "--json", out=warning + json.dumps(listed))]})
    assert [(card.pci, card.tool_index) for card in host.accelerators] == [
        ("0000:03:00.0", {"amd-smi": 0}),
        ("0000:0f:00.0", {"amd-smi": 1}),
    ]


@pytest.mark.parametrize(
    ("device", "name"),  # https://pci-ids.ucw.cz/read/PC/1002
    [
        ("7448", "AMD Radeon Pro W7900 (Navi 31)"),
        ("745e", "AMD Radeon Pro W7800 (Navi 31)"),
        ("744c", "AMD Radeon RX 7900 (Navi 31)"),
    ],
)
def test_a_workstation_card_is_not_called_by_the_name_of_a_gaming_card(device: str, name: str) -> None:
    host = seen({"files": of_amd("0000:03:00.0", device, 128, 1, 110000, kfd_id=7)})
    assert [card.name for card in host.accelerators] == [name]


def test_an_xml_that_ends_early_lists_no_card_and_says_why() -> None:
    snapshot = content("rtx3080-xml")
    for one in snapshot["commands"]:
        one["stdout"] = one["stdout"][: one["stdout"].index("<uuid>")]
    (card,) = (card for card in seen(snapshot).accelerators if card.vendor.value == "nvidia")
    assert isinstance(card.usable, Unknown)
    assert "cut off" in card.usable.reason


def test_of_two_cards_the_one_that_is_listed_is_the_one_that_was_not_lost() -> None:
    # NVIDIA's own words; `-L` gives no address.
    said = (
        "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee)\n"
        "Unable to determine the device handle for gpu 0000:02:00.0: GPU is lost.  Reboot the system to recover\n"
    )
    snapshot = content("rtx-usable")
    for name, text in (("vendor", "0x10de\n"), ("device", "0x2684\n"), ("class", "0x030000\n")):
        snapshot["files"][f"/sys/bus/pci/devices/0000:02:00.0/{name}"] = text
    snapshot["nodes"]["/dev/nvidia1"] = dict(snapshot["nodes"]["/dev/nvidia0"], minor=1)
    snapshot["files"].pop("/proc/driver/nvidia/gpus/0000:01:00.0/information")
    snapshot["commands"] = [command("nvidia-smi", "-L", out=said, rc=15)]
    cards = {card.pci: card for card in seen(snapshot).accelerators}
    assert cards["0000:01:00.0"].usable == Known(value=True, how="nvidia-smi lists it")
    assert isinstance(cards["0000:02:00.0"].usable, Unknown)


def test_a_card_in_instances_computes_and_is_no_whole_card_to_start_on() -> None:
    host = seen(content("h100-mig-slices"))
    assert [card.uuid for card in host.usable_accelerators]
    with pytest.raises(Exception, match="cut into MIG instances") as caught:
        gate(host, None)
    assert getattr(caught.value, "id", "") == "HX008"
    assert "--runtime docker" in " ".join(getattr(caught.value, "fix", ()))


def test_a_card_whose_instances_are_not_listed_is_for_nobody() -> None:
    with pytest.raises(Exception, match="cut into MIG instances") as caught:
        gate(seen(content("h100-mig")), None)
    assert getattr(caught.value, "id", "") == "HX005"


@pytest.mark.parametrize(
    ("group", "labels"),
    [
        (f"/kubelet.slice/kubelet-kubepods.slice/cri-containerd-{ID}.scope", ["pod", "containerd", "kind", "docker"]),
        (f"/kubelet/kubepods/besteffort/pod1/{ID}", ["pod", "kind", "docker"]),
    ],
)
def test_a_pod_in_kind_has_all_its_layers_by_control_group_and_mounts(group: str, labels: list[str]) -> None:
    # kubernetes-sigs/kind: the kubelet's cgroupRoot is /kubelet, and /var of a node is an anonymous volume.
    etc = f"/var/lib/docker/volumes/{ID}/_data/lib/kubelet/pods/1d5b7d3a-1111-2222-3333-444444444444/etc-hosts"
    mounts = f"{OVERLAY}1230 601 8:1 {etc} /etc/hosts rw - ext4 /dev/sda1 rw\n"
    host = seen({"files": {"/proc/self/cgroup": f"0::{group}\n", "/proc/self/mountinfo": mounts}})
    assert [layer.label for layer in host.nesting] == labels


@pytest.mark.parametrize("wrong", [None, 5, "x", True, [1], [None], {"a": 1}])
@pytest.mark.parametrize("key", ["Runtimes", "SecurityOptions", "CDISpecDirs", "DiscoveredDevices"])
def test_an_engine_with_a_field_of_another_shape_is_still_an_engine(key: str, wrong: object) -> None:
    (engine,) = getattr(
        seen({"docker": {"info": {"ServerVersion": "28.5.1", "Name": "m", key: wrong}}}).surroundings, "engines", ()
    )
    assert (engine.kind, engine.version) == ("docker", "28.5.1")


def test_podman_with_fields_of_another_shape_is_still_podman() -> None:
    host = {"security": [], "ociRuntime": "x", "cgroupControllers": 3, "idMappings": {"uidmap": 7}}
    podman = {"podman": {"info": {"version": {"Version": "5.4.2"}, "host": host}}}
    (engine,) = getattr(seen(podman).surroundings, "engines", ())
    assert (engine.kind, engine.controllers) == ("podman", ())


XTX = {
    "card0": {
        "Device Name": "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]",
        "Device ID": "0x744c",
        "PCI Bus": "0000:2D:00.0",
        "GFX Version": "gfx1100",
    }
}


@pytest.mark.parametrize(
    ("renders", "opens"),
    [
        ((128,), Known(value=True, how="opened /dev/kfd /dev/dri/renderD128")),
        ((128, 129), Unknown("which of the render nodes here is its nobody said")),
        ((), Known(value=False, how="/dev/dri/renderD*: ENOENT")),
    ],
)
def test_a_card_that_only_a_tool_names_has_the_only_render_node_or_an_unknown_one(
    renders: tuple[int, ...], opens: object
) -> None:
    # The form of rocm-smi 6.2, jurkovic-nikola/OpenLinkHub#27.
    nodes = {path: {"type": "c", "open": "ok"} for path in ("/dev/kfd", *(f"/dev/dri/renderD{one}" for one in renders))}
    said = command("rocm-smi", "-a", "--json", out=json.dumps(XTX))
    (card,) = seen({"nodes": nodes, "commands": [said]}).accelerators
    assert card.openable == opens
    assert card.usable != Known(value=True, how="")


def test_the_table_of_xpu_smi_for_people_names_the_card() -> None:
    # sgl-project/sglang#38873
    edge = f"+{'-' * 11}+{'-' * 86}+"
    rows = (
        ("Device ID", "Device Information"),
        ("0", "Device Name: Intel(R) Arc(TM) Pro B60 Graphics"),
        ("", "Vendor Name: Intel(R) Corporation"),
        ("", "SOC UUID: 00000000-0000-0017-0000-0000e2118086"),
        ("", "PCI BDF Address: 0000:17:00.0"),
    )
    text = "\n".join((edge, *(f"| {first:<9} | {second:<84} |" for first, second in rows), edge))
    bus = "/sys/bus/pci/devices/0000:17:00.0"
    files = {f"{bus}/vendor": "0x8086\n", f"{bus}/device": "0xe211\n", f"{bus}/class": "0x030000\n"}
    (card,) = seen({"files": files, "commands": [command("xpu-smi", "discovery", out=text)]}).accelerators
    assert (card.name, card.tool_index) == ("Intel(R) Arc(TM) Pro B60 Graphics", {"xpu-smi": 0})
