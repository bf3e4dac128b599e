"""Long commands: their lines as they come, and never a command that outlives us."""

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from selfhost.core.system import Completed

TETHER = """
import os, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
except (ImportError, OSError, AttributeError):
    pass
if os.getppid() != int(sys.argv[1]):
    os._exit(137)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Becomes a command that the kernel kills when we die, even by SIGKILL: prctl(2), PR_SET_PDEATHSIG (1), SIGKILL (9).

The setting survives exec; the look at the parent closes the gap before it was made. Run between fork and exec it would
be unsafe with threads (subprocess, preexec_fn), hence the small program.
"""
TAIL_LINES = 400
STREAM_GRACE_S = 3.0


def _nothing() -> None:
    return None


def stream(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    on_line: Callable[[str], None],
    on_tick: Callable[[], None] = _nothing,
    tick_s: float = 1.0,
) -> Completed:
    """Run a long command, handing on each line of its output (both streams, in order) as it comes.

    `on_tick` is called about every `tick_s`, output or not. The command never outlives this call, however it ends:
    by an exception, by SIGKILL. `stdout` of the result is the output's end. Call it from a thread that stays.
    """
    if shutil.which(argv[0], path=env.get("PATH", os.defpath)) is None:
        return Completed(argv=tuple(argv), rc=127, stderr=f"{argv[0]} is not there", missing=True)
    tail: deque[str] = deque(maxlen=TAIL_LINES)

    def line(text: str) -> None:
        tail.append(text)
        on_line(text)

    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", TETHER, str(os.getpid()), *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(env),
        start_new_session=True,
    ) as process:
        try:
            done = _pump(process, line, on_tick, tick_s=tick_s, deadline=time.monotonic() + timeout_s)
        finally:
            _end_group(process)
    rc = process.returncode if done else 124
    return Completed(argv=tuple(argv), rc=rc, stdout="\n".join(tail), timed_out=not done)


def _pump(
    process: subprocess.Popen[bytes],
    on_line: Callable[[str], None],
    on_tick: Callable[[], None],
    *,
    tick_s: float,
    deadline: float,
) -> bool:
    """Read until the command has ended and said everything; False when the deadline came first."""
    if process.stdout is None:
        raise ValueError("no pipe")
    pipe = process.stdout.fileno()
    pending = b""
    next_tick = time.monotonic() + tick_s
    while (now := time.monotonic()) < deadline:
        if now >= next_tick:
            on_tick()
            next_tick = time.monotonic() + tick_s
        ended = process.poll() is not None
        # A background child may hold the pipe open after the end: what is there is read, more is not waited for.
        ready, _, _ = select.select([pipe], [], [], 0.2 if ended else max(0.0, min(tick_s, next_tick - now)))
        chunk = os.read(pipe, 65536) if ready else b""
        if chunk:
            *lines, pending = (pending + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                on_line(line.decode("utf-8", "replace"))
        elif ready or ended:
            if pending:
                on_line(pending.decode("utf-8", "replace"))
            return _ends(process, deadline)
    return False


def _ends(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """It closed its output: usually the end."""
    try:
        process.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a command that still runs, with everything it started in its session."""
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, number)
        try:
            process.wait(timeout=STREAM_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
        return
