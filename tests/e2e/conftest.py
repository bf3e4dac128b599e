"""Real engine, real model. The engine's environment is shared with the user's cache: it costs minutes and gigabytes."""

import os
from pathlib import Path

import pytest

from tests.e2e.world import World
from tests.engines.contract.conftest import published  # noqa: F401 - a fixture
from tests.fakes import wheels

_OWN_CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
_PIP = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
_HOME = str(Path.home())


@pytest.fixture
def real_world(tmp_path):
    """A world with its own state and the user's own engine cache and pip settings."""
    world = World(
        base=tmp_path,
        wheels=None,
        extra_env={**_PIP, "XDG_CACHE_HOME": _OWN_CACHE, "HOME": _HOME, "HF_HOME": str(tmp_path / "hf")},
    )
    yield world
    if world.processes():
        world.end()


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def fake_wheels(tmp_path_factory):
    """A folder from which real pip installs an engine that is the fake one."""
    folder = tmp_path_factory.mktemp("wheels")
    wheels.engine_wheels(folder)
    return folder


@pytest.fixture
def make_world(tmp_path, fake_wheels):
    made: list[World] = []

    def make(**extra: str) -> World:
        world = World(base=tmp_path / f"home{len(made)}", wheels=fake_wheels, extra_env=extra)
        world.base.mkdir()
        made.append(world)
        return world

    yield make
    for world in made:
        if world.processes():
            world.end()


@pytest.fixture(scope="session")
def parser_python(engine_python):
    """A Python in which the engines' own parsers can be read."""
    return str(engine_python)
