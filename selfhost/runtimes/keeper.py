"""The keeper: a small process beside each engine that starts it, writes down how it ended and leaves nothing behind.

`python -m selfhost.runtimes.keeper --run DEPLOYMENT` is started by runtimes.process and goes on without it. Standard
library only, and everything is imported at the start: the keeper may outlive an upgrade of selfhost. Why it is there
at all: docs/decisions/001-the-keeper.md.
"""

import argparse
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from selfhost.core import processes
from selfhost.core.files import ensure_folder
from selfhost.core.lock import me
from selfhost.core.processes import ProcessRef
from selfhost.runtimes import logfiles, members, records
from selfhost.runtimes.records import EngineRecord, ExitRecord
from selfhost.runtimes.run_folder import RunFolder

LOCK_HELD = 75
"""Exit code of a keeper (EX_TEMPFAIL): another keeper or an engine of this deployment holds the lock."""
LOCK_WAIT_S = 1.0
"""`inspect` tries the lock for an instant; only one that stays held means another engine."""
TICK_S = 1.0
LEFTOVER_GRACE_S = 5.0
PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    parser = argparse.ArgumentParser(prog="selfhost-keeper")
    parser.add_argument("--run", required=True, help="folder of the deployment")
    folder = RunFolder(Path(parser.parse_args().run))
    lock = _take(folder.lock)
    if lock is None:
        sys.stderr.write("an engine of this deployment runs already\n")
        return LOCK_HELD
    for stale in (folder.engine, folder.exit, folder.stop):
        stale.unlink(missing_ok=True)  # of the engine before; whoever waits for us must not take it for ours
    if os.fork():  # the lock stays with the child, which shares its open file
        return 0
    os.setsid()
    _detach(folder.keeper_log)
    Keeper(folder, lock).keep()
    return 0


def _take(path: Path) -> int | None:
    """Hold `path` for as long as this process, or the engine that inherits the open file, lives."""
    ensure_folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(handle)
                return None
            time.sleep(0.05)
        else:
            return handle


def _detach(log: Path) -> None:
    """Let go of everything of the shell that started us."""
    os.chdir("/")
    ensure_folder(log.parent)
    nothing = os.open(os.devnull, os.O_RDWR)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    for source, target in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(out)


