import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from selfhost.core.lock import Held, hold, holder_of

ROOT = Path(__file__).parents[2]
HOLDER = """
import os, sys, time
from pathlib import Path
from selfhost.core.lock import hold
with hold(Path(sys.argv[1]), {"pid": os.getpid(), "command": "up qwen3-4b"}):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def another_holder(path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            yield holder
        finally:
            holder.kill()


def test_the_second_is_told_who_holds_the_lock_and_gets_it_when_the_holder_is_killed(tmp_path):
    path = tmp_path / "qwen3-4b" / ".lock"
    with another_holder(path) as holder:
        who = {"pid": holder.pid, "command": "up qwen3-4b"}
        with pytest.raises(Held) as held, hold(path, {"pid": os.getpid()}):
            pass
        assert held.value.holder == who
        assert holder_of(path) == who
        told = []

        def end_holder(seen):
            told.append(seen)
            holder.send_signal(signal.SIGKILL)

        with hold(path, {"pid": os.getpid()}, wait_s=30, on_wait=end_holder):
            assert told == [who]
    assert holder_of(path) is None


def test_a_child_does_not_inherit_the_lock(tmp_path):
    path = tmp_path / ".lock"
    with hold(path, {}):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    with child:
        assert holder_of(path) is None
        child.kill()


def test_a_lock_without_words_is_held_by_somebody_unknown(tmp_path):
    path = tmp_path / ".lock"
    with hold(path, {"pid": 1}):
        os.truncate(path, 3)
        assert holder_of(path) == {}


def test_nobody_holds_a_lock_that_was_never_taken(tmp_path):
    assert holder_of(tmp_path / ".lock") is None
