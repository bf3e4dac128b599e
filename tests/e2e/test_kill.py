"""`kill -9` of `up` at many moments: a rerun converges to one checked engine, and nothing is left behind."""

import random
import time

import pytest

from tests.e2e.killing import at_step, at_time, kill_at
from tests.e2e.world import World

AFTER_FETCH = ("fetch", "render", "lint", "apply", "wait", "smoke")
DELAYS_S = (0.0, 0.01, 0.05, 0.2)


def converges(world) -> None:
    done = world.up()
    assert done.returncode == 0, done.stderr[-3000:]
    engines = world.engines()
    assert len(engines) == 1, (engines, world.processes())
    found = world.status()
    assert found["state"] == "ready"
    assert found["pid"] in engines


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, fake_wheels):
    """A first `up` that nobody disturbs: how long it takes here, and the cache that it leaves."""
    world = World(base=tmp_path_factory.mktemp("undisturbed"), wheels=fake_wheels)
    began = time.monotonic()
    assert world.up().returncode == 0
    spent_s = time.monotonic() - began
    world.end()
    return spent_s, world.base / "cache"


def campaign(make_world, points) -> set[str]:
    """Each point is (moment, extra environment). Returns the steps that were hit."""
    hit = set()
    for moment, extra in points:
        world = make_world(**extra)
        hit.add(kill_at(world, moment))
        converges(world)
        world.end()
    return hit


def test_a_rerun_converges_after_kills_at_some_moments(make_world, undisturbed):
    spent_s, cache = undisturbed
    warm = {"XDG_CACHE_HOME": str(cache)}
    points = [(at_time(0.45 * spent_s), {}), *((at_step(step, 0.02), warm) for step in ("apply", "wait", "smoke"))]
    assert {"wait", "smoke"} <= campaign(make_world, points)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_rerun_converges_after_kills_at_many_moments(make_world, undisturbed):
    spent_s, cache = undisturbed
    warm = {"XDG_CACHE_HOME": str(cache)}
    spread = random.Random(1)
    cold = [(at_time((number + spread.random()) / 12 * spent_s), {}) for number in range(12)]
    warmed = [(at_step(step, delay_s), warm) for step in AFTER_FETCH for delay_s in DELAYS_S]
    assert len(cold) + len(warmed) >= 30
    assert {"fetch", "render", "wait", "smoke"} <= campaign(make_world, [*cold, *warmed])


@pytest.mark.slow
def test_three_kills_in_a_row_and_a_rerun_converge(make_world, undisturbed):
    spent_s, _ = undisturbed
    world = make_world()
    for share in (0.35, 0.6, 0.85):
        kill_at(world, at_time(share * spent_s))
    converges(world)
    world.end()
