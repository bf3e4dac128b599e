import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from selfhost.core import processes
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.runtimes import members
from selfhost.runtimes.base import Launchable
from selfhost.runtimes.process import ProcessRuntime

HERE = Path(__file__).parent


def until(true: Callable[[], Any], *, timeout_s: float = 60.0) -> Any:
    """Wait for something to become true; a bound for hangs, not a measurement."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it never came true")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(state=tmp_path / "state", cache=tmp_path / "cache")


def of_folder(state: Path) -> list[processes.ProcessRef]:
    """Everything that a test with this state folder has left running, keepers and untagged children included."""
    among = processes.table()
    mark = str(state).encode()
    found = {pid for pid in among if any(mark in entry for entry in processes.environment(pid))}
    found |= processes.descendants(found, among)
    return [processes.ref(among[pid]) for pid in found - processes.ancestors(os.getpid(), among)]


@pytest.fixture
def runtime(paths: Paths) -> Iterator[ProcessRuntime]:
    made = ProcessRuntime(paths, LocalSystem())
    yield made
    names = [entry.name for entry in paths.deployments.iterdir()] if paths.deployments.exists() else []
    for name in names:
        made.stop(name, grace_s=0.5)
    left = of_folder(paths.state)
    for one in left:
        processes.send(one, signal.SIGKILL)
    assert left == [], "a test left processes behind"


@pytest.fixture
def toy(tmp_path: Path) -> Callable[..., Launchable]:
    """A launch of the toy engine with these flags."""

    def make(*flags: str, name: str = "toy", **more: Any) -> Launchable:
        key = tmp_path / "key"
        key.write_text("sk-test-1234\n")
        env = {"PYTHONPATH": str(HERE), **more.pop("env", {})}
        return Launchable(
            name=name,
            python=sys.executable,
            module="toy_engine",
            argv=flags,
            env=env,
            key_variable="VLLM_API_KEY",
            key_file=str(key),
            plan_digest=more.pop("plan_digest", "d" * 64),
            **more,
        )

    return make


def tags_of(pid: int) -> str:
    return members.value(pid, members.INSTANCE)
