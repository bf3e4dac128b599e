"""An engine that ends while it is checked: said once, and nothing is asked of it any more."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from selfhost.core.http import Client
from selfhost.shapes.exit import ExitCode
from selfhost.smoke.runner import run

ENGINE = Path(__file__).parents[1] / "fakes" / "engine.py"


class Process:
    """The fake engine as a process, and the eyes on it."""

    def __init__(self, fault: str, key: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        argv = [sys.executable, "-S", str(ENGINE), "--port", str(self.port), "--served-model-name", "toy"]
        env = {**os.environ, "VLLM_API_KEY": key, "FAKE_ENGINE_START_S": "0.01", "FAKE_ENGINE_TOKEN_S": "0"}
        self.process = subprocess.Popen(
            [*argv, "--max-model-len", "1024", "--fault", fault],
            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def alive(self) -> bool:
        return self.process.poll() is None


@pytest.fixture
def started(bench):
    made = []

    def start(fault):
        engine = Process(fault, bench.key)
        made.append(engine)
        deadline = time.monotonic() + 20
        with Client(engine.url) as client:
            while client.get("models", timeout_s=1).status == 0 and time.monotonic() < deadline:
                time.sleep(0.02)
        return engine

    yield start
    for engine in made:
        engine.process.kill()
        engine.process.wait(timeout=10)


def test_the_check_that_saw_it_fails_with_it_and_later_ones_are_skipped(bench, started):
    engine = started("die-serve")
    report = run(bench.endpoint(engine.url), key=bench.key, inspector=engine, only=bench.quick)
    states = [(check.id, check.state, check.reason) for check in report.checks]
    failed = [place for place, (_, state, _) in enumerate(states) if state in ("failed", "error")]
    assert len(failed) == 1, states
    assert states[failed[0]][2].startswith("the engine ended: ")
    assert {(state, reason) for _, state, reason in states[failed[0] + 1 :]} == {("skipped", "the engine ended")}
    assert "selfhost explain toy" in "\n".join(report.findings[-1].fix)
    assert report.exit_code is ExitCode.NO


def test_the_last_check_says_what_ended_it(bench, started):
    engine = started("overlong-crash")
    report = run(bench.endpoint(engine.url), key=bench.key, inspector=engine, only=("SM500",))
    assert report.checks[-1].reason == "the engine ended: an input over the context stopped the server"
