"""What a look says about an engine reads as a clause of its own, after a colon or on a line of `status`."""

from pathlib import Path

import pytest

from selfhost.core import processes
from selfhost.runtimes import records
from selfhost.runtimes.base import EngineState
from selfhost.runtimes.look import look
from selfhost.runtimes.records import EngineRecord, ExitRecord
from selfhost.runtimes.run_folder import RunFolder


def ended(**how) -> ExitRecord:
    return ExitRecord(**{"instance": "i", "code": None, "signal": None, "at": 0.0, **how})


def recorded(boot_id: str) -> EngineRecord:
    gone = processes.me().pid, 1  # our own number with another start time: a process that is gone
    return EngineRecord(
        pid=gone[0],
        start_ticks=gone[1],
        boot_id=boot_id,
        keeper_pid=gone[0],
        keeper_start_ticks=gone[1],
        instance="i",
        plan_digest="d",
        port=None,
        started_at=0.0,
    )


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (ended(code=3), "the engine ended with exit code 3"),
        (ended(signal=15), "the engine was ended by SIGTERM"),
        (ended(signal=99), "the engine was ended by signal 99"),
        (
            ended(signal=9, out_of_memory=True),
            "the engine was killed (SIGKILL) just when the kernel ended a process for lack of memory",
        ),
        (ended(signal=15, stopped=True), "the engine was stopped"),
        (ended(error="[Errno 2] No such file"), "the engine could not be started: [Errno 2] No such file"),
    ],
)
def test_how_it_ended_is_said_with_its_subject(tmp_path: Path, record: ExitRecord, reason: str) -> None:
    folder = RunFolder(tmp_path / "toy")
    records.write(folder.exit, record)
    seen = look(folder, "toy")
    assert (seen.state, seen.reason) == (EngineState.EXITED, reason)
    records.write(folder.engine, recorded(processes.boot_id()))
    assert look(folder, "toy").reason == reason


def test_what_nobody_saw_is_said_to_be_so(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "toy")
    assert look(folder, "toy").reason == "no process of the engine runs"
    records.write(folder.engine, recorded(processes.boot_id()))
    assert look(folder, "toy").reason == "the engine and its keeper are gone, and nobody saw how they ended"
    records.write(folder.engine, recorded("another boot"))
    seen = look(folder, "toy")
    assert (seen.state, seen.instance) == (EngineState.GONE, "i")
    assert seen.reason == "the machine was restarted, and the engine ended with it"
