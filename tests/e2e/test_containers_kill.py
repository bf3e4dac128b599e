"""`kill -9` of `up` at many moments, and many at once, for docker and podman: one checked container, no orphan."""

import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.containers import Client, docker_daemon, podman
from tests.e2e.engine_images.stand_ins import cpu_stand_in
from tests.e2e.killing import at_step, at_time, kill_at
from tests.e2e.world import World

_ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or not all(shutil.which(program) for program in ("dockerd", "podman")),
    reason="a container engine of our own needs root and `make test`'s packages (scripts/test_tools.sh)",
)
pytestmark = [_ROOT, pytest.mark.slow]
STEPS = ("fetch", "render", "lint", "apply", "wait", "smoke")
DELAYS_S = (0.0, 0.05, 0.2)
LABEL = "label=io.selfhost.name"


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with docker_daemon(tmp_path_factory.mktemp("d")) as daemon:
        daemon.client.load_images([cpu_stand_in()])
        yield daemon.client


@pytest.fixture(scope="module")
def podman_alone() -> Iterator[Client]:
    """With networks of its own: root's are the machine's otherwise. Its run folder may have 50 characters."""
    with TemporaryDirectory(prefix="p") as folder, podman(Path(folder)) as made:
        with Path(made.env["CONTAINERS_CONF"]).open("a") as conf:
            conf.write(f'[network]\nnetwork_config_dir = "{folder}/networks"\n')
        made.load_images([cpu_stand_in()])
        yield made


