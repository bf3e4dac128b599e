"""What became of a container's cards: recorded machines outside, recorded containers inside."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from selfhost.core.recorded import Recorded
from selfhost.deploy.inside import Card, Fate, judge, with_kernel_log
from selfhost.deploy.inside_words import Told, clause, findings
from selfhost.hosts.detect import detect
from selfhost.runtimes.base import EngineState, Seen
from selfhost.shapes.finding import Finding
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Plan
from tests.plan.container_hosts import SNAPSHOTS, complaints, docker, host, plan_on

NVIDIA = ("runc", "nvidia")
RUNS = Seen(state=EngineState.RUNNING, container="3f2a1b0c9d8e")
GONE = Seen(state=EngineState.EXITED, exit_code=1)
FIRST = "GPU-025e6de3-5909-1af0-2d07-ba92fc076426"
"""In rtx-usable, rtx-off-the-bus and two-rtx at 0000:01:00.0."""
SECOND = "GPU-11111111-5909-1af0-2d07-ba92fc076426"
"""In two-rtx at 0000:02:00.0."""
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95\n"
XID = (
    "[83722.115001] NVRM: GPU at PCI:0000:02:00: GPU-11111111-5909-1af0-2d07-ba92fc076426\n"
    "[83722.115009] NVRM: Xid (PCI:0000:02:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
    "[83722.115010] NVRM: Xid (PCI:0000:41:00): 31, pid=4242, name=python3, Ch 00000008\n"
)
AGAIN = "selfhost up Qwen/Qwen3-4B --runtime docker"


@cache
def planned(name: str, version: str = "28.4.0", cgroup: str = "systemd") -> Plan:
    return plan_on(host(name, docker(version, runtimes=NVIDIA, CgroupDriver=cgroup)), "docker")


def of_one(id: str, **more: Any) -> Plan:
    return replace(planned("two-rtx"), device=id, **more)


def inside(name: str = "rtx-eperm", **changes: Any) -> Host:
    content: dict[str, Any] = json.loads((SNAPSHOTS / f"{name}.json").read_text())
    opened = changes.pop("opened", None)
    if opened:
        content["nodes"] = {path: {**node, "open": opened} for path, node in content["nodes"].items()}
    return detect(Recorded({**content, **changes}))


def fates(plan: Plan, outside: str | Host, within: Host | str, seen: Seen = RUNS) -> list[Fate]:
    around = host(outside) if isinstance(outside, str) else outside
    return [card.fate for card in judge(plan, around, within, seen)]


def smi(text: str, rc: int) -> list[dict[str, Any]]:
    commands = json.loads((SNAPSHOTS / "rtx-mismatch.json").read_text())["commands"]
    return [{**command, "rc": rc, "stdout": text, "stderr": ""} for command in commands]


def test_a_card_that_the_container_uses_is_there() -> None:
    assert fates(of_one(FIRST), "rtx-usable", host("rtx-usable")) == [Fate.THERE]


def test_eperm_inside_of_a_card_that_works_outside_is_refused() -> None:
    """https://github.com/NVIDIA/nvidia-container-toolkit/issues/1227"""
    (card,) = judge(of_one(FIRST), host("rtx-usable"), inside(), RUNS)
    assert (card.fate, card.said, card.lost) == (Fate.REFUSED, "/dev/nvidia0: EPERM", True)


def test_a_card_off_the_bus_is_found_although_it_lost_its_uuid() -> None:
    """https://docs.nvidia.com/deploy/xid-errors/"""
    both = of_one(f"{FIRST},{SECOND}")
    one, other = judge(both, host("rtx-off-the-bus"), inside(), RUNS)
    assert (one.fate, other.fate) == (Fate.REFUSED, Fate.OFF_THE_BUS)
    assert other.said.endswith("GPU is lost")
    assert other.pci == "0000:02:00.0"


def test_a_card_that_still_has_its_id_is_off_the_bus_by_what_the_driver_says() -> None:
    assert fates(of_one("0000:02:00.0"), "rtx-off-the-bus", "docker does not answer") == [Fate.OFF_THE_BUS]


