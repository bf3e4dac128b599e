"""A docker daemon that goes while a model loads, a plan that is lost with it, a name that is taken; `down --purge`."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.e2e.containers import Daemon, docker_daemon, podman
from tests.e2e.engine_images.stand_ins import cpu_stand_in
from tests.e2e.world import World, settle

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("dockerd"),
        reason="a container engine of our own needs root and `make test`'s packages (scripts/test_tools.sh)",
    ),
]
LABEL = "label=io.selfhost.name"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with docker_daemon(tmp_path_factory.mktemp("d")) as made:
        made.client.load_images([cpu_stand_in()])
        yield made


@pytest.fixture
def daemon(served: Daemon) -> Iterator[Daemon]:
    yield served
    served.stop()
    served.start()
    for container in served.client.run("ps", "-aq").split():
        served.client.run("rm", "-f", container)
    for network in served.client.run("network", "ls", "--filter", LABEL, "-q").split():
        served.client.run("network", "rm", network)
    for volume in served.client.run("volume", "ls", "-q").split():
        served.client.run("volume", "rm", volume)


@pytest.fixture
def world(daemon: Daemon, tmp_path: Path) -> World:
    variables = {name: daemon.client.env[name] for name in ("DOCKER_HOST", "DOCKER_CONFIG")}
    return World(base=tmp_path, wheels=None, extra_env=variables, name="one")


def up(world: World, *words: str) -> dict[str, Any]:
    done = world.up("--runtime", "docker", "--json", *words)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def loads_for(world: World, seconds: float) -> None:
    """A model that takes long to load, by the file that is the user's."""
    own = world.folder / "bundle" / "overrides" / "compose.override.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"services": {world.name: {"environment": {"FAKE_ENGINE_START_S": str(seconds)}}}}))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("crash", [False, True], ids=["restarted", "crashed"])
def test_a_daemon_that_goes_while_the_model_loads_is_no_fault_of_the_engine(
    world: World, daemon: Daemon, crash: bool
) -> None:
    loads_for(world, 8)
    with world.start(*world.up_words("--runtime", "docker")) as running:
        lines = iter(running.stderr.readline, "")
        assert any('"wait"' in line and '"working"' in line for line in lines)
        assert settle(lambda: daemon.client.run("ps", "-q") != "", timeout_s=20)
        daemon.kill() if crash else daemon.stop()
        assert any("daemon of docker does not run" in line and "waiting for it" in line for line in lines)
        daemon.start()
        rest = running.communicate(timeout=120)[1]
    assert running.returncode == 4, rest[-3000:]
    error = json.loads(next(line for line in rest.splitlines() if "selfhost.error" in line))["error"]
    assert error["id"] == "RT120", error
    assert "docker was restarted while vLLM was at" in error["what"]
    assert any("selfhost up" in fix for fix in error["fix"])
    up(world)
    assert len(daemon.client.run("ps", "-q").split()) == 1
    assert world.down().returncode == 0


@pytest.mark.timeout(300)
def test_a_container_that_is_killed_while_the_model_loads_is_told_as_that(world: World, daemon: Daemon) -> None:
    loads_for(world, 20)
    with world.start(*world.up_words("--runtime", "docker")) as running:
        lines = iter(running.stderr.readline, "")
        assert any('"wait"' in line and '"working"' in line for line in lines)
        assert settle(lambda: daemon.client.run("ps", "-q") != "", timeout_s=20)
        daemon.client.run("kill", "--signal", "KILL", "selfhost-one")
        rest = running.communicate(timeout=60)[1]
    error = json.loads(next(line for line in rest.splitlines() if "selfhost.error" in line))["error"]
    assert error["id"] == "EF043", error
    assert "was ended by SIGKILL" in error["what"]
    assert world.down().returncode == 0


