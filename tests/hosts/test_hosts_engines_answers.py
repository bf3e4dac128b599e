"""Container engines by what they said on real machines (tests/cases/host-fixtures/engines)."""

import json
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.shapes.fact import Known
from selfhost.shapes.surroundings import Engine

FIXTURES = Path(__file__).parent.parent / "cases" / "host-fixtures" / "engines"


def only(snapshot: dict[str, Any]) -> Engine:
    around = detect(Recorded({"schema": "selfhost.snapshot/1", **snapshot}), wide=True).surroundings
    assert around is not None
    (engine,) = around.engines
    return engine


def docker(name: str, **more: Any) -> Engine:
    return only({"docker": {"info": json.loads((FIXTURES / f"{name}.json").read_text("utf-8"))}, **more})


def said(*argv: str, name: str) -> Engine:
    return only({"commands": [{"argv": argv, "rc": 0, "stdout": (FIXTURES / name).read_text("utf-8")}]})


def test_docker_with_cdi_can_hand_in_by_name_runtime_and_gpus() -> None:
    engine = docker("docker-info.cdi-nvidia")
    assert (engine.version, engine.default_runtime) == ("29.4.3", "nvidia")
    assert engine.injects == ("nodes", "nvidia:cdi", "nvidia:gpus", "nvidia:runtime")
    assert "nvidia.com/gpu=1" in engine.cdi_devices


def test_docker_desktop_hands_in_no_nodes() -> None:
    engine = docker("docker-info.desktop")
    assert engine.desktop
    assert "nodes" not in engine.injects


def test_rootless_docker_says_so_and_without_a_runtime_hands_in_nodes_alone() -> None:
    engine = docker("docker-info.rootless")
    assert engine.rootless == Known(value=True, how="docker info, SecurityOptions")
    assert engine.injects == ("nodes",)


def test_a_snap_is_known_by_its_folder() -> None:
    engine = docker("docker-info.snap")
    assert (engine.snap, engine.desktop) == (True, False)
    assert engine.rootless == Known(value=False, how="docker info, SecurityOptions") or isinstance(
        engine.rootless, Known
    )


def test_docker_info_as_people_paste_it_is_read() -> None:
    engine = said("docker", "info", name="docker-info.in-lxd.txt")
    assert (engine.kind, engine.version, engine.cgroup_driver, engine.cgroup_version) == (
        "docker",
        "20.10.8",
        "cgroupfs",
        "1",
    )
    assert engine.runtimes == ("io.containerd.runc.v2", "io.containerd.runtime.v1.linux", "nvidia", "runc")
    assert isinstance(engine.cdi_enabled, Known)
    assert not engine.cdi_enabled.value


@pytest.mark.parametrize(
    ("name", "rootless"), [("podman-info.rootless.yaml", True), ("podman-info.in-docker.yaml", False)]
)
def test_podman_info_as_yaml_is_read(name: str, *, rootless: bool) -> None:
    engine = said("podman", "info", name=name)
    assert (engine.kind, engine.cgroup_version) == ("podman", "2")
    assert isinstance(engine.rootless, Known)
    assert engine.rootless.value is rootless
    assert "memory" in engine.controllers


def test_podman_behind_the_api_of_docker_is_podman() -> None:
    info = {
        "DockerRootDir": "/home/user/.local/share/containers/storage",
        "Architecture": "amd64",
        "ServerVersion": "5.2.2",
    }
    assert only({"docker": {"info": info}}).kind == "podman"


@pytest.mark.parametrize(
    ("stderr", "fix"),
    [
        (
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            "start it",
        ),
        ("permission denied while trying to connect to the Docker daemon socket", "usermod -aG docker"),
    ],
)
def test_a_daemon_that_does_not_answer_is_a_fact_with_its_reason(stderr: str, fix: str) -> None:
    asked = {
        "argv": ["docker", "info", "--format", "{{json .}}"],
        "rc": 1,
        "stdout": '{"ID":"","Name":""}',
        "stderr": stderr,
    }
    engine = only({"commands": [asked]})
    assert isinstance(engine.answers, Known)
    assert not engine.answers.value
    assert fix in engine.answers.how
    assert engine.injects == ()


def test_an_engine_elsewhere_is_named_by_its_address_without_the_user() -> None:
    engine = docker("docker-info.cdi-nvidia", env={"DOCKER_HOST": "ssh://me@gpu-box:2222"})
    assert engine.remote == "ssh://gpu-box:2222"


def test_a_mounted_socket_is_the_engine_of_the_machine_around() -> None:
    line = "900 800 0:25 /docker.sock /run/docker.sock rw,nosuid - tmpfs tmpfs rw\n"
    assert docker("docker-info.cdi-nvidia", files={"/proc/self/mountinfo": line}).sibling
