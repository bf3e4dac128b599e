"""One shell on the far side, kept open: a script goes in, its output and its errors come back apart."""

import os
import secrets
import selectors
import subprocess  # noqa: TID251 - a conversation: System.run gives its input once and ends
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CHUNK = 65536
_GRACE_S = 1.0
# Errors are told by name, so in one language; a shell over ssh may not look where system tools are.
_GREETING = "export LC_ALL=C; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
_LIMIT = 64 * 1024 * 1024
"""Bytes of one reply; a file without an end must not fill our memory."""


class ShellGone(Exception):
    """The far shell ended or never came. `said` is what stood on stderr, `rc` how its carrier ended."""

    def __init__(self, rc: int | None, said: str) -> None:
        super().__init__(said)
        self.rc = rc
        self.said = said


class ShellSilent(Exception):
    """No reply in time. `stdout` and `stderr` hold what had come."""

    def __init__(self, stdout: str, stderr: str) -> None:
        super().__init__("no reply in time")
        self.stdout = stdout
        self.stderr = stderr


@dataclass(frozen=True, slots=True)
class Reply:
    """What one script said. Text that is not UTF-8 keeps its place with U+FFFD."""

    rc: int
    stdout: str
    stderr: str


class FarShell:
    """`argv` carries the shell (`docker exec -i NAME sh`). Not thread-safe: one conversation at a time."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], timeout_s: float) -> None:
        """Raises ShellGone, ShellSilent, or FileNotFoundError when the carrier is not installed."""
        # A session of its own: Ctrl-C on our terminal ends us first, and we end it.
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        )
        self._finalizer = weakref.finalize(self, _end, self._process)  # also at our exit
        self._mark = f"selfhost-{secrets.token_hex(8)}"
        try:
            hello = self.ask(f"{_GREETING}; printf %s $$", timeout_s)
        except BaseException:
            self.close()
            raise
        self.pid_there = hello.stdout
        """The shell's own process id on the far side."""

    def ask(self, script: str, timeout_s: float) -> Reply:
        """Run `script`, which must be whole commands and read no standard input. Raises ShellGone, ShellSilent."""
        mark = self._mark
        text = f"{script}\nset -- $?; printf '\\n{mark} %d\\n' $1; printf '\\n{mark}\\n' >&2\n"
        try:
            self._send(text.encode())
        except (BrokenPipeError, ValueError):
            raise self._gone(b"", b"") from None
        stdout, stderr = self._until_marks(time.monotonic() + timeout_s)
        body, _, rc = stdout.rpartition(f"\n{mark} ".encode())
        said = stderr.rpartition(f"\n{mark}".encode())[0]
        return Reply(int(rc), _text(body), _text(said))

    def close(self) -> None:
        self._finalizer()

    def _send(self, data: bytes) -> None:
        if self._process.stdin is None:
            raise ValueError("no pipe")
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _until_marks(self, deadline: float) -> tuple[bytes, bytes]:
        """Both streams up to their closing lines."""
        held = {"out": bytearray(), "err": bytearray()}
        ends = {"out": f"\n{self._mark} ".encode(), "err": f"\n{self._mark}\n".encode()}
        with selectors.DefaultSelector() as waiting:
            for name, pipe in (("out", self._process.stdout), ("err", self._process.stderr)):
                if pipe is not None:
                    waiting.register(pipe, selectors.EVENT_READ, name)
            while waiting.get_map():
                ready = waiting.select(max(0.0, deadline - time.monotonic()))
                if not ready or sum(map(len, held.values())) > _LIMIT:
                    raise ShellSilent(_text(bytes(held["out"])), _text(bytes(held["err"])))
                for key, _ in ready:
                    chunk = os.read(key.fd, _CHUNK)
                    if not chunk:
                        raise self._gone(bytes(held["out"]), bytes(held["err"]))
                    held[key.data] += chunk
                    tail = held[key.data][-len(chunk) - 64 :]
                    if ends[key.data] in tail and tail.endswith(b"\n"):
                        waiting.unregister(key.fileobj)
        return bytes(held["out"]), bytes(held["err"])

    def _gone(self, out: bytes, err: bytes) -> ShellGone:
        """What the carrier has still to say about its end belongs to the reason."""
        _wait(self._process, _GRACE_S)
        pipe = self._process.stderr
        if pipe is not None and not pipe.closed:
            os.set_blocking(pipe.fileno(), False)
            err += pipe.read() or b""
        return ShellGone(self._process.poll(), _text(err) or _text(out))


def _end(process: subprocess.Popen[bytes]) -> None:
    _wait(process, 0.2)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _wait(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """Close its input, which ends a shell that waits; kill the carrier when that was not enough."""
    try:
        if process.stdin is not None:
            process.stdin.close()
    except BrokenPipeError:
        grace_s = max(grace_s, _GRACE_S)  # it is ending already, with unread input
    try:
        process.wait(timeout=grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
