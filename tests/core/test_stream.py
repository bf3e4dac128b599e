import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from selfhost.core import processes
from selfhost.core.stream import stream

ROOT = Path(__file__).parent.parent.parent


def run(code: str, *, timeout_s: float = 30.0, **more):
    lines: list[str] = []
    done = stream([sys.executable, "-c", code], env=os.environ, timeout_s=timeout_s, on_line=lines.append, **more)
    return done, lines


def test_lines_of_both_streams_come_in_order_and_the_exit_code_is_kept() -> None:
    code = (
        "import sys\nprint('a', flush=True)\nprint('b', file=sys.stderr)\n"
        "print('c\\rd', end='', flush=True)\nsys.exit(7)"
    )
    done, lines = run(code)
    assert (done.rc, done.timed_out, done.missing) == (7, False, False)
    assert lines == ["a", "b", "c", "d"]
    assert done.stdout == "a\nb\nc\nd"


def test_ticks_come_without_output_and_a_time_out_is_a_result() -> None:
    ticks: list[int] = []
    done, lines = run("import time; time.sleep(600)", timeout_s=0.5, on_tick=lambda: ticks.append(1), tick_s=0.1)
    assert done.timed_out
    assert lines == []
    assert len(ticks) >= 2


def test_a_missing_program_is_a_result() -> None:
    done = stream(["/nowhere/program"], env=os.environ, timeout_s=5, on_line=print)
    assert (done.missing, done.rc) == (True, 127)


def test_an_exception_while_reading_ends_the_command_and_its_children() -> None:
    code = (
        "import subprocess, sys, os, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(os.getpid(), child.pid, flush=True)\ntime.sleep(600)"
    )
    pids: list[int] = []

    def stop(text: str) -> None:
        pids.extend(int(word) for word in text.split())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream([sys.executable, "-c", code], env=os.environ, timeout_s=30, on_line=stop)
    deadline = time.monotonic() + 10
    while set(pids) & processes.table().keys() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(pids) == 2
    assert not set(pids) & processes.table().keys()


def test_the_command_dies_with_us_even_when_we_are_killed() -> None:
    inner = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    code = (
        "import os, sys\nfrom selfhost.core.stream import stream\ndef say(text): print(text, flush=True)\n"
        f"stream([sys.executable, '-c', {inner!r}], env=os.environ, timeout_s=60, on_line=say)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    pid = int(parent.stdout.readline())
    started = processes.stat(pid).start_ticks
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    deadline = time.monotonic() + 10
    while processes.runs(pid, started) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not processes.runs(pid, started)


def test_a_background_child_that_keeps_the_pipe_does_not_keep_us() -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'], start_new_session=True)\n"
        "print(child.pid)"
    )
    done, lines = run(code, timeout_s=20)
    os.kill(int(lines[0]), signal.SIGKILL)
    assert done.ok
