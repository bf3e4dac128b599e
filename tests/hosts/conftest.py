"""Recorded machines by name: tests/snapshots/NAME.json."""

from collections.abc import Callable
from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.shapes.host import Host

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


@pytest.fixture
def host() -> Callable[[str], Host]:
    def load(name: str) -> Host:
        return detect(Recorded.load(SNAPSHOTS / f"{name}.json"))

    return load
