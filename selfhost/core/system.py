"""The eyes: every file, device node and command that detection looks at goes through a System."""

import errno
import os
import select
import shutil
import signal
import stat as stat_module
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

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


NodeKind = Literal["c", "b", "d", "f", "l", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What `stat` says; major and minor only of device nodes. Follows links."""

    kind: NodeKind
    mode: int
    uid: int
    gid: int
    size: int = 0
    major: int = 0
    minor: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A finished command. `missing`: not installed; `timed_out`: ended by us, output up to then kept."""

    argv: tuple[str, ...]
    rc: int
    stdout: str = ""
    stderr: str = ""
    missing: bool = False
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.rc == 0 and not self.missing and not self.timed_out


class System(Protocol):
    """One machine as seen from one place. Paths are absolute. A refused or missing path raises OSError."""

    @property
    def env(self) -> Mapping[str, str]: ...

    def read(self, path: str) -> str: ...

    def listdir(self, path: str) -> tuple[str, ...]: ...

    def readlink(self, path: str) -> str: ...

    def stat(self, path: str) -> Node: ...

    def try_open(self, path: str) -> str:
        """`ok`, or the name of the errno: `EPERM`, `EACCES`, `ENXIO`, `ENOENT`."""
        ...

    def disk(self, path: str) -> tuple[int, int]:
        """Total and free bytes of the file system that holds `path` (or its nearest existing parent)."""
        ...

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Completed: ...


class LocalSystem:
    """This machine, from this process."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._env = dict(os.environ if env is None else env)

    @property
    def env(self) -> Mapping[str, str]:
        return self._env

    def read(self, path: str) -> str:
        return Path(path).read_text(encoding="utf-8", errors="replace")

    def listdir(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(entry.name for entry in Path(path).iterdir()))

    def readlink(self, path: str) -> str:
        return str(Path(path).readlink())

    def stat(self, path: str) -> Node:
        seen = Path(path).stat()
        kinds: tuple[tuple[bool, NodeKind], ...] = (
            (stat_module.S_ISCHR(seen.st_mode), "c"),
            (stat_module.S_ISBLK(seen.st_mode), "b"),
            (stat_module.S_ISDIR(seen.st_mode), "d"),
            (stat_module.S_ISREG(seen.st_mode), "f"),
        )
        return Node(
            kind=next((kind for true, kind in kinds if true), "other"),
            mode=stat_module.S_IMODE(seen.st_mode),
            uid=seen.st_uid,
            gid=seen.st_gid,
            size=seen.st_size,
            major=os.major(seen.st_rdev),
            minor=os.minor(seen.st_rdev),
        )

    def try_open(self, path: str) -> str:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, str(error.errno))
        return "ok"

    def disk(self, path: str) -> tuple[int, int]:
        place = Path(path)
        while not place.exists() and place != place.parent:
            place = place.parent
        usage = shutil.disk_usage(place)
        return usage.total, usage.free

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Completed:
        """Run `argv` without a shell. A missing program and a time-out are results, not exceptions."""
        try:
            done = subprocess.run(
                list(argv),
                input=stdin,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=timeout_s,
                env=dict(self._env if env is None else env),
                check=False,
            )
        except (FileNotFoundError, PermissionError) as error:
            return Completed(argv=tuple(argv), rc=127, stderr=str(error), missing=True)
        except subprocess.TimeoutExpired as expired:
            return Completed(
                argv=tuple(argv), rc=124, stdout=_text(expired.stdout), stderr=_text(expired.stderr), timed_out=True
            )
        return Completed(argv=tuple(argv), rc=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def stream(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        on_line: Callable[[str], None],
        on_tick: Callable[[], None] = _nothing,
        tick_s: float = 1.0,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a long command, handing on each line of its output (both streams, in order) as it comes.

        `on_tick` is called about every `tick_s`, output or not. The command never outlives this call, however it ends:
        by an exception, by SIGKILL. `stdout` of the result is the output's end. Call it from a thread that stays.
        """
        full = dict(self._env if env is None else env)
        if shutil.which(argv[0], path=full.get("PATH", os.defpath)) is None:
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
            env=full,
            start_new_session=True,
        ) as process:
            try:
                done = _pump(process, line, on_tick, tick_s=tick_s, deadline=time.monotonic() + timeout_s)
            finally:
                _end_group(process)
        rc = process.returncode if done else 124
        return Completed(argv=tuple(argv), rc=rc, stdout="\n".join(tail), timed_out=not done)


def _text(output: str | bytes | None) -> str:
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""


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
