"""Real engine, real model. The engine's environment is shared with the user's cache: it costs minutes and gigabytes."""

import os
from pathlib import Path

import pytest

from tests.deploy.world import World

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