@pytest.mark.timeout(300)
def test_without_its_plan_and_its_daemon_it_is_unknown_and_down_removes_no_trace_of_it(
    world: World, daemon: Daemon
) -> None:
    up(world)
    (world.folder / "plan.json").unlink()
    assert world.status()["state"] != "unknown"
    daemon.stop()
    found = world.status()
    assert found["state"] == "unknown", found
    assert "daemon of docker does not run" in str(found["health"])
    refused = world.run("down", "one", "--json")
    assert refused.returncode == 4
    assert json.loads(refused.stdout)["error"]["id"] == "RT063"
    assert (world.folder / "bundle" / "compose.yaml").exists()
    daemon.start()
    assert world.down().returncode == 0
    assert daemon.client.run("ps", "-aq") == ""
    assert not world.folder.exists()


@pytest.mark.timeout(300)
def test_a_container_of_that_name_that_is_not_ours_is_refused_and_left_alone(world: World, daemon: Daemon) -> None:
    image = daemon.client.run("image", "ls", "-q").split()[0]
    theirs = daemon.client.run("create", "--name", "selfhost-one", "--network", "none", image)
    done = world.up("--runtime", "docker", "--json")
    assert done.returncode == 4
    error = json.loads(done.stdout)["error"]
    assert error["id"] == "RT061"
    assert any("--name" in fix for fix in error["fix"])
    assert world.down().returncode == 0
    assert daemon.client.run("ps", "-aq", "--no-trunc") == theirs


@pytest.mark.timeout(300)
def test_purge_takes_the_caches_too_but_never_those_of_another_deployment(world: World, daemon: Daemon) -> None:
    up(world)
    other = World(base=world.base, wheels=None, extra_env=world.extra_env, name="two")
    up(other)
    theirs = daemon.client.run("volume", "create", "somebody-elses")
    (volume,) = set(daemon.client.run("volume", "ls", "-q").split()) - {theirs}

    asked = world.run("down", "one", "--purge", "--json")
    assert asked.returncode == 2
    assert json.loads(asked.stdout)["error"]["id"] == "CF094"
    assert world.status()["state"] == "ready"

    kept = json.loads(world.run("down", "one", "--purge", "--yes", "--json").stdout)
    assert f"volume {volume}" not in kept["gone"]
    assert any(one["path"] == volume and "`two` uses it" in one["what"] for one in kept["kept"])
    assert other.status()["state"] == "ready"
    assert not world.folder.exists()

    last = json.loads(other.run("down", "two", "--purge", "--yes", "--json").stdout)
    assert {"container selfhost-two", "network selfhost-two", f"volume {volume}"} <= set(last["gone"])
    assert any(one["what"].startswith("image") for one in last["kept"])
    assert daemon.client.run("volume", "ls", "-q") == theirs
    assert daemon.client.run("image", "ls", "-q") != ""


@pytest.mark.timeout(300)
def test_caches_that_a_container_of_somebody_else_has_stay(world: World, daemon: Daemon) -> None:
    up(world)
    (volume,) = daemon.client.run("volume", "ls", "-q").split()
    image = daemon.client.run("image", "ls", "-q").split()[0]
    daemon.client.run("create", "--network", "none", "--volume", f"{volume}:/caches", image)
    said = json.loads(world.run("down", "one", "--purge", "--yes", "--json").stdout)
    assert any(one["path"] == volume and "another container has it" in one["what"] for one in said["kept"])
    assert daemon.client.run("volume", "ls", "-q") == volume


@pytest.mark.skipif(not shutil.which("podman"), reason="podman is not here")
def test_podman_behind_dockers_socket_is_told_and_its_own_runtime_named(tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="p") as folder, podman(Path(folder)) as client:
        address = f"unix://{folder}/d.sock"
        with subprocess.Popen([*client.argv, "system", "service", "--time=0", address], env=client.env) as service:
            try:
                assert settle(lambda: Path(folder, "d.sock").exists(), timeout_s=20)
                world = World(base=tmp_path, wheels=None, extra_env={"DOCKER_HOST": address}, name="one")
                done = world.up("--runtime", "docker", "--json")
            finally:
                service.terminate()
    assert done.returncode == 4, done.stderr[-2000:]
    error = json.loads(done.stdout)["error"]
    assert error["id"] == "RT068", error
    assert any("--runtime podman" in fix for fix in error["fix"])
