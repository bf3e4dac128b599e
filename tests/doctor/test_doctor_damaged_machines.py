"""Whole recorded machines with parts of them lost, cut or swapped: detect and doctor never raise, and prove nothing."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selfhost.core.errors import InputError
from selfhost.core.recorded import Recorded
from selfhost.doctor.examine import examine
from selfhost.doctor.look import look
from selfhost.hosts.detect import detect
from selfhost.hosts.to_json import to_json
from selfhost.shapes.host import Known

MACHINES = [
    json.loads(path.read_text()) for path in sorted((Path(__file__).parent.parent / "snapshots").glob("*.json"))
]
OUTPUTS = [one.get("stdout", "") for machine in MACHINES for one in machine.get("commands", ())]
GARBAGE = ("", "[N/A]", "ERR!", "Unknown Error", "-1", "9" * 20, "²", "{}", "[]", "<gpu>", "Zugriff verweigert\n", "\n")
WRONG: tuple[Any, ...] = (None, 0, -1, "", "x", True, 1.5, [], [None], ["a"], {}, {"a": 1}, 10**25)
OPENED = ("ok", "EPERM", "EACCES", "ENXIO", "ENODEV", "EIO")


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [place for key, value in inner for place in ((*path, key), *places(value, (*path, key)))]


def put(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


def cut(draw: st.DrawFn, text: str) -> str:
    start = draw(st.integers(0, len(text)))
    return (
        text[:start] + draw(st.sampled_from(GARBAGE)) + text[start + draw(st.integers(0, 40)) :] * draw(st.booleans())
    )


def harm_files(draw: st.DrawFn, machine: dict[str, Any]) -> None:
    path = draw(st.sampled_from(sorted(machine["files"])))
    ways = ("gone", "cut", "refused")
    way = draw(st.sampled_from(ways))
    if way == "cut":
        machine["files"][path] = cut(draw, machine["files"][path])
    else:
        machine["files"].pop(path)
    if way == "refused":
        machine.setdefault("errors", {})[path] = draw(st.sampled_from(OPENED[1:]))


def harm_commands(draw: st.DrawFn, machine: dict[str, Any]) -> None:
    one = draw(st.sampled_from(machine["commands"]))
    said = one.get("stdout", "")
    one["stdout"] = draw(st.sampled_from(OUTPUTS)) if draw(st.booleans()) else cut(draw, said)
    one["rc"] = draw(st.sampled_from((0, 1, 9, 15, 18, 127, 255, -9)))
    one["timed_out"] = draw(st.integers(0, 5)) == 0


def harm_nodes(draw: st.DrawFn, machine: dict[str, Any]) -> None:
    path = draw(st.sampled_from(sorted(machine["nodes"])))
    if draw(st.booleans()):
        machine["nodes"].pop(path)
    else:
        machine["nodes"][path]["open"] = draw(st.sampled_from(OPENED))


def harm_objects(draw: st.DrawFn, machine: dict[str, Any], key: str) -> None:
    where = places(machine[key])
    if where:
        put(machine[key], draw(st.sampled_from(where)), draw(st.sampled_from(WRONG)))


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    machine = copy.deepcopy(draw(st.sampled_from(MACHINES)))
    for _ in range(draw(st.integers(1, 5))):
        keys = ("files", "commands", "nodes", "docker", "podman", "kubernetes", "nvml")
        key = draw(st.sampled_from([one for one in keys if machine.get(one)]))
        harm = {"files": harm_files, "commands": harm_commands, "nodes": harm_nodes}.get(key)
        if harm:
            harm(draw, machine)
        else:
            harm_objects(draw, machine, key)
    return machine


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(damaged())
def test_a_damaged_machine_is_examined_and_no_card_is_usable_that_does_not_open(machine: dict[str, Any]) -> None:
    try:
        system = Recorded(machine)
    except InputError:
        return  # refused at the door, with its places
    host = detect(system, wide=True)
    examination = examine(host, look(system, host))
    json.dumps([to_json(host), examination.to_json()], allow_nan=False)
    for card in host.accelerators:
        if isinstance(card.usable, Known) and card.usable.value:
            assert card.nodes
            assert all(node.opened == "ok" for node in card.nodes)
