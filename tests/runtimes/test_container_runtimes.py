"""Real docker (20.10) and podman, each with its state in a folder of this module."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.runtimes.all import runtime_of
from selfhost.runtimes.base import ContainerRuntime, EngineState, Launchable, PortTaken
from selfhost.runtimes.ports import free_port
from selfhost.shapes.workload import CdiName, Form, Health, Mount, Ulimit, Workload
from tests.e2e.containers import ROOT, Client, docker, podman
from tests.runtimes.conftest import until
from tests.runtimes.contract import RuntimeContract
from tests.runtimes.toy_image import load, own_networks, short_folder

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
START = {"docker": docker, "podman": podman}


@pytest.fixture(scope="module", params=["docker", "podman"])
def loaded(request) -> Iterator[tuple[Client, str]]:
    with short_folder() as folder, START[request.param](folder) as client:
        own_networks(client)
        yield client, load(client, folder)


@pytest.fixture
def client(loaded) -> Client:
    return loaded[0]


@pytest.fixture
def runtime(loaded, paths: Paths) -> Iterator[ContainerRuntime]:
    client, _ = loaded
    made = runtime_of(client.kind, paths=paths, system=LocalSystem(client.env))
    yield made
    for name in client.run("ps", "-aq").split():
        client.run("rm", "-f", name)
    for name in client.run("network", "ls", "--filter", "label=io.selfhost.name", "--format", "{{.Name}}").split():
        client.run("network", "rm", name)


@pytest.fixture
def toy(loaded, tmp_path: Path) -> Callable[..., Launchable]:
    def make(*flags: str, name: str = "toy", **more: Any) -> Launchable:
        env_file = tmp_path / "engine.env"
        env_file.write_text("VLLM_API_KEY=sk-test-1234\n")
        port = more.get("port")
        inside = Workload(
            name="toy",
            argv=("--port", "8000", "--address", "0.0.0.0", *flags) if "--port" not in flags else
                 ("--address", "0.0.0.0", *flags),
            form=Form.COMPOSE,
            image=loaded[1],
            env={"HF_HUB_OFFLINE": "1"},
            env_files=(str(env_file),),
            ports=(f"127.0.0.1:{port}:{port}",) if port else (),
            cap_drop=("ALL",),
            security_opt=("no-new-privileges",),
            shm_bytes=64 * 1024**2,
            init=True,
            stop_grace_s=5.0,
            restart="no",
            labels={"io.selfhost.name": name, "io.selfhost.version": "0"},
        )  # fmt: skip
        workload = more.pop("workload", lambda one: one)(inside)
        digest = more.pop("plan_digest", "d" * 64)
        return Launchable(name=name, workload=workload, workload_digest="w" * 64, plan_digest=digest, **more)

    return make


class TestContainerContract(RuntimeContract):
    """Docker and podman keep the contract of all runtimes."""


def inspected(client: Client, name: str = "selfhost-toy") -> dict[str, Any]:
    return json.loads(client.run("inspect", name))[0]


def serves(runtime: ContainerRuntime) -> None:
    until(lambda: "serves" in runtime.log("toy").last(None))


def test_what_was_asked_for_is_what_the_engine_shows(runtime, toy, client, tmp_path) -> None:
    (tmp_path / "model").mkdir()
    health = Health(
        test=("python3", "-c", "import sys; sys.exit(0)"), interval_s=1, timeout_s=2, retries=3, start_period_s=60
    )
    port = free_port(18200)

    def more(workload: Workload) -> Workload:
        mounts = (
            Mount(target="/model", source=str(tmp_path / "model"), read_only=True),
            Mount(target="/var/tmp", source="selfhost-cache-toy", kind="volume"),
            Mount(target="/tmp", kind="tmpfs", size_bytes=2**20),
        )
        limits = (Ulimit(name="core", soft=0, hard=0),)
        env = {**workload.env, "WITH": "a b'c\"$d"}
        return replace(
            workload, mounts=mounts, ulimits=limits, health=health, user="65534:65534", read_only=True, env=env
        )

    seen = runtime.start(toy("--port", str(port), port=port, workload=more))
    serves(runtime)
    shown = inspected(client)
    host, config = shown["HostConfig"], shown["Config"]
    assert host["ReadonlyRootfs"] is True
    assert host["Privileged"] is False
    assert host["ShmSize"] == 64 * 1024**2
    assert any("no-new-privileges" in one for one in host["SecurityOpt"])
    assert host["Init"] is True
    assert host["NetworkMode"] == "selfhost-toy" or list(shown["NetworkSettings"]["Networks"]) == ["selfhost-toy"]
    assert [one["HostIp"] for one in host["PortBindings"][f"{port}/tcp"]] == ["127.0.0.1"]
    assert config["User"] == "65534:65534"
    assert {"WITH=a b'c\"$d", "HF_HUB_OFFLINE=1", "VLLM_API_KEY=sk-test-1234"} <= set(config["Env"])
    assert {(one["Destination"], one["RW"]) for one in shown["Mounts"] if one["Type"] != "tmpfs"} == {
        ("/model", False),
        ("/var/tmp", True),
    }
    limit = next(one for one in host["Ulimits"] if "CORE" in one["Name"].upper())
    assert (limit["Soft"], limit["Hard"]) == (0, 0)
    checked = client.kind == "docker"  # podman has systemd run health checks, and there is none here
    test = (config.get("Healthcheck") or {}).get("Test")
    assert test == (["CMD", "python3", "-c", "import sys; sys.exit(0)"] if checked else None)
    labels = config["Labels"]
    assert labels["io.selfhost.name"] == "toy"
    assert (labels["io.selfhost.digest"], labels["io.selfhost.workload"]) == ("d" * 64, "w" * 64)
    assert labels["io.selfhost.instance"] == seen.instance
    assert (seen.port, seen.health, seen.restarts) == (port, "starting" if checked else "", 0)
    assert seen.image
    assert seen.container
    assert shown["Id"].startswith(seen.container)
    status = Path(f"/proc/{seen.pid}/status").read_text()
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    runtime.remove("toy")
    assert "selfhost-cache-toy" in client.run("volume", "ls", "--filter", "label=io.selfhost.version=0", "-q").split()
    client.run("volume", "rm", "selfhost-cache-toy")


def test_the_key_is_on_no_command_line(runtime, toy, loaded) -> None:
    class Listening(LocalSystem):
        said: ClassVar[list[str]] = []

        def run(self, argv, **more):
            self.said.extend(argv)
            return super().run(argv, **more)

    listening = runtime_of(loaded[0].kind, paths=runtime._paths, system=Listening(loaded[0].env))
    listening.start(toy())
    assert not [word for word in Listening.said if "sk-test-1234" in word]


def test_a_container_of_that_name_that_is_not_ours_is_refused_and_left_alone(runtime, toy, loaded) -> None:
    client, image = loaded
    theirs = client.run("create", "--name", "selfhost-toy", image)
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(toy())
    assert raised.value.id == "RT061"
    assert runtime.inspect("toy").state is EngineState.GONE
    assert runtime.remove("toy").removed == ()
    assert inspected(client)["Id"] == theirs


def test_the_container_of_another_state_folder_is_refused(runtime, toy, loaded, tmp_path) -> None:
    other = Paths(state=tmp_path / "other", cache=tmp_path / "cache")
    theirs = runtime_of(loaded[0].kind, paths=other, system=LocalSystem(loaded[0].env)).start(toy())
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(toy())
    assert raised.value.id == "RT061"
    assert str(tmp_path / "other") in raised.value.why
    assert runtime.remove("toy").removed == ()
    assert inspected(loaded[0])["Id"].startswith(theirs.container)


def test_a_network_of_that_name_that_is_not_ours_is_refused(runtime, toy, client) -> None:
    client.run("network", "create", "selfhost-toy")
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(toy())
    assert raised.value.id == "RT062"
    client.run("network", "rm", "selfhost-toy")


def test_a_port_that_somebody_has_is_told_as_such_and_leaves_no_container(runtime, toy, client) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken):
            runtime.start(toy("--port", str(port), port=port))
    assert client.run("ps", "-aq") == ""


def test_an_engine_killed_by_signal_9_is_told_and_a_new_start_takes_its_place(runtime, toy, client) -> None:
    first = runtime.start(toy(workload=lambda one: replace(one, init=False)))
    serves(runtime)
    os.kill(first.pid, signal.SIGKILL)
    seen = until(lambda: (look := runtime.inspect("toy")).state is EngineState.EXITED and look)
    assert (seen.exit_code, seen.signal, seen.out_of_memory) == (None, 9, None)
    second = runtime.start(toy())
    assert second.instance != first.instance
    assert len(client.run("ps", "-aq").split()) == 1


def test_keeping_sets_the_restart_policy_of_what_runs(runtime, toy, client) -> None:
    first = runtime.start(toy())
    kept = runtime.keep("toy", "unless-stopped")
    assert kept == (client.kind == "docker")  # podman can since 5.1
    assert inspected(client)["HostConfig"]["RestartPolicy"]["Name"] in ("unless-stopped" if kept else "no", "")
    assert runtime.inspect("toy").instance == first.instance


def test_an_engine_that_is_started_again_and_again_is_one_that_ended(runtime, toy) -> None:
    runtime.start(toy("--exit", "3", workload=lambda one: replace(one, restart="on-failure:2")))
    seen = until(lambda: (look := runtime.inspect("toy")).restarts == 2 and not look.alive and look)
    assert (seen.state, seen.exit_code) == (EngineState.EXITED, 3)


def test_down_finds_everything_by_label_when_the_state_is_lost(runtime, toy, client, paths) -> None:
    runtime.start(toy())
    anew = runtime_of(client.kind, paths=paths, system=LocalSystem(client.env))
    assert anew.names() == ("toy",)
    assert anew.remove("toy").removed == ("container selfhost-toy", "network selfhost-toy")
    assert client.run("ps", "-aq") == ""


def test_an_image_is_described_as_it_lies_here(runtime, loaded) -> None:
    image = runtime.image(loaded[1])
    assert image is not None
    assert image.platform == "linux/amd64"
    assert image.entrypoint == ("python3", "/workspace/toy_engine.py")
    assert image.id == "sha256:" + inspected(loaded[0], loaded[1])["Id"].removeprefix("sha256:")
    assert runtime.image("selfhost-test/none:1") is None


def test_an_image_that_is_not_here_is_not_pulled_by_a_start(runtime, toy) -> None:
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(toy(workload=lambda one: replace(one, image="localhost/selfhost-test/none:1")))
    assert raised.value.id == "RT074"


def test_a_folder_that_is_not_there_is_named(runtime, toy, tmp_path, client) -> None:
    missing = Mount(target="/model", source=str(tmp_path / "missing"), read_only=True)
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(toy(workload=lambda one: replace(one, mounts=(missing,))))
    assert raised.value.id == "RT085"
    assert str(tmp_path / "missing") in raised.value.evidence
    assert client.run("ps", "-aq") == ""


def test_devices_that_this_engine_does_not_know_are_told(runtime, toy, client) -> None:
    name = CdiName(kind="nvidia.com/gpu", name="0")
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.start(toy(workload=lambda one: replace(one, cdi=(name,))))
    assert raised.value.id == "RT073"
    assert client.run("ps", "-aq") == ""
    runtime.start(toy())


def test_a_start_that_is_killed_anywhere_is_taken_up_by_the_next_one(runtime, toy, loaded, paths) -> None:
    """`kill -9` of a process at 20 points of its start; then one container, one network."""
    client, image = loaded
    code = (
        "import sys\nfrom pathlib import Path\nfrom selfhost.core.paths import Paths\n"
        "from selfhost.core.system import LocalSystem\nfrom selfhost.runtimes.base import Launchable\n"
        "from selfhost.runtimes.all import runtime_of\nfrom selfhost.shapes.workload import Workload\n"
        f"paths = Paths(state=Path({str(paths.state)!r}), cache=Path({str(paths.cache)!r}))\n"
        f"workload = Workload(name='toy', argv=(), image={image!r}, labels={{'io.selfhost.name': 'toy'}})\n"
        f"runtime = runtime_of({client.kind!r}, paths=paths, system=LocalSystem())\n"
        "print('begins', flush=True)\n"
        "runtime.start(Launchable(name='toy', workload=workload))\n"
    )
    env = {**client.env, "PYTHONPATH": str(ROOT)}
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, timeout=120)
    whole = time.monotonic() - began
    runtime.remove("toy")
    for point in range(20):
        with subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(whole * point / 20)
            process.kill()
        seen = runtime.start(toy())
        assert seen.state is EngineState.RUNNING
        assert len(client.run("ps", "-aq").split()) == 1
        networks = client.run("network", "ls", "--filter", "label=io.selfhost.name=toy", "-q").split()
        assert len(networks) == 1
        runtime.remove("toy")
        assert client.run("ps", "-aq") == ""
        assert client.run("network", "ls", "--filter", "label=io.selfhost.name=toy", "-q") == ""
