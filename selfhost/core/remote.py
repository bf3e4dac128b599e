"""The eyes over a shell that is kept open elsewhere: a machine, a container, a pod. `sh` and `cat` are enough there."""

import errno
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from selfhost.core import far_look, far_script
from selfhost.core.device_env import is_device_variable, only_devices
from selfhost.core.errors import SelfhostError
from selfhost.core.far_errors import error_of
from selfhost.core.far_shell import FarShell, Reply, ShellGone, ShellSilent
from selfhost.core.redact import is_secret
from selfhost.core.system import Completed, Node

_LOOK_S = 10.0
_MOST_SHELLS = 4
T = TypeVar("T")


class RemoteSystem:
    """Implements System. A look is kept: the same question is asked once. Thread-safe.

    `open_shell` raises EnvironmentMissing in words when there is no way to a shell.
    """

    kubernetes: tuple[Mapping[str, Any], ...] = ()

    def __init__(self, open_shell: Callable[[], FarShell]) -> None:
        self._open_shell = open_shell
        self._idle = [open_shell()]
        self._places = threading.BoundedSemaphore(_MOST_SHELLS)
        self._lock = threading.Lock()
        self._replies: dict[str, Future[Reply]] = {}
        self._env = _FarEnv(self)
        self._look_around()

    @property
    def env(self) -> Mapping[str, str]:
        return self._env

    @property
    def ids(self) -> Mapping[str, Any]:
        try:
            lines = dict(line.split(":", 1) for line in self.read("/proc/self/status").splitlines() if ":" in line)
            uid, gid = (int(lines[key].split()[1]) for key in ("Uid", "Gid"))
        except (OSError, KeyError, ValueError, IndexError):
            return {}
        return {"uid": uid, "gid": gid, "groups": [int(group) for group in lines.get("Groups", "").split()]}

    def read(self, path: str) -> str:
        reply = self.ask(far_script.read(path), path)
        if reply.rc != 0:
            raise error_of(reply.stderr, path)
        # Their tokens and passwords are not ours to hold.
        return only_devices(reply.stdout) if path.startswith("/proc/") and path.endswith("/environ") else reply.stdout

    def listdir(self, path: str) -> tuple[str, ...]:
        reply = self.ask(far_script.listing(path), path)
        if reply.rc != 0:
            raise error_of(reply.stderr, path)
        return tuple(sorted(reply.stdout.splitlines()))

    def readlink(self, path: str) -> str:
        return far_script.target(self.ask(far_script.link(path), path), path)

    def stat(self, path: str) -> Node:
        return far_script.node(self.ask(far_script.status(path), path), path)

    def try_open(self, path: str) -> str:
        try:
            return far_script.opened(self.ask(far_script.opening(path), path), path)
        except TimeoutError:
            return "ETIMEDOUT"

    def disk(self, path: str) -> tuple[int, int]:
        return far_script.bytes_of(self.ask(far_script.space(path), path), path)

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Completed:
        """A command that hangs is ended there too, and its shell given up. `env` is added to what is set there."""
        asked = tuple(argv)
        try:
            reply = self._converse(far_script.command(asked, env, stdin), timeout_s)
        except ShellSilent as silent:
            _, said = far_script.without_pid(silent.stderr)
            return Completed(argv=asked, rc=124, stdout=silent.stdout, stderr=said, timed_out=True)
        except ShellGone as gone:
            return Completed(argv=asked, rc=255, stderr=gone.said or "the shell there is gone")
        if reply.rc == 127 and far_script.MISSING in reply.stderr:
            return Completed(argv=asked, rc=127, stderr=f"{asked[0]}: not found", missing=True)
        _, said = far_script.without_pid(reply.stderr)
        return Completed(argv=asked, rc=reply.rc, stdout=reply.stdout, stderr=said)

    def nvml(self) -> Mapping[str, Any]:
        return {}  # a library of that machine, which cannot be called from this one

    def libraries(self) -> tuple[str, ...] | None:
        reply = self.ask(far_script.LIBRARIES, "libraries")
        return tuple(dict.fromkeys(line for line in reply.stdout.splitlines() if ".so" in line)) or None

    def close(self) -> None:
        """End every shell that is not at work. Those that are end with this process at the latest."""
        with self._lock:
            idle, self._idle = self._idle, []
        for shell in idle:
            shell.close()

    def ask(self, script: str, subject: str) -> Reply:
        """What `script` said the first time. Raises OSError about `subject` when the way there broke or is too slow."""
        with self._lock:
            known = self._replies.get(script)
            if known is None:
                mine = self._replies[script] = Future[Reply]()
        if known is not None:
            return known.result()
        try:
            mine.set_result(self._converse(script, _LOOK_S))
        except ShellSilent:
            mine.set_exception(TimeoutError(errno.ETIMEDOUT, f"no answer within {_LOOK_S:.0f} s", subject))
        except ShellGone as gone:
            mine.set_exception(
                ConnectionError(errno.ECONNRESET, gone.said.strip() or "the shell there is gone", subject)
            )
        except SelfhostError as error:
            mine.set_exception(error)
        finally:
            mine.cancel()  # without an answer: nobody waits for one that will not come
        return mine.result()

    def _look_around(self) -> None:
        """What is looked at on every machine comes in one go: over a slow line each question costs a round trip."""
        try:
            found = far_look.parse(self._converse(far_look.SCRIPT, _LOOK_S * 2))
        except (ShellSilent, ShellGone):
            return  # then each is asked for by itself, and says what is wrong
        for script, reply in found:
            answered: Future[Reply] = Future()
            answered.set_result(reply)
            self._replies[script] = answered

    def _converse(self, script: str, timeout_s: float) -> Reply:
        with self._places:
            with self._lock:
                shell = self._idle.pop() if self._idle else None
            shell = shell or self._open_shell()
            try:
                reply = shell.ask(script, timeout_s)
            except ShellSilent as silent:
                shell.close()
                self._kill(shell.pid_there, far_script.without_pid(silent.stderr)[0])
                raise
            except BaseException:
                shell.close()
                raise
            with self._lock:
                self._idle.append(shell)
            return reply

    def _kill(self, *pids: str) -> None:
        """Ending the carrier leaves what runs in a container running: a second shell ends it by its number."""
        chosen = [pid for pid in pids if pid.isdecimal()]
        if not chosen:
            return
        shell = self._open_shell()
        try:
            shell.ask(f"kill -9 {' '.join(reversed(chosen))} 2>/dev/null", _LOOK_S)
        except (ShellGone, ShellSilent):
            return  # nothing more can be done from here
        finally:
            shell.close()


class _FarEnv(Mapping[str, str]):
    """Variables of the far shell, one by one: the rest of them never leaves that machine."""

    def __init__(self, system: RemoteSystem) -> None:
        self._system = system

    def __getitem__(self, name: str) -> str:
        if not name.isidentifier() or is_secret(name):
            raise KeyError(name)
        held = self._held()
        if name in held:
            return held[name]
        if is_device_variable(name):
            raise KeyError(name)
        reply = self._system.ask(far_script.variable(name), name)
        if reply.rc != 0:
            raise KeyError(name)
        return reply.stdout

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __len__(self) -> int:
        return len(self._held())

    def _held(self) -> Mapping[str, str]:
        names = self._system.ask(far_script.VARIABLES, "the environment").stdout.splitlines()
        chosen = tuple(dict.fromkeys(name for name in names if name.isidentifier() and is_device_variable(name)))
        if not chosen:
            return {}
        text = self._system.ask(far_script.values(chosen), "the environment").stdout
        return dict(zip(chosen, text.split("\0"), strict=False))
