"""Keys of a snapshot that answer for docker, podman, NVML, the loader and the cluster."""

import json
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.core.recorded import Recorded

RUNNING, STOPPED = "a" * 64, "b" * 64
SNAPSHOT: dict[str, Any] = {
    "docker": {
        "info": {"ServerVersion": "28.1.1", "Runtimes": {"nvidia": {}}},
        "version": {"Server": {"Version": "28.1.1"}},
        "containers": [
            {"Id": RUNNING, "Name": "/llm", "State": {"Running": True}},
            {"Id": STOPPED, "Name": "/old", "State": {"Running": False}},
        ],
    },
    "podman": {"info": {"host": {"cgroupVersion": "v2"}}},
    "nvml": {"driver": "580.95.05"},
    "libraries": ["libcuda.so.1"],
    "ids": {"uid": 1000, "gid": 1000, "groups": [44, 992]},
    "kubernetes": {"objects": [{"kind": "Node"}]},
}


def run(*argv: str, snapshot: dict[str, Any] = SNAPSHOT) -> Any:
    return Recorded(snapshot).run(argv, timeout_s=1)


@pytest.mark.parametrize(
    ("argv", "key"),
    [
        (("docker", "info", "--format", "{{json .}}"), ("docker", "info")),
        (("docker", "info", "-f", "{{json .}}"), ("docker", "info")),
        (("docker", "version", "--format", "{{json .}}"), ("docker", "version")),
        (("podman", "info", "--format", "json"), ("podman", "info")),
    ],
)
def test_an_engine_describes_itself_by_its_key(argv: tuple[str, ...], key: tuple[str, str]) -> None:
    done = run(*argv)
    assert done.ok
    assert json.loads(done.stdout) == SNAPSHOT[key[0]][key[1]]


def test_a_recorded_command_wins_over_the_key() -> None:
    argv = ["docker", "info", "--format", "{{json .}}"]
    said = {"argv": argv, "rc": 1, "stdout": "", "stderr": "Cannot connect to the Docker daemon"}
    done = run(*argv, snapshot={**SNAPSHOT, "commands": [said]})
    assert (done.rc, done.stderr) == (1, "Cannot connect to the Docker daemon")


@pytest.mark.parametrize("name", ["llm", "/llm", RUNNING, RUNNING[:12]])
def test_a_container_is_known_by_its_name_and_by_the_beginning_of_its_id(name: str) -> None:
    assert [one["Id"] for one in json.loads(run("docker", "inspect", name).stdout)] == [RUNNING]


def test_a_container_that_is_not_there_is_said_as_docker_says_it() -> None:
    done = run("docker", "inspect", "llm", "ghost")
    assert (done.rc, done.stderr) == (1, "Error: No such object: ghost\n")
    assert len(json.loads(done.stdout)) == 1


def test_only_running_containers_are_listed_unless_all_are_asked_for() -> None:
    assert run("docker", "ps", "-q", "--no-trunc").stdout.split() == [RUNNING]
    assert run("docker", "ps", "-a", "-q", "--no-trunc").stdout.split() == [RUNNING, STOPPED]
    assert run("docker", "ps", "-aq").stdout.split() == [RUNNING[:12], STOPPED[:12]]


def test_an_engine_without_a_key_is_not_installed_and_one_with_any_key_is() -> None:
    assert run("podman", "info", "--format", "json", snapshot={}).missing
    done = run("podman", "version", "--format", "json")
    assert (done.missing, done.ok) == (False, False)


def test_the_other_keys_answer_their_own_questions() -> None:
    machine = Recorded(SNAPSHOT)
    assert machine.nvml() == {"driver": "580.95.05"}
    assert machine.libraries() == ("libcuda.so.1",)
    assert machine.ids["groups"] == [44, 992]
    assert [one["kind"] for one in machine.kubernetes] == ["Node"]
    bare = Recorded({})
    assert (bare.nvml(), bare.libraries(), bare.ids, bare.kubernetes) == ({}, None, {}, ())


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"docker": []}, "`docker` is not an object"),
        ({"docker": {"info": "text"}}, "docker.info is not an object"),
        ({"docker": {"containers": ["llm"]}}, "docker.containers is not a list of objects"),
        ({"kubernetes": {"objects": {}}}, "kubernetes.objects is not a list of objects"),
        ({"libraries": "libcuda.so"}, "`libraries` is not a list"),
        ({"libraries": [1]}, "libraries: entry 0"),
        ({"ids": {"uid": "0"}}, "ids: uid"),
        ({"ids": {"groups": [True]}}, "ids: groups"),
        ({"nvml": 3}, "`nvml` is not an object"),
    ],
)
def test_a_key_of_another_form_is_named(wrong: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError) as raised:
        Recorded(wrong)
    assert raised.value.id == "CF043"
    assert fault in raised.value.evidence
