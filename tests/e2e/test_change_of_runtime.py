"""`up --runtime` on a deployment that another runtime has: it moves, and nothing of it stays where it was."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.containers import Client, docker_daemon, podman
from tests.e2e.engine_images.stand_ins import cpu_stand_in
from tests.e2e.world import World

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(shutil.which(program) for program in ("dockerd", "podman")),
        reason="container engines of our own need root and `make test`'s packages (scripts/test_tools.sh)",
    ),
]


@pytest.fixture
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Client]]:
    with (
        docker_daemon(tmp_path_factory.mktemp("d")) as daemon,
        TemporaryDirectory(prefix="p") as folder,
        podman(Path(folder)) as other,
    ):
        with Path(other.env["CONTAINERS_CONF"]).open("a") as conf:
            conf.write(f'[network]\nnetwork_config_dir = "{folder}/networks"\n')
        for client in (daemon.client, other):
            client.load_images([cpu_stand_in()])
        yield daemon.client, other


def left(client: Client) -> tuple[str, str]:
    label = "label=io.selfhost.name"
    networks = client.run("network", "ls", "--filter", label, "--format", "{{.Name}}")
    return client.run("ps", "-aq", "--filter", label), networks


def moved(world: World, runtime: str) -> subprocess.CompletedProcess[str]:
    done = world.up("--runtime", runtime)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.timeout(300)
def test_a_deployment_moves_between_runtimes_and_leaves_nothing(
    tmp_path: Path, engines: tuple[Client, Client], fake_wheels: Path
) -> None:
    docker, other = engines
    variables = {
        **{name: docker.env[name] for name in ("DOCKER_HOST", "DOCKER_CONFIG")},
        "CONTAINERS_CONF": other.env["CONTAINERS_CONF"],
        "PATH": other.env["PATH"],
    }
    world = World(base=tmp_path, wheels=fake_wheels, extra_env=variables)
    moved(world, "process")
    (process,) = world.engines()
    port = world.status()["url"]

    moved(world, "docker")
    assert not Path(f"/proc/{process}").exists()
    assert world.status()["url"] == port
    assert len(left(docker)[0].split()) == 1
    assert {path.name for path in (world.folder / "bundle").iterdir()} == {"compose.yaml", "README.txt"}

    moved(world, "podman")
    assert left(docker) == ("", "")
    assert len(left(other)[0].split()) == 1
    assert {path.name for path in (world.folder / "bundle").iterdir()} == {"run.sh", "README.txt"}

    moved(world, "process")
    assert left(other) == ("", "")
    assert len(world.engines()) == 1
    assert world.down().returncode == 0
    assert world.processes() == {}
