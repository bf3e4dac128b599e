"""`kill -9` of `up` at many moments: a rerun converges to one checked engine, and nothing is left behind."""

import json
import os
import random
import signal
import threading
import time

import pytest

QUICK_POINTS = 6
ALL_POINTS = 36


def kill_at(world, moment) -> list[str]:
    """Start `up`, kill its whole session when `moment(elapsed_s, events)` says so; return the events it had shown."""
    process = world.start(*world.up_words())
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stderr), daemon=True)
    reader.start()
    began = time.monotonic()
    while process.poll() is None and not moment(time.monotonic() - began, lines):
        time.sleep(0.005)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()
    reader.join(timeout=30)
    process.stderr.close()
    return lines


def converges(world) -> None:
    done = world.up()
    assert done.returncode == 0, done.stderr[-3000:]
    engines = world.engines()
    assert len(engines) == 1, (engines, world.processes())
    found = world.status()
    assert found["state"] == "ready"
    assert found["pid"] in engines


@pytest.fixture(scope="module")
def duration_s(tmp_path_factory, fake_wheels):
    """How long an undisturbed first `up` takes here, so that the points are spread over all of it."""
    from tests.deploy.world import World

    world = World(base=tmp_path_factory.mktemp("undisturbed"), wheels=fake_wheels)
    began = time.monotonic()
    assert world.up().returncode == 0
    spent = time.monotonic() - began
    world.end()
    return spent


def campaign(make_world, duration_s: float, points: int) -> None:
    seen_steps = set()
    for number in range(points):
        world = make_world()
        share = (number + random.Random(number).random()) / points
        events = kill_at(world, lambda elapsed, _, limit=share * duration_s: elapsed >= limit)
        steps = [json.loads(line)["step"] for line in events if line.startswith("{") and line.endswith("}\n")]
        seen_steps.add(steps[-1] if steps else "start")
        converges(world)
        world.end()
    assert len(seen_steps) >= min(4, points), seen_steps


def test_a_rerun_converges_after_kills_at_some_moments(make_world, duration_s):
    campaign(make_world, duration_s, QUICK_POINTS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_rerun_converges_after_kills_at_many_moments(make_world, duration_s):
    campaign(make_world, duration_s, ALL_POINTS)


@pytest.mark.slow
def test_three_kills_in_a_row_and_a_rerun_converge(make_world, duration_s):
    world = make_world()
    for share in (0.35, 0.6, 0.85):
        kill_at(world, lambda elapsed, _, limit=share * duration_s: elapsed >= limit)
    converges(world)
    world.end()
