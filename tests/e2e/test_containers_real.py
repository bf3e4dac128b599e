"""The real engine in containers: `up` to a checked endpoint, and the written files without selfhost."""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import cpu_image
from tests.e2e.containers import Client, Daemon, docker_daemon
from tests.e2e.debian13 import unpacked
from tests.e2e.world import REASONER, World, settle

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
ENGINES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "selfhost" / "engines"
INSIDE = (
    "import json, os, urllib.request as u; "
    "r = u.Request('http://127.0.0.1:8000/v1/chat/completions', headers={'Authorization': 'Bearer ' + "
    "os.environ['VLLM_API_KEY'], 'Content-Type': 'application/json'}, data=json.dumps({'model': 'MODEL', 'messages': "
    "[{'role': 'user', 'content': 'What is the capital of France?'}], 'max_tokens': 16, 'temperature': 0}).encode()); "
    "print(json.load(u.urlopen(r, timeout=60))['choices'][0]['message']['content'])"
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory) -> Iterator[Daemon]:
    with docker_daemon(tmp_path_factory.mktemp("docker")) as made:
        cpu_image.load(made.client)
        yield made


@pytest.fixture
def world(real_world, daemon: Daemon) -> Iterator[World]:
    real_world.extra_env.update({key: daemon.client.env[key] for key in ("DOCKER_HOST", "DOCKER_CONFIG")})
    yield real_world
    if real_world.folder.exists():
        real_world.down()


def with_engine(world: World) -> World:
    folder = world.folder / "bundle" / "overrides"
    folder.mkdir(parents=True)
    (folder / "compose.override.yaml").write_text(cpu_image.override(world.name, ENGINES))
    return world


def inspect(client: Client, world: World) -> dict[str, Any]:
    return json.loads(client.run("inspect", f"selfhost-{world.name}"))[0]


def ask(port: int, key: str, model: str) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        data=json.dumps(
            {"model": model, "messages": [{"role": "user", "content": "What is 3 + 4?"}], "max_tokens": 200}
        ).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return message


def test_up_serves_from_a_container_that_is_as_tight_as_promised_and_comes_back(world: World, daemon: Daemon) -> None:
    with_engine(world)
    words = ("up", "smollm2-135m", "--name", world.name, "--device", "cpu", "--runtime", "docker", "--yes", "--json")
    done = world.run(*words, timeout_s=600)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout)["runtime"] == "docker"

    seen = inspect(daemon.client, world)
    host, config = seen["HostConfig"], seen["Config"]
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert not host["Privileged"]
    assert any(option.startswith("no-new-privileges") for option in host["SecurityOpt"])
    assert host["ReadonlyRootfs"]
    assert host["Init"]
    assert host["PortBindings"]["8000/tcp"][0]["HostIp"] == "127.0.0.1"
    assert host["LogConfig"]["Config"]["max-size"]
    assert host["RestartPolicy"]["Name"] == "unless-stopped"  # only after the first checked start
    assert {mount["Destination"]: mount["RW"] for mount in seen["Mounts"]}["/model"] is False
    assert config["Labels"]["io.selfhost.name"] == world.name
    assert config["Healthcheck"]["StartPeriod"] >= 60 * 10**9
    names = {pair.partition("=")[0] for pair in config["Env"]}
    assert not {name for name in names if "TOKEN" in name or name.endswith("VISIBLE_DEVICES")}
    assert 'restart: "unless-stopped"' in (world.folder / "bundle" / "compose.yaml").read_text().replace(
        "restart: unless-stopped", 'restart: "unless-stopped"'
    )

    said = daemon.client.run("exec", f"selfhost-{world.name}", "python3", "-c", INSIDE.replace("MODEL", "smollm2-135m"))
    assert "Paris" in said

    again = world.run(*words, timeout_s=120)  # nothing to do: one request, no second smoke
    assert again.returncode == 0, again.stderr[-2000:]
    assert json.loads(again.stdout)["fresh"] is False

    daemon.stop()
    assert world.status()["state"] not in ("ready", "stopped")  # nobody can see it now
    daemon.start()
    assert settle(lambda: world.status()["state"] == "ready", timeout_s=180), world.status()

    gone = world.down()
    assert gone.returncode == 0, gone.stderr
    assert daemon.client.run("ps", "-aq") == ""
    left = daemon.client.run("network", "ls", "--filter", "label=io.selfhost.name", "-q")
    assert left == ""


@pytest.mark.parametrize("mode", [pytest.param("on", marks=pytest.mark.slow), "off"])
def test_the_compose_file_runs_without_selfhost_and_thinks_as_planned(
    world: World, daemon: Daemon, tmp_path: Path, mode: str
) -> None:
    folder = tmp_path / "files"
    done = world.run(
        "render", "compose", str(REASONER), "--name", world.name, "--device", "cpu", "--reasoning", mode, "-o",
        str(folder), "--port", "18431",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "engine.env").stat().st_mode & 0o777 == 0o600
    (folder / "overrides").mkdir()
    (folder / "overrides" / "compose.override.yaml").write_text(cpu_image.override(world.name, ENGINES))
    compose = [
        str(unpacked() / "usr/bin/docker-compose"), "-f", "compose.yaml", "-f", "overrides/compose.override.yaml",
    ]  # fmt: skip

    def run(*words: str) -> None:
        done = subprocess.run([*compose, *words], cwd=folder, env=daemon.client.env, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()

    run("up", "-d")
    try:
        key = (folder / "key").read_text().strip()
        deadline = time.monotonic() + 180
        while True:
            try:
                message = ask(18431, key, REASONER.name)
                break
            except OSError:
                assert time.monotonic() < deadline, daemon.client.run("logs", f"selfhost-{world.name}")[-3000:]
                time.sleep(1)
        thought = message.get("reasoning") or message.get("reasoning_content")
        assert bool(thought) is (mode == "on")
        assert message["content"] or thought
    finally:
        run("down")