@dataclass
class Figures:
    """What was seen, for a person: `pytest -s`."""

    killed_at: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    again_s: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        ordered = sorted(self.again_s)
        middle, most = ordered[len(ordered) // 2], ordered[-1]
        steps = ", ".join(f"{step} {count}" for step, count in sorted(self.killed_at.items()))
        left = ", ".join(f"{what} {count}" for what, count in sorted(self.after.items()))
        return (
            f"{len(ordered)} kills (at {steps}); left behind by them: {left or 'nothing'}; the next `up` took "
            f"{middle:.1f} s in the middle, {most:.1f} s at most"
        )


VARIABLES = ("DOCKER_HOST", "DOCKER_CONFIG", "CONTAINERS_CONF", "PATH")


class Place:
    """One user and one container engine; every deployment has a name of its own."""

    def __init__(self, base: Path, client: Client) -> None:
        self.client = client
        variables = {name: client.env[name] for name in VARIABLES if name in client.env}
        self.world = World(base=base, wheels=None, extra_env=variables)

    def words(self, name: str) -> tuple[str, ...]:
        self.world.name = name
        return self.world.up_words("--runtime", self.client.kind)

    def containers(self, name: str = "") -> list[str]:
        wanted = f"{LABEL}={name}" if name else LABEL
        return self.client.run("ps", "-aq", "--filter", wanted).split()

    def networks(self) -> list[str]:
        return self.client.run("network", "ls", "--filter", LABEL, "--format", "{{.Name}}").split()

    def volumes(self) -> list[str]:
        return self.client.run("volume", "ls", "--format", "{{.Name}}").split()

    def converges(self, name: str) -> None:
        done = self.world.run(*self.words(name), "--wait")
        assert done.returncode == 0, done.stderr[-3000:]
        assert len(self.containers(name)) == 1
        assert self.networks() == [f"selfhost-{name}"]
        assert self.world.status()["state"] == "ready"
        self.no_file_is_half(name)

    def no_file_is_half(self, name: str) -> None:
        """Nothing that a killed writer left, and what is there can be read to its end."""
        folder = self.world.folder.with_name(name)
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        assert {path for path in files if "damaged" in path or "edited" in path or path.count(".") > 2} == set()
        assert {"service.json", "plan.json", "lock.json", "checks.json", "key", "engine.env"} <= set(files)
        for path in (one for at, one in files.items() if at.endswith(".json")):
            json.loads(path.read_text())
        assert all(path.read_bytes().endswith(b"\n") for path in files.values() if path.name != ".lock")
        assert {at: oct(files[at].stat().st_mode)[-3:] for at in ("key", "engine.env")} == {
            "key": "600",
            "engine.env": "600",
        }

    def nothing_is_left(self) -> None:
        assert self.containers() == []
        assert self.networks() == []
        # The compile cache of the image stays, on purpose: one volume for all deployments of it.
        assert {volume.startswith("selfhost-cache-vllm-openai-cpu-v0.32.0") for volume in self.volumes()} <= {True}
        assert len(self.volumes()) <= 1
        deployments = self.world.folder.parent
        assert [path.name for path in deployments.iterdir()] == [], "files of a deployment that is down"


def _place(base: Path, client: Client) -> Iterator[Place]:
    made = Place(base, client)
    yield made
    for container in made.containers():
        client.run("rm", "-f", container)
    for network in made.networks():
        client.run("network", "rm", network)


@pytest.fixture
def place(tmp_path: Path, docker: Client) -> Iterator[Place]:
    yield from _place(tmp_path, docker)


@pytest.fixture
def podman_place(tmp_path: Path, podman_alone: Client) -> Iterator[Place]:
    yield from _place(tmp_path, podman_alone)


def campaign(place: Place, moments: list) -> Figures:
    figures = Figures()
    for number, moment in enumerate(moments):
        name = f"k{number}"
        figures.killed_at[kill_at(place.world, moment, place.words(name))] += 1
        figures.after.update(_left(place, name))
        began = time.monotonic()
        place.converges(name)
        figures.again_s.append(time.monotonic() - began)
        assert place.world.run("down", name).returncode == 0
        place.nothing_is_left()
    return figures


def _left(place: Place, name: str) -> list[str]:
    """podman 4 says `Up 2 seconds` where docker says `running`."""
    states = place.client.run("ps", "-a", "--filter", f"{LABEL}={name}", "--format", "{{.State}}").splitlines()
    return [f"{state.split()[0].lower()} container" for state in states] + ["network" for _ in place.networks()]


def test_a_rerun_converges_after_kills_at_some_moments(place: Place) -> None:
    figures = campaign(place, [at_step("apply", 0.1), at_step("wait", 0.05)])
    assert sum(figures.killed_at.values()) == 2


@pytest.mark.timeout(2400)
def test_a_rerun_converges_after_kills_at_many_moments(place: Place) -> None:
    began = time.monotonic()
    place.converges("undisturbed")
    spent_s = time.monotonic() - began
    assert place.world.run("down", "undisturbed").returncode == 0
    spread = random.Random(7)
    by_time = [at_time((number + spread.random()) / 34 * spent_s) for number in range(34)]
    by_step = [at_step(step, delay_s) for step in STEPS for delay_s in DELAYS_S]
    figures = campaign(place, [*by_time, *by_step])
    assert len(figures.again_s) >= 50
    assert {"render", "apply", "wait", "smoke"} <= set(figures.killed_at)
    print(f"\n{figures}")


@pytest.mark.timeout(1200)
def test_with_podman_a_rerun_converges_too(podman_place: Place) -> None:
    place = podman_place
    spread = random.Random(11)
    place.converges("undisturbed")
    assert place.world.run("down", "undisturbed").returncode == 0
    moments = [at_step(step, spread.random()) for step in (*STEPS, "apply", "apply", "wait", "smoke")]
    figures = campaign(place, moments)
    assert {"render", "apply", "wait", "smoke"} & set(figures.killed_at)
    print(f"\npodman: {figures}")


@pytest.mark.timeout(900)
def test_ten_at_once_on_one_deployment_leave_one_container(place: Place) -> None:
    print(f"\n10 at once on one deployment: exit codes {at_once(place, 10)}")


@pytest.mark.timeout(900)
def test_with_podman_some_at_once_on_one_deployment_leave_one_container(podman_place: Place) -> None:
    print(f"\npodman: 5 at once on one deployment: exit codes {at_once(podman_place, 5)}")


def at_once(place: Place, count: int) -> dict[int, int]:
    running = [place.world.start(*place.words("one")) for _ in range(count)]
    ends = Counter(_ended(process) for process in running)
    assert set(ends) <= {0, 4}, ends  # started or found it, or another one was at work (RT009)
    assert ends[0] >= 1
    assert len(place.containers("one")) == 1
    place.converges("one")
    assert place.world.run("down", "one").returncode == 0
    place.nothing_is_left()
    return dict(ends)


@pytest.mark.timeout(900)
def test_ten_deployments_at_once_all_serve_on_ports_of_their_own(place: Place) -> None:
    names = [f"many{number}" for number in range(10)]
    running = [place.world.start(*place.words(name), "--wait", "--json") for name in names]
    said = [process.communicate(timeout=800) for process in running]
    assert [process.returncode for process in running] == [0] * 10, [err[-1500:] for _, err in said]
    addresses = {json.loads(out)["base_url"] for out, _ in said}
    assert len(addresses) == 10
    assert len(place.containers()) == 10
    for name in names:
        assert place.world.run("down", name).returncode == 0
    place.nothing_is_left()


def _ended(process) -> int:
    process.communicate(timeout=800)
    return process.returncode
