"""Recorded machines: what is wrong with each, on which machine, and that the healthy ones are left alone."""

from dataclasses import replace

import pytest

from selfhost.core.recorded import Recorded
from selfhost.doctor.area import Seen
from selfhost.doctor.areas.kubernetes import kubernetes
from selfhost.doctor.areas.memory import memory
from selfhost.doctor.examine import state
from selfhost.doctor.look import Look
from selfhost.hosts.detect import detect
from selfhost.shapes.fact import Known, Vendor
from selfhost.shapes.host import Tenant
from selfhost.shapes.surroundings import DriverStack, Surroundings

HEALTHY = (
    "amd-mi300x-cpx",
    "amd-usable",
    "bare-no-cards",
    "eight-h100",
    "gh200",
    "h100-mig-slices",
    "two-3090-nvml",
    "two-5090",
    "two-rtx",
    "wsl2-rtx",
)
BROKEN = {
    "a10-t4-mixed": ("HX004", "error", "here"),
    "amd-docker-not-granted": ("HX301", "error", "container host"),
    "amd-not-permitted": ("HX201", "error", "here"),
    "amd-docker-desktop": ("HX104", "warning", "here"),
    "pascal-only": ("HX016", "warning", "here"),
    "pod": ("HX301", "error", "cluster admin"),
    "rtx-docker-not-granted": ("HX301", "error", "container host"),
    "rtx-eperm": ("HX202", "error", "container host"),
    "rtx-mismatch": ("HX003", "error", "here"),
    "rtx-no-driver": ("HX010", "error", "here"),
    "rtx-no-uvm": ("DV083", "error", "here"),
    "rtx-vfio": ("HX006", "info", "here"),
    "wsl2-two-rtx": ("HX004", "error", "Windows"),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_machine_has_no_finding(name, snapshot, examined):
    assert examined(snapshot(name)).report.findings == ()


@pytest.mark.parametrize("name", HEALTHY)
def test_every_area_of_a_healthy_machine_says_a_line_or_why_not(name, snapshot, examined):
    assert all(area.calm or area.unknowns for area in examined(snapshot(name)).areas)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_machine_says_what_and_where(name, snapshot, examined):
    found = {(one.id, one.severity.value, one.run_on.value) for one in examined(snapshot(name)).report.findings}
    assert BROKEN[name] in found


@pytest.mark.parametrize("name", BROKEN)
def test_every_finding_has_a_reason_and_a_way_out(name, snapshot, examined):
    for one in examined(snapshot(name)).report.findings:
        assert one.why
        assert one.fix or one.severity.value == "info"


def test_cards_that_a_pod_did_not_ask_for_are_no_error(snapshot, examined):
    assert examined(snapshot("h100-one-of-eight")).report.ok


def test_areas_stand_in_the_order_of_causes(snapshot, examined):
    names = [area.name for area in examined(snapshot("bare-no-cards")).areas]
    assert names[:3] == ["driver", "devices", "containers"]
    assert len(names) == 10


def test_an_area_is_as_bad_as_its_worst_finding(snapshot, examined):
    states = {area.name: state(area) for area in examined(snapshot("rtx-mismatch")).areas}
    assert states["driver"] == "error"
    assert states["fabric"] == "ok"


def test_nothing_recorded_of_the_network_is_unknown_and_no_finding(snapshot, examined):
    network = next(area for area in examined(snapshot("two-rtx")).areas if area.name == "network")
    assert network.findings == ()
    assert network.unknowns


def _resolving(*lost: str) -> list[dict[str, object]]:
    names = ("huggingface.co", "registry-1.docker.io", "ghcr.io", "nvcr.io", "quay.io")
    return [
        {
            "argv": ["getent", "ahosts", name],
            "rc": 2 if name in lost else 0,
            "stdout": "" if name in lost else "::1 STREAM",
        }
        for name in names
    ]


@pytest.mark.parametrize(
    ("lost", "severity"),
    [((), ""), (("huggingface.co",), "warning"), (("nvcr.io",), "info")],
)
def test_names_that_do_not_resolve(lost, severity, snapshot, examined):
    machine = {**snapshot("bare-no-cards"), "commands": _resolving(*lost)}
    found = [one for one in examined(machine).report.findings if one.id == "HX601"]
    assert [one.severity.value for one in found] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("env", "ids"),
    [
        ({"https_proxy": "http://proxy.example:3128", "no_proxy": "localhost"}, []),
        ({"https_proxy": "proxy.example:3128", "no_proxy": "localhost"}, ["HX602"]),
        ({"https_proxy": "http://a:1", "HTTPS_PROXY": "http://b:1", "no_proxy": "127.0.0.1"}, ["HX603"]),
        ({"https_proxy": "http://proxy.example:3128"}, ["HX604"]),
        ({"no_proxy": "example.org"}, []),
    ],
)
def test_proxies(env, ids, snapshot, examined):
    assert [one.id for one in examined({**snapshot("bare-no-cards"), "env": env}).report.findings] == ids


def test_a_password_of_a_proxy_is_never_said(snapshot, examined):
    machine = {**snapshot("bare-no-cards"), "env": {"https_proxy": "http//me:hunter2@proxy"}}
    assert "hunter2" not in str(examined(machine).to_json())


@pytest.mark.parametrize(("free", "severity"), [(500e6, "error"), (5e9, "")])
def test_a_full_disk(free, severity, snapshot, examined):
    machine = {**snapshot("bare-no-cards"), "disks": {"/": {"total": 100e9, "free": free}}}
    found = [one.severity.value for one in examined(machine).report.findings if one.id == "HX501"]
    assert found == ([severity] if severity else [])


