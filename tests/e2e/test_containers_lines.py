"""The real engine by podman, by the rendered run line, and by the unit that Quadlet makes, run by hand."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import cpu_image
from tests.e2e.containers import Client, Daemon, adding, docker_daemon, podman
from tests.e2e.debian13 import unpacked
from tests.e2e.talking import ask_when_ready
from tests.e2e.test_containers_real import ENGINES, INSIDE
from tests.e2e.world import REASONER, ROOT, World

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("dockerd", "podman")),
        reason="container engines of our own need root and `make test`'s packages (scripts/test_tools.sh)",
    ),
]
SNAPSHOT = ROOT / "tests" / "snapshots" / "bare-no-cards.json"
"""A machine without a podman that is too old for Quadlet."""


@pytest.fixture(scope="module")
def by_podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with podman(tmp_path_factory.mktemp("p"), words=cpu_image.run_words(ENGINES)) as client:
        cpu_image.load(client)
        yield client


@pytest.fixture(scope="module")
def by_docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with docker_daemon(tmp_path_factory.mktemp("d")) as daemon:
        cpu_image.load(daemon.client)
        yield daemon


def test_up_serves_by_podman(real_world: World, by_podman: Client) -> None:
    world = real_world
    world.extra_env.update({name: by_podman.env[name] for name in ("CONTAINERS_CONF", "PATH")})
    words = ("up", "smollm2-135m", "--name", world.name, "--device", "cpu", "--runtime", "podman", "--yes", "--json")
    done = world.run(*words, timeout_s=700)
    try:
        assert done.returncode == 0, done.stderr[-4000:]
        name = f"selfhost-{world.name}"
        said = by_podman.run("exec", name, "python3", "-c", INSIDE.replace("MODEL", "smollm2-135m"))
        assert "Paris" in said
        (seen,) = json.loads(by_podman.run("inspect", name))
        assert not seen["EffectiveCaps"]
        assert seen["HostConfig"]["ReadonlyRootfs"]
        assert "no-new-privileges" in " ".join(seen["HostConfig"]["SecurityOpt"])
        assert seen["HostConfig"]["PortBindings"]["8000/tcp"][0]["HostIp"] == "127.0.0.1"
        assert {mount["Destination"]: mount["RW"] for mount in seen["Mounts"]}["/model"] is False
        assert seen["Config"]["Labels"]["io.selfhost.name"] == world.name
        assert world.status()["state"] == "ready"
    finally:
        gone = world.down()
    assert gone.returncode == 0, gone.stderr
    assert by_podman.run("ps", "-aq") == ""
    assert f"selfhost-{world.name}" not in by_podman.run("network", "ls")


def rendered(world: World, target: str, folder: Path, mode: str, port: int, *more: str) -> Path:
    done = world.run(
        "render", target, str(REASONER), "--name", world.name, "--device", "cpu", "--reasoning", mode,
        "--port", str(port), "-o", str(folder), *more,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("mode", ["on", "off"])
def test_the_run_line_serves_as_planned(real_world: World, by_docker: Daemon, tmp_path: Path, mode: str) -> None:
    folder = rendered(real_world, "docker", tmp_path / "files", mode, 18432)
    client = by_docker.client
    with_engine = adding(tmp_path / "bin" / "docker", [str(shutil.which("docker"))], cpu_image.run_words(ENGINES))
    env = {**client.env, "PATH": f"{with_engine.parent}:{client.env['PATH']}"}
    name = f"selfhost-{real_world.name}"
    started = subprocess.run(["sh", "run.sh"], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert started.returncode == 0, started.stderr
    try:
        check_mode(18432, folder, mode, log=lambda: client.run("logs", name))
    finally:
        client.run("rm", "-f", name)
        client.run("network", "rm", name)


@pytest.mark.parametrize("mode", ["on", "off"])
def test_the_unit_of_quadlet_serves_as_planned(real_world: World, by_podman: Client, tmp_path: Path, mode: str) -> None:
    folder = rendered(real_world, "quadlet", tmp_path / "files", mode, 18433, "--host", str(SNAPSHOT))
    generator = unpacked() / "usr" / "libexec" / "podman" / "quadlet"
    units = subprocess.run(
        [str(generator), "--dryrun", "--user"], env={"QUADLET_UNIT_DIRS": str(folder)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    name = f"selfhost-{real_world.name}"
    starts = [by_hand(line, tmp_path) for line in re.findall(r"^ExecStart=(.*)$", units, re.MULTILINE)]
    assert sorted(start[0] for start in starts) == ["network", "run", "volume"]
    try:
        for start in sorted(starts):
            if start[0] != "volume" or start[-1] not in by_podman.run("volume", "ls", "--quiet").split():
                by_podman.run(*start)
        check_mode(18433, folder, mode, log=lambda: by_podman.run("logs", name))
    finally:
        by_podman.run("rm", "-f", "-t", "0", name)
        by_podman.run("network", "rm", "-f", name)


def by_hand(line: str, folder: Path) -> list[str]:
    """The line of a unit without what only systemd and a newer podman have: its journal, its cgroup, `--ignore`."""
    words = shlex.split(line.replace("%t", str(folder)).replace("%N", "unit"))[1:]
    journal = words.index("--log-driver") if "--log-driver" in words else None
    if journal is not None:
        words[journal + 1] = "k8s-file"
    return [word for word in words if word not in ("--cgroups=split", "--ignore")]


def check_mode(port: int, folder: Path, mode: str, *, log) -> None:
    message = ask_when_ready(port, (folder / "key").read_text().strip(), REASONER.name, log=log)
    assert bool(message.get("reasoning")) is (mode == "on")
    assert message["content"]