class Keeper:
    """Keeps one engine from its start to its end."""

    def __init__(self, folder: RunFolder, lock: int) -> None:
        self.folder = folder
        self.name = folder.deployment.name
        self._lock = lock
        self._asked_to_stop = False
        self._told_log = self._forced = False
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._oom_before = self._oom_now = _oom_kills()

    def keep(self) -> None:
        launch: dict[str, Any] = json.loads(self.folder.launch.read_bytes())
        self._lock_says()
        self._listen()
        try:
            engine = self._spawn(launch)
        except OSError as error:
            self._write_exit(launch["instance"], code=None, signal_number=None, error=str(error))
            return
        leader = self._record(engine, launch)
        code = self._watch(engine, launch)
        if code is None:
            code = self._stop(engine, leader, launch)
        self._write_exit(
            launch["instance"],
            code=code if code >= 0 else None,
            signal_number=-code if code < 0 else None,
        )
        self._end_all(leader, grace_s=LEFTOVER_GRACE_S)

    def _lock_says(self) -> None:
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps(me("selfhost keeper")).encode() + b"\n", 0)

    def _listen(self) -> None:
        """Signals wake the loop by a pipe; as handlers (and not ignored) they are back to normal in the engine."""

        def stop(_number: int, _frame: FrameType | None) -> None:
            self._asked_to_stop = True

        def nothing(_number: int, _frame: FrameType | None) -> None:
            return None

        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        for number in (signal.SIGCHLD, signal.SIGHUP):
            signal.signal(number, nothing)
        _adopt_orphans()

    def _spawn(self, launch: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        """Start the engine. It writes its log itself: it does not depend on the keeper in any way.

        It inherits the lock: should the keeper be killed, the lock stays held while the engine lives.
        """
        logfiles.begin(ensure_folder(self.folder.engine_log.parent) / self.folder.engine_log.name)
        log = os.open(self.folder.engine_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            return subprocess.Popen(
                [launch["python"], "-m", launch["module"], *launch["argv"]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder.run,
                env=self._environment(launch),
                start_new_session=True,
                pass_fds=(self._lock,),
            )
        finally:
            os.close(log)

    def _environment(self, launch: Mapping[str, Any]) -> dict[str, str]:
        """What runtimes.process left of the user's environment is our own; the key is read here, from its file."""
        env = {key: value for key, value in os.environ.items() if key not in (members.KEEPER, "PYTHONPATH")}
        env |= launch["env"]
        env |= members.tags(self.folder.deployment, self.name)
        env[members.INSTANCE] = launch["instance"]
        env[members.PLAN] = launch["plan_digest"]
        env[members.PORT] = "" if launch["port"] is None else str(launch["port"])
        if launch["key_variable"]:
            env[launch["key_variable"]] = Path(launch["key_file"]).read_text(encoding="utf-8").strip()
        return env

    def _record(self, engine: subprocess.Popen[bytes], launch: Mapping[str, Any]) -> ProcessRef:
        seen = processes.stat(engine.pid)  # our child: it has a stat until we ask for its exit code
        own = processes.me()
        record = EngineRecord(
            pid=engine.pid,
            start_ticks=seen.start_ticks if seen is not None else 0,
            boot_id=processes.boot_id(),
            keeper_pid=own.pid,
            keeper_start_ticks=own.start_ticks,
            instance=launch["instance"],
            plan_digest=launch["plan_digest"],
            port=launch["port"],
            started_at=time.time(),
            python=launch["python"],
            argv=("-m", launch["module"], *launch["argv"]),
            log=str(self.folder.engine_log),
        )
        self._write(self.folder.engine, record)
        return record.leader

    def _watch(self, engine: subprocess.Popen[bytes], launch: Mapping[str, Any]) -> int | None:
        """Wait for the engine's end: its return code, or None when we were asked to stop it."""
        while not self._asked_to_stop:
            code = engine.poll()
            if code is not None:
                return code
            _reap_others(engine.pid)
            self._oom_before, self._oom_now = self._oom_now, _oom_kills()
            self._shorten_log(launch)
            select.select([self._wake_read], [], [], TICK_S)
            _drain(self._wake_read)
        return None

    def _stop(self, engine: subprocess.Popen[bytes], leader: ProcessRef, launch: Mapping[str, Any]) -> int:
        self._forced = self._end_all(leader, grace_s=_grace(self.folder.stop, launch["stop_grace_s"]))
        try:
            return engine.wait(timeout=1.0)
        except subprocess.TimeoutExpired:  # in an uninterruptible wait: it is named among the leftovers
            return -int(signal.SIGKILL)

    def _end_all(self, leader: ProcessRef, *, grace_s: float) -> bool:
        """True when some had to be killed."""
        done = processes.end(lambda: members.of(self.folder.deployment, self.name, leader=leader), grace_s=grace_s)
        return done.forced

    def _write_exit(self, instance: str, *, code: int | None, signal_number: int | None, error: str = "") -> None:
        oom: bool | None = False
        if signal_number == signal.SIGKILL and not self._asked_to_stop:
            now = _oom_kills()
            oom = None if now is None or self._oom_before is None else now > self._oom_before
        record = ExitRecord(
            instance=instance,
            code=code,
            signal=signal_number,
            at=time.time(),
            stopped=self._asked_to_stop,
            forced=self._forced,
            out_of_memory=oom,
            error=error,
        )
        self._write(self.folder.exit, record)

    def _write(self, path: Path, record: EngineRecord | ExitRecord) -> None:
        """A full disk must not end the keeper: what runs is then found by its tags."""
        if not path.parent.is_dir():  # the deployment's folder was deleted while it ran
            return
        try:
            records.write(path, record)
        except OSError as error:
            sys.stderr.write(f"{path.name} could not be written: {error}\n")

    def _shorten_log(self, launch: Mapping[str, Any]) -> None:
        try:
            logfiles.shorten(self.folder.engine_log, limit_bytes=launch["log_limit_bytes"], keep=launch["log_keep"])
        except OSError as error:
            if not self._told_log:
                sys.stderr.write(f"{self.folder.engine_log} could not be shortened: {error}\n")
            self._told_log = True


def _grace(path: Path, default_s: float) -> float:
    """`stop` leaves the grace it wants in a file before it signals us."""
    try:
        return float(json.loads(path.read_bytes())["grace_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return default_s


def _oom_kills() -> int | None:
    """How often the kernel ended a process for lack of memory since boot (/proc/vmstat, Linux 4.13 and later)."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def _adopt_orphans() -> None:
    """Become the parent of what the engine's children leave behind, so that no zombie waits for a lazy init."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):  # a Python without ctypes: init adopts them, as usual
        return


def _reap_others(engine_pid: int) -> None:
    """Take the exit codes of adopted orphans; the engine's own is left for its Popen."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid == engine_pid:
            return
        os.waitpid(found.si_pid, 0)


def _drain(pipe: int) -> None:
    try:
        while os.read(pipe, 512):
            pass
    except BlockingIOError:
        return


if __name__ == "__main__":
    sys.exit(main())
