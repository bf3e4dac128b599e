"""`docker inspect` and `podman inspect`, whole or damaged, and devcontainer.json in its forms."""

import json
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.shapes.workload import ContainerEngine, Workload
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.readers import devcontainer, inspect


def container(host: dict[str, Any], **entry: Any) -> Workload:
    thing = {"Id": "0123456789abcdef", "Config": {}, "HostConfig": host, **entry}
    return inspect.read(json.dumps(thing, indent="\t"), path="x.json", files=NO_FILES)[0]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[null, 3]", '[{"RepoTags": [], "Config": {"Env": ["A=1"]}}]', '[{"HostConfig": null}]']
)
def test_what_is_no_container_holds_none(text: str) -> None:
    assert inspect.read(text, path="x.json", files=NO_FILES) == ()


def test_one_object_with_tabs_is_a_container_without_a_name() -> None:
    found = container({})
    assert (found.name, found.argv, found.entrypoint, found.container_engine) == (
        "0123456789ab",
        (),
        None,
        ContainerEngine.DOCKER,
    )


@pytest.mark.parametrize(
    ("asked", "count", "ids"),
    [
        ({"Count": -1, "DeviceIDs": None}, -1, ()),
        ({"Count": 0, "DeviceIDs": ["0"]}, None, ("0",)),
        ({"Count": 0, "DeviceIDs": None}, 0, ()),
        ({"Count": 2}, 2, ()),
        ({}, None, ()),
        ({"Count": 1, "DeviceIDs": ["0"]}, 1, ("0",)),
    ],
)
def test_requests_as_the_daemon_keeps_them(asked: dict[str, Any], count: int | None, ids: tuple[str, ...]) -> None:
    (found,) = container({"DeviceRequests": [asked]}).requests
    assert (found.count, found.ids) == (count, ids)


@pytest.mark.parametrize(
    ("entry", "rootless"),
    [
        ({"OCIRuntime": "crun"}, None),
        ({"OCIRuntime": "crun", "ConmonPidFile": "/run/containers/storage/x/conmon.pid"}, False),
        ({"OCIRuntime": "crun", "StaticDir": "/home/ana/.local/share/containers/storage/x"}, True),
        ({"OCIRuntime": "runc", "PidFile": "/run/user/1000/containers/x/pidfile"}, True),
        ({}, None),
    ],
)
def test_podman_without_root_is_known_by_its_folders(entry: dict[str, Any], rootless: bool | None) -> None:
    found = container({"Runtime": "oci"}, **entry)
    assert found.rootless is rootless
    assert found.runtime == entry.get("OCIRuntime", "oci")


@pytest.mark.parametrize("cut", [1, 40, 90])
def test_a_truncated_answer_is_refused(cut: int) -> None:
    text = json.dumps(
        [{"Id": "x", "Name": "/a", "HostConfig": {"Runtime": "runc"}, "Config": {"Env": ["A=1"]}}], indent=4
    )
    with pytest.raises(InputError) as caught:
        inspect.read(text[:-cut], path="x.json", files=NO_FILES)
    assert caught.value.id == "CF050"


@pytest.mark.parametrize(
    ("gpu", "arguments", "requests", "opaque"),
    [
        ("true", [], 1, ()),
        ('"true"', [], 1, ()),
        ("{}", [], 1, ()),
        ('"optional"', [], 0, ("--gpus",)),
        ("false", [], 0, ()),
        ("true", ["--gpus", "all"], 1, ()),
        ("null", ["--gpus=2"], 1, ()),
    ],
)
def test_an_editor_asks_for_cards(gpu: str, arguments: list[str], requests: int, opaque: tuple[str, ...]) -> None:
    text = f'{{"image": "x", "runArgs": {json.dumps(arguments)}, "hostRequirements": {{"gpu": {gpu}}}}}'
    (found,) = devcontainer.read(text, path="devcontainer.json", files=NO_FILES)
    assert (len(found.requests), found.opaque) == (requests, opaque)


def test_an_editor_that_uses_compose_leaves_the_container_to_it() -> None:
    text = '{"dockerComposeFile": "compose.yaml", "service": "x", "runArgs": ["--gpus", "all"]}'
    assert devcontainer.read(text, path="devcontainer.json", files=NO_FILES) == ()
    assert devcontainer.read("[]", path="devcontainer.json", files=NO_FILES) == ()
