"""Recorded machines by name, and what doctor says of one."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.recorded import Recorded
from selfhost.doctor.examine import Examination, examine
from selfhost.doctor.look import look
from selfhost.hosts.detect import detect

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


@pytest.fixture
def snapshot() -> Callable[[str], dict[str, Any]]:
    return lambda name: json.loads((SNAPSHOTS / f"{name}.json").read_text())


@pytest.fixture
def examined() -> Callable[[Mapping[str, Any]], Examination]:
    def examine_it(content: Mapping[str, Any]) -> Examination:
        system = Recorded(content)
        machine = detect(system, wide=True)
        return examine(machine, look(system, machine))

    return examine_it
