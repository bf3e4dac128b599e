"""Quadlet with podman's real generator (5.4, of Debian 13), this machine's podman, and a stand-in for systemd."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.runtimes.all import runtime_of
from selfhost.runtimes.base import EngineState, Launchable, PortTaken
from selfhost.runtimes.ports import free_port
from selfhost.runtimes.quadlet import QuadletRuntime
from selfhost.shapes.workload import Form, Workload
from tests.e2e.containers import Client, podman
from tests.e2e.debian13 import unpacked
from tests.runtimes.conftest import until
from tests.runtimes.contract import RuntimeContract
from tests.runtimes.toy_image import load, own_networks, short_folder

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
STAND_IN = Path(__file__).parent / "stand_in_systemd.py"


@pytest.fixture(scope="module")
def loaded() -> Iterator[tuple[Client, str]]:
    with short_folder() as folder, podman(folder) as client:
        own_networks(client)
        yield client, load(client, folder)


@pytest.fixture
def system(loaded, tmp_path: Path) -> LocalSystem:
    client, _ = loaded
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in ("systemctl", "journalctl"):
        (programs / program).write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {program} "$@"\n')
        (programs / program).chmod(0o755)
    state = tmp_path / "systemd"
    state.mkdir()
    more = {
        "PATH": f"{programs}:{client.env['PATH']}",
        "STAND_IN_SYSTEMD": str(state),
        "STAND_IN_QUADLET": str(unpacked() / "usr/libexec/podman/quadlet"),
        "QUADLET_UNIT_DIRS": str(tmp_path / "units"),
    }
    return LocalSystem({**client.env, **more})


@pytest.fixture
def runtime(loaded, system: LocalSystem, paths: Paths) -> Iterator[QuadletRuntime]:
    client, _ = loaded
    made = runtime_of("quadlet", paths=paths, system=system)
    assert isinstance(made, QuadletRuntime)
    yield made
    made.remove("toy")
    client.run("rm", "-af", "-t", "0")


@pytest.fixture
def toy(loaded, tmp_path: Path) -> Callable[..., Launchable]:
    def make(*flags: str, **more: Any) -> Launchable:
        bundle = tmp_path / "bundle"
        bundle.mkdir(exist_ok=True)
        (tmp_path / "engine.env").write_text("VLLM_API_KEY=sk-test-1234\n")
        words = ("--address", "0.0.0.0", *(() if "--port" in flags else ("--port", "8000")), *flags)
        port = more.get("port")
        unit = bundle / "selfhost-toy.container"
        unit.write_text(
            "# a rendered unit\n[Unit]\nDescription=toy\n\n[Container]\nContainerName=selfhost-toy\n"
            f"Image={loaded[1]}\nExec={' '.join(words)}\nNetwork=selfhost-toy.network\nRunInit=true\n"
            f"EnvironmentFile={tmp_path}/engine.env\nLabel=io.selfhost.name=toy\n"
            + (f"PublishPort=127.0.0.1:{port}:{port}\n" if port else "")
            + "\n[Service]\nRestart=on-failure\n"
        )
        network = "[Network]\nNetworkName=selfhost-toy\nLabel=io.selfhost.name=toy\n"
        (bundle / "selfhost-toy.network").write_text(network)
        workload = Workload(
            name="selfhost-toy", argv=words, form=Form.QUADLET, image=loaded[1], path=str(unit), restart="no"
        )
        digest = more.pop("plan_digest", "d" * 64)
        return Launchable(name="toy", workload=workload, workload_digest="w" * 64, plan_digest=digest, **more)

    return make


class TestQuadletContract(RuntimeContract):
    """Quadlet keeps the contract of all runtimes."""


def test_the_unit_that_runs_is_the_rendered_file_with_labels_below(runtime, toy, tmp_path) -> None:
    launch = toy()
    runtime.start(launch)
    installed = (tmp_path / "units" / "selfhost-toy.container").read_text()
    assert installed.startswith(Path(launch.workload.path).read_text())
    assert "Restart=no" in installed.splitlines()[-1]
    assert runtime.inspect("toy").workload_digest == "w" * 64


def test_a_drop_in_of_the_user_counts_and_is_never_written(runtime, toy, loaded, tmp_path) -> None:
    launch = toy()
    folder = tmp_path / "bundle" / "overrides" / "selfhost-toy.container.d"
    folder.mkdir(parents=True)
    (folder / "10-mine.conf").write_text("[Container]\nEnvironment=MINE=1\n")
    runtime.start(launch)
    assert "MINE=1" in loaded[0].run("inspect", "selfhost-toy", "--format", "{{.Config.Env}}").strip("[]").split()
    assert (folder / "10-mine.conf").read_text() == "[Container]\nEnvironment=MINE=1\n"
    runtime.remove("toy")
    assert [path.name for path in (tmp_path / "units").iterdir()] == []


def test_keeping_writes_what_systemd_shall_do_from_now_on(runtime, toy, tmp_path) -> None:
    first = runtime.start(toy())
    assert runtime.keep("toy", "unless-stopped")
    assert (tmp_path / "units" / "selfhost-toy.container").read_text().splitlines()[-1] == "Restart=always"
    assert runtime.inspect("toy").instance == first.instance


def test_a_link_in_the_place_of_the_unit_is_refused(runtime, toy, tmp_path) -> None:
    (tmp_path / "units").mkdir()
    mine = tmp_path / "mine.container"
    mine.write_text("[Container]\nImage=x\n")
    (tmp_path / "units" / "selfhost-toy.container").symlink_to(mine)
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(toy())
    assert raised.value.id == "RT083"
    assert mine.read_text() == "[Container]\nImage=x\n"
    (tmp_path / "units" / "selfhost-toy.container").unlink()


def test_a_container_of_that_name_that_is_not_ours_is_not_replaced(runtime, toy, loaded) -> None:
    client, image = loaded
    theirs = client.run("create", "--name", "selfhost-toy", image)
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(toy())
    assert raised.value.id == "RT061"
    assert client.run("inspect", "selfhost-toy", "--format", "{{.Id}}") == theirs
    client.run("rm", "-f", "selfhost-toy")


def test_a_unit_that_the_generator_refuses_is_told_with_its_words(runtime, toy) -> None:
    launch = toy()
    path = Path(launch.workload.path)
    path.write_text(path.read_text().replace("RunInit=true", "NoSuchKey=1"))
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(launch)
    assert raised.value.id == "RT083"


def test_a_port_that_somebody_has_is_told_as_such(runtime, toy) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken):
            runtime.start(toy("--port", str(port), port=port))


def test_what_an_earlier_start_said_is_not_taken_for_this_ones(runtime, toy) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken):
            runtime.start(toy("--port", str(port), port=port))
    runtime.remove("toy")
    launch = toy("--port", str(port), port=port)
    network = Path(launch.workload.path).with_suffix(".network")
    network.write_text(network.read_text() + "Subnet=10.1.2.3/99\n")
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(launch)
    assert not isinstance(raised.value, PortTaken)
    assert "invalid CIDR address" in raised.value.evidence


def test_without_systemd_it_says_so_and_names_podman(loaded, paths, toy, tmp_path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    system = LocalSystem({**loaded[0].env, "PATH": str(empty), "QUADLET_UNIT_DIRS": str(tmp_path / "units")})
    with pytest.raises(EnvironmentMissing) as raised:
        runtime_of("quadlet", paths=paths, system=system).start(toy())
    assert raised.value.id == "RT082"
    assert any("--runtime podman" in fix for fix in raised.value.fix)


def test_the_published_port_is_seen(runtime, toy) -> None:
    port = free_port(18300)
    runtime.start(toy("--port", str(port), port=port))
    until(lambda: "serves" in runtime.log("toy").last(None))
    assert runtime.inspect("toy").state is EngineState.RUNNING
    assert runtime.inspect("toy").port == port
