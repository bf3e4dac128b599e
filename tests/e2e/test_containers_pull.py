"""`up` that has to pull: what is recorded, and what is said when it cannot."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.containers import Client, Daemon, docker_daemon
from tests.e2e.engine_images.stand_ins import cpu_stand_in
from tests.e2e.images import Layer, files
from tests.e2e.registry import PASSWORD, USER, Registry, registry, slow_door
from tests.e2e.world import World, settle

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("dockerd"),
        reason="a container engine of our own needs root and `make test`'s packages (scripts/test_tools.sh)",
    ),
]
REPOSITORY, TAG = "engines/vllm-cpu", "v1"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Filled once by a daemon that does nothing else."""
    with registry(tmp_path_factory.mktemp("r")) as made, docker_daemon(tmp_path_factory.mktemp("b")) as daemon:
        push(daemon.client, made, TAG)
        push(daemon.client, made, "arm", arch="arm64")
        push(daemon.client, made, "large", more=(files("large", {"opt/large": b"\0" * 640 * 2**20}),))
        yield made


def push(client: Client, made: Registry, tag: str, *, arch: str = "amd64", more: tuple[Layer, ...] = ()) -> None:
    name = f"{made.address}/{REPOSITORY}:{tag}"
    image = cpu_stand_in()
    client.load_images([replace(image, tags=(name,), arch=arch, layers=(*image.layers, *more))])
    client.run("push", name)
    client.run("image", "rm", name)


@pytest.fixture
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with docker_daemon(tmp_path_factory.mktemp("d")) as made:
        yield made


def world_of(client: Client, base: Path) -> World:
    variables = {name: client.env[name] for name in ("DOCKER_HOST", "DOCKER_CONFIG")}
    return World(base=base, wheels=None, extra_env=variables)


def up(world: World, image: str, *words: str) -> subprocess.CompletedProcess[str]:
    return world.up("--runtime", "docker", "--image", image, "--json", *words)


def error_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 4, done.stderr[-2000:]
    error: dict[str, Any] = json.loads(done.stdout)["error"]
    assert error["fix"]
    return error


def test_a_tag_is_pulled_and_its_digest_recorded_and_used(store: Registry, daemon: Daemon, tmp_path: Path) -> None:
    world, image = world_of(daemon.client, tmp_path), f"{store.address}/{REPOSITORY}:{TAG}"
    done = up(world, image)
    assert done.returncode == 0, done.stderr[-3000:]
    digest = store.digest(REPOSITORY, TAG)
    assert json.loads((world.folder / "lock.json").read_text())["image_digest"] == digest
    assert f"{image}@{digest}" in (world.folder / "bundle" / "compose.yaml").read_text()
    pulled = [json.loads(line) for line in done.stderr.splitlines() if '"fetch"' in line]
    assert any(event["total"] and event["done"] == event["total"] for event in pulled), "no bytes of a total were told"
    assert any("layers" in event["text"] for event in pulled)
    (coming,) = (event["text"] for event in pulled if event["text"].startswith("coming: "))
    size = sum(store.layers(REPOSITORY, TAG)) / 2**20
    told = re.fullmatch(rf"coming: the image {image} ([\d.,]+) MiB, more once unpacked, onto .* free", coming)
    assert told is not None, coming
    assert abs(float(told[1].replace(",", "")) - size) < 1
    assert world.down().returncode == 0


def test_a_tag_that_is_gone_is_named(store: Registry, daemon: Daemon, tmp_path: Path) -> None:
    error = error_of(up(world_of(daemon.client, tmp_path), f"{store.address}/{REPOSITORY}:v0"))
    assert error["id"] == "RT075"
    assert f"{REPOSITORY}:v0" in error["what"]


def test_an_image_for_another_processor_is_not_started(store: Registry, daemon: Daemon, tmp_path: Path) -> None:
    world = world_of(daemon.client, tmp_path)
    error = error_of(up(world, f"{store.address}/{REPOSITORY}:arm"))
    assert "arm64" in error["what"] + error["why"] + error["evidence"]
    assert daemon.client.run("ps", "-aq") == ""