def test_a_card_that_no_list_of_the_machine_holds_is_off_the_bus() -> None:
    assert fates(of_one(SECOND), "rtx-usable", inside()) == [Fate.OFF_THE_BUS]


def test_the_driver_that_was_updated_on_the_machine() -> None:
    assert fates(of_one(FIRST), "rtx-mismatch", "the container lets nobody in") == [Fate.DRIVER]


def test_the_library_of_an_older_driver_inside() -> None:
    old = inside(opened="ok", commands=smi(MISMATCH, 18))
    (card,) = judge(of_one(FIRST), host("rtx-usable"), old, RUNS)
    assert card.fate is Fate.DRIVER
    assert card.said.startswith("inside: ")


def test_without_a_look_inside_a_working_card_is_unknown_and_the_reason_is_kept() -> None:
    (card,) = judge(of_one(FIRST), host("rtx-usable"), "docker does not answer", RUNS)
    assert (card.fate, card.said) == (Fate.UNKNOWN, "docker does not answer")
    assert not card.lost


def test_of_a_container_that_ended_the_machine_still_tells() -> None:
    assert fates(of_one(FIRST), "rtx-usable", inside(), GONE) == [Fate.UNKNOWN]
    assert fates(of_one(SECOND), "rtx-off-the-bus", inside(), GONE) == [Fate.OFF_THE_BUS]


def test_a_driver_that_hangs_is_unknown_and_not_off_the_bus() -> None:
    assert fates(of_one("0000:01:00.0"), "rtx-hung-smi", inside("rtx-hung-smi")) == [Fate.UNKNOWN]


def test_a_missing_node_inside_is_no_lost_card() -> None:
    (card,) = judge(of_one(FIRST), host("rtx-usable"), inside("rtx-docker-not-granted"), RUNS)
    assert card.fate is Fate.UNKNOWN
    assert "/dev/nvidia0: ENOENT" in card.said


def test_an_image_without_the_driver_s_tools_has_its_card() -> None:
    assert fates(of_one(FIRST), "rtx-usable", inside(opened="ok", commands=[])) == [Fate.THERE]


def test_an_instance_of_a_cut_card_that_nobody_made_again() -> None:
    (card,) = judge(of_one("MIG-025e6de3-0000-0000-0000-000000000000"), host("h100-mig-slices"), inside(), RUNS)
    assert card.fate is Fate.UNKNOWN
    assert "MIG instance" in card.said


def test_on_the_processor_nothing_can_be_lost() -> None:
    assert judge(of_one("cpu"), host("rtx-off-the-bus"), inside(), RUNS) == ()


def test_the_kernel_s_line_goes_to_the_card_that_it_names() -> None:
    cards = judge(of_one(f"{FIRST},{SECOND}"), host("rtx-off-the-bus"), inside(), RUNS)
    one, other = with_kernel_log(cards, XID)
    assert "Xid" not in one.said
    assert "Xid (PCI:0000:02:00): 79" in other.said
    assert "): 31" not in other.said
    first = replace(one, fate=Fate.OFF_THE_BUS, said="GPU is lost", pci="0000:01:00.0")
    assert [card.said for card in with_kernel_log((first,), XID)] == ["GPU is lost"]


def told(cards: tuple[Card, ...], plan: Plan, outside: Host) -> Finding:
    (finding,) = findings(cards, Told(plan=plan, outside=outside, again=AGAIN))
    return finding


def refused(plan: Plan, outside: Host) -> Finding:
    return told((Card(id=FIRST, name="RTX", fate=Fate.REFUSED, said="/dev/nvidia0: EPERM"),), plan, outside)