def test_a_card_needs_room_for_its_image(snapshot, examined):
    machine = {**snapshot("two-rtx"), "disks": {"/": {"total": 100e9, "free": 5e9}}}
    assert [one.id for one in examined(machine).report.findings] == ["HX501"]


def test_secure_boot_and_a_module_of_another_kernel(snapshot, examined):
    content = snapshot("rtx-no-driver")
    kernel = content["files"]["/proc/sys/kernel/osrelease"].strip()
    content["files"]["/sys/kernel/security/lockdown"] = "none [integrity] confidentiality\n"
    for built, wanted in ((kernel, "HX011"), ("5.4.0-1-generic", "HX012")):
        content["commands"] = [
            {"argv": ["dkms", "status"], "rc": 0, "stdout": f"nvidia/580.95.05, {built}, x86_64: installed\n"}
        ]
        ids = [one.id for one in examined(content).report.findings]
        assert [one for one in ids if one in ("HX011", "HX012")] == [wanted]


def _host(snapshot, name, **around):
    machine = detect(Recorded(snapshot(name)), wide=True)
    return replace(machine, surroundings=replace(machine.surroundings or Surroundings(), **around))


def _stack(version: str, flavour: str, vendor: Vendor = Vendor.NVIDIA, library: str = "") -> DriverStack:
    return DriverStack(
        vendor=vendor,
        module=Known(version, "here"),
        loaded=Known(value=True, how="here"),
        flavour=flavour,
        library=Known(library or version, "here"),
    )


@pytest.mark.parametrize(
    ("machine", "stack", "wanted"),
    [
        ("two-5090", _stack("580.95.05", "proprietary"), "HX013"),
        ("two-5090", _stack("565.57.01", "open"), "HX014"),
        ("two-5090", _stack("580.95.05", "open"), ""),
        ("pascal-only", _stack("590.48.01", "proprietary"), "HX015"),
        ("pascal-only", _stack("580.95.05", "proprietary"), ""),
        ("amd-mi300x", _stack("30.30.3", "dkms", Vendor.AMD, "6.2.0"), "HX020"),
        ("amd-mi300x", _stack("30.30.3", "dkms", Vendor.AMD, "7.1.1"), ""),
        ("amd-mi300x", _stack("31.40", "dkms", Vendor.AMD, "7.14.0"), ""),
    ],
)
def test_the_driver_and_its_cards(machine, stack, wanted, snapshot):
    from selfhost.doctor.areas.driver import driver

    seen = Seen(host=_host(snapshot, machine, drivers=(stack,)), look=Look())
    driver(seen)
    assert [one.id for one in seen.findings] == ([wanted] if wanted else [])


@pytest.mark.parametrize(
    ("machine", "around", "look", "wanted"),
    [
        ("two-rtx", {"shm_bytes": Known(64 << 20, "statvfs")}, Look(), ["HX402"]),
        ("gb10", {"shm_bytes": Known(64 << 20, "statvfs")}, Look(), []),
        ("two-rtx", {"shm_bytes": Known(8 << 30, "statvfs")}, Look(), []),
        ("two-rtx", {"memlock_bytes": Known(8 << 20, "limits")}, Look(infiniband=True), ["HX403"]),
        ("two-rtx", {"memlock_bytes": Known(-1, "limits")}, Look(infiniband=True), []),
        ("two-rtx", {"memlock_bytes": Known(8 << 20, "limits")}, Look(), []),
        ("two-rtx", {"pids_limit": Known(100, "pids.max")}, Look(), ["HX404"]),
        ("two-rtx", {"pids_limit": Known(4096, "pids.max")}, Look(), []),
    ],
)
def test_limits(machine, around, look, wanted, snapshot):
    seen = Seen(host=_host(snapshot, machine, **around), look=look)
    memory(seen)
    assert [one.id for one in seen.findings] == wanted


def test_a_small_limit(snapshot):
    machine = _host(snapshot, "two-rtx")
    small = replace(machine.memory, total=Known(64 << 30, "meminfo"), limit=Known(2 << 30, "memory.max"))
    seen = Seen(host=replace(machine, memory=small), look=Look())
    memory(seen)
    assert [one.id for one in seen.findings] == ["HX401"]


def _node(capacity: str, allocatable: str, **labels: str) -> dict[str, object]:
    status = {"capacity": {"nvidia.com/gpu": capacity}, "allocatable": {"nvidia.com/gpu": allocatable}}
    return {"kind": "Node", "metadata": {"name": "n1", "labels": labels}, "status": status if capacity else {}}


LABEL = {"feature.node.kubernetes.io/pci-10de.present": "true"}


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        (_node("", "", **LABEL), ["HX302"]),
        (_node("2", "2", **LABEL), []),
        (_node("2", "1", **LABEL), ["HX303"]),
    ],
)
def test_a_node_and_its_cards(node, wanted, snapshot):
    seen = Seen(host=_host(snapshot, "two-rtx", nodes=(node,)), look=Look())
    kubernetes(seen)
    assert [one.id for one in seen.findings] == wanted


def test_a_card_of_the_cluster_that_something_else_uses(snapshot):
    machine = _host(snapshot, "two-rtx", nodes=(_node("2", "2"),))
    card = replace(machine.accelerators[0], tenants=(Tenant(pid=7, name="ollama", memory=Known(1 << 30, "nvml")),))
    machine = replace(machine, accelerators=(card, *machine.accelerators[1:]))
    for outsiders, wanted in (({7: "0::/system.slice/ollama.service"}, ["HX304"]), ({}, [])):
        seen = Seen(host=machine, look=Look(outsiders=outsiders))
        kubernetes(seen)
        assert [one.id for one in seen.findings] == wanted