def test_a_registry_that_wants_a_login_is_named_and_after_it_served_from(
    daemon: Daemon, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with registry(tmp_path_factory.mktemp("r"), login=True) as guarded:
        name = f"{guarded.address}/{REPOSITORY}:{TAG}"
        login = ("login", "--username", USER, "--password-stdin", guarded.address)
        daemon.client.run(*login, stdin=PASSWORD.encode())
        push(daemon.client, guarded, TAG)
        daemon.client.run("logout", guarded.address)

        world = world_of(daemon.client, tmp_path)
        error = error_of(up(world, name))
        assert error["id"] == "RT076"
        assert any(f"docker login {guarded.address}" in fix for fix in error["fix"])

        daemon.client.run(*login, stdin=PASSWORD.encode())
        done = up(world, name)
        assert done.returncode == 0, done.stderr[-3000:]
        assert PASSWORD not in "".join(path.read_text() for path in world.folder.rglob("*") if path.is_file())
        assert world.down().returncode == 0


@pytest.mark.timeout(300)
def test_a_daemon_that_dies_during_a_pull_is_told_and_the_next_up_goes_on(
    store: Registry, daemon: Daemon, tmp_path: Path
) -> None:
    world = world_of(daemon.client, tmp_path)
    with slow_door(store, bytes_per_s=8 * 10**6) as address:
        running = world.start(*world.up_words("--runtime", "docker", "--image", f"{address}/{REPOSITORY}:{TAG}"))
        lines = iter(running.stderr.readline, "")
        assert any('"fetch"' in line and "layers" in line for line in lines)
        time.sleep(1.0)
        daemon.kill()
        rest = running.communicate(timeout=60)[1]
        assert running.returncode == 4
        error = json.loads(next(line for line in rest.splitlines() if "selfhost.error" in line))["error"]
        assert error["id"] == "RT069", error
        assert not (world.folder / "bundle" / "compose.yaml").exists()
    daemon.start()
    done = up(world, f"{store.address}/{REPOSITORY}:{TAG}")
    assert done.returncode == 0, done.stderr[-3000:]
    assert world.down().returncode == 0


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    place = folder / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        assert settle(lambda: subprocess.run(["umount", str(place)], capture_output=True).returncode == 0)


def fill(file: Path) -> None:
    size = 2**20
    with file.open("ab", buffering=0) as out:
        while size >= 1024:
            try:
                out.write(b"\0" * size)
            except OSError:
                size //= 2


def test_a_disk_that_is_nearly_full_is_told_before_anything_is_pulled(
    store: Registry, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with small_disk(tmp_path_factory.mktemp("s"), "90m") as place, docker_daemon(place) as daemon:
        error = error_of(up(world_of(daemon.client, tmp_path), f"{store.address}/{REPOSITORY}:{TAG}"))
        assert error["id"] == "RT011"
        assert str(place) in error["what"]
        assert daemon.client.run("image", "ls", "-q") == ""


def test_no_space_during_a_pull_is_told(
    store: Registry, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with small_disk(tmp_path_factory.mktemp("s"), "700m") as place, docker_daemon(place) as daemon:
        error = error_of(up(world_of(daemon.client, tmp_path), f"{store.address}/{REPOSITORY}:large"))
        assert error["id"] == "RT070", error
        assert "no space left" in error["evidence"]


def test_a_disk_that_fills_up_is_told_and_after_room_was_made_up_goes_on(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with small_disk(tmp_path_factory.mktemp("s"), "400m") as place, docker_daemon(place) as daemon:
        daemon.client.load_images([cpu_stand_in()])
        world = world_of(daemon.client, tmp_path)
        filler = place / "filler"
        fill(filler)
        done = world.up("--runtime", "docker", "--json")
        error = error_of(done)
        assert error["id"] == "RT070", error
        assert daemon.client.run("ps", "-aq") == ""
        filler.unlink()
        again = world.up("--runtime", "docker", "--json")
        assert again.returncode == 0, again.stderr[-3000:]
        assert world.down().returncode == 0


@pytest.mark.timeout(300)
def test_a_disk_that_is_filled_while_serving_is_no_end_of_it_and_the_next_start_names_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with small_disk(tmp_path_factory.mktemp("s"), "400m") as place, docker_daemon(place) as daemon:
        daemon.client.load_images([cpu_stand_in()])
        world = world_of(daemon.client, tmp_path)
        assert world.up("--runtime", "docker").returncode == 0
        filler = place / "filler"
        fill(filler)
        assert world.status()["state"] == "ready"
        again = world.up("--runtime", "docker", "--json", "--context", "512")
        if again.returncode:
            assert error_of(again)["id"] == "RT070"
            assert world.status()["state"] in ("ready", "stopped", "failed")  # the former one's end may make the room
        filler.unlink()
        assert world.up("--runtime", "docker").returncode == 0
        assert world.status()["state"] == "ready"
        assert world.down().returncode == 0