def test_a_card_of_the_hook_is_told_daemon_reload_and_cdi() -> None:
    machine = host("two-rtx", docker("28.4.0", runtimes=NVIDIA, CgroupDriver="cgroupfs"))
    plan = plan_on(machine, "docker")
    assert plan.container is not None
    assert (plan.container.injection.way, plan.container.injection.devices) == ("device request", ())
    said = refused(plan, machine)
    assert said.id == "HX305"
    assert "systemctl daemon-reload" in said.why
    assert said.fix[0].splitlines()[1] == "docker restart selfhost-it"
    assert said.fix[1].splitlines()[1:] == [
        "selfhost prepare --only nvidia_container_toolkit", "selfhost down it", AGAIN,
    ]  # fmt: skip


def test_a_card_whose_nodes_were_named_is_not_told_of_the_hook() -> None:
    machine = host("two-rtx", docker("28.4.0", runtimes=NVIDIA))
    said = refused(plan_on(machine, "docker"), machine)
    assert "hook" not in said.why
    assert said.fix[0].splitlines()[1:] == ["selfhost down it", AGAIN]


def test_a_machine_without_links_by_number_is_told_to_make_them() -> None:
    machine = host("two-rtx", docker("28.4.0", runtimes=NVIDIA))
    assert machine.surroundings is not None
    around = replace(machine.surroundings, dev_char_missing=("/dev/nvidia0",))
    said = refused(plan_on(machine, "docker"), replace(machine, surroundings=around))
    assert "/dev/char" in said.why
    assert "create-dev-char-symlinks --create-all" in said.fix[-1]


def test_each_cause_has_its_id_and_the_machine_comes_before_the_container() -> None:
    off = Card(id=SECOND, name="RTX", fate=Fate.OFF_THE_BUS, said="GPU is lost", pci="0000:02:00.0")
    said = told((off, replace(off, id=FIRST)), of_one(f"{FIRST},{SECOND}"), host("two-rtx"))
    assert (said.id, said.title) == ("HX310", "it: 2 × RTX does not answer on the machine itself any more")
    assert "dmesg" in said.fix[0]
    driver = told((replace(off, fate=Fate.DRIVER, said="NVML: mismatch"),), of_one(SECOND), host("two-rtx"))
    assert (driver.id, driver.fix[0]) == ("HX311", "restart the machine, which loads the new module")
    within = told((replace(off, fate=Fate.DRIVER, said="inside: mismatch"),), of_one(SECOND), host("two-rtx"))
    assert within.fix[-1].splitlines()[1:] == ["selfhost down it", AGAIN]


def test_status_gets_a_clause_only_of_what_is_lost() -> None:
    there = Card(id=FIRST, name="RTX", fate=Fate.THERE)
    assert clause((there, replace(there, fate=Fate.UNKNOWN)), of_one(FIRST)) == ""
    said = clause((there, replace(there, fate=Fate.REFUSED, said="/dev/nvidia0: EPERM\nmore")), of_one(FIRST))
    assert said.startswith("RTX is refused inside its container (/dev/nvidia0: EPERM)")
    assert said.endswith("selfhost doctor --inside it")


@pytest.mark.parametrize(
    ("name", "version", "cgroup", "way"),
    [
        ("rtx4090", "28.4.0", "systemd", "nodes beside"),
        ("rtx4090", "29.1.3", "systemd", "nodes beside"),
        ("rtx4090", "28.4.0", "cgroupfs", "alone"),
        ("h100-mig-slices", "28.4.0", "systemd", "warned"),
        ("h100-mig-slices", "29.1.3", "systemd", "warned"),
    ],
)
def test_what_a_reload_would_take_is_kept_by_its_nodes_or_warned_of(name, version, cgroup, way) -> None:
    """Without a CDI specification Docker 29 uses the hook too: https://github.com/moby/moby/pull/50228"""
    machine = host(name, docker(version, runtimes=NVIDIA, CgroupDriver=cgroup))
    plan = plan_on(machine, "docker")
    assert plan.container is not None
    warned = "DV028" in [finding.id for finding in complaints(plan, machine)]
    beside = bool(plan.container.injection.devices)
    assert (beside, warned) == {"nodes beside": (True, False), "alone": (False, False), "warned": (False, True)}[way]
