"""Starts that share a card take turns, also when one of them takes several."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from selfhost.core.errors import Busy
from selfhost.deploy import apply


def run(folder: Path, name: str, device: str) -> Any:
    return SimpleNamespace(
        work=SimpleNamespace(paths=SimpleNamespace(devices=folder)),
        plan=SimpleNamespace(device=device, device_name="card", name=name),
        tell=lambda *_: None,
    )


@pytest.mark.parametrize(("first", "second", "waits"), [
    ("GPU-a,GPU-b", "GPU-b", True),
    ("GPU-b", "GPU-a,GPU-b", True),
    ("GPU-a", "GPU-b", False),
])  # fmt: skip
def test_a_shared_card_is_given_to_one_start_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str, waits: bool
) -> None:
    monkeypatch.setattr(apply, "DEVICE_WAIT_S", 0.05)
    with apply.device_turn(run(tmp_path, "one", first), command="up one"):
        if waits:
            with pytest.raises(Busy, match="one"), apply.device_turn(run(tmp_path, "two", second), command="up two"):
                pass
        else:
            with apply.device_turn(run(tmp_path, "two", second), command="up two"):
                pass
    with apply.device_turn(run(tmp_path, "two", second), command="up two"):
        pass
