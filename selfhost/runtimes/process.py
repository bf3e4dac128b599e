"""The runtime `process`: an engine as ordinary processes of this machine, kept by a keeper, found again by tags."""

import json
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import selfhost
from selfhost.core import processes
from selfhost.core.errors import EnvironmentMissing
from selfhost.core.files import write_atomic
from selfhost.core.lock import holder_of
from selfhost.core.paths import Paths
from selfhost.core.processes import ProcessRef
from selfhost.core.system import System
from selfhost.runtimes import members, ports, records
from selfhost.runtimes.base import STOP_GRACE_S, EngineState, Launchable, RuntimeInfo, Seen, StopReceipt
from selfhost.runtimes.environment import engine_environment
from selfhost.runtimes.file_log import FileLog
from selfhost.runtimes.keeper import LOCK_HELD
from selfhost.runtimes.look import look
from selfhost.runtimes.memory import memory_bytes
from selfhost.runtimes.run_folder import RunFolder

LAUNCH_SCHEMA = "selfhost.launch/1"
START_S = 30.0
"""A keeper needs a fraction of a second to start its engine; a machine that swaps needs more."""
KEEPER_SLACK_S = 8.0
"""What a keeper may need beyond the grace: killing, and writing down how it ended."""
POLL_S = 0.02


class ProcessRuntime:
    """Runs engines as processes. Satisfies runtimes.base.Runtime."""

    def __init__(self, paths: Paths, system: System) -> None:
        self._paths = paths
        self._system = system

    @property
    def info(self) -> RuntimeInfo:
        return RuntimeInfo(name="process", isolates=False, restarts=False, survives_reboot=False, sees_processes=True)

    def folder(self, name: str) -> RunFolder:
        return RunFolder(self._paths.deployment(name))

    def log(self, name: str) -> FileLog:
        return FileLog(self.folder(name).engine_log)

    def inspect(self, name: str) -> Seen:
        return look(self.folder(name), name)

    def processes(self, name: str) -> tuple[ProcessRef, ...]:
        """Every process of the deployment's engine, oldest first; the keeper is not one of them."""
        folder = self.folder(name)
        record, _ = records.read_engine(folder.engine)
        here = record is not None and record.boot_id == processes.boot_id()
        leader = record.leader if record is not None and here else None
        return members.of(folder.deployment, name, leader=leader)

    def memory_bytes(self, name: str) -> int | None:
        """What the engine's processes occupy together, pages that they share counted once; None when none runs."""
        return memory_bytes(self.processes(name))

    def port_holder(self, name: str, port: int) -> ports.Holder | None:
        """Whoever listens there, unless it is the deployment's own engine."""
        holder = ports.port_holder(port)
        own = holder is not None and holder.pid in {one.pid for one in self.processes(name)}
        return None if own else holder

    def keep(self, name: str, policy: str) -> bool:
        """Nobody starts a process again."""
        del name, policy
        return False

    def start(self, launch: Launchable) -> Seen:
        """Start the engine and return it, or the one that runs already (compare `plan_digest`).

        What an engine that ended left behind is ended first. Raises EnvironmentMissing.
        """
        folder = self.folder(launch.name)
        seen = self._settled(launch.name)
        if seen.alive:
            return seen
        processes.end(lambda: self.processes(launch.name), grace_s=launch.stop_grace_s)
        instance = secrets.token_hex(8)
        write_atomic(folder.launch, json.dumps(_launch_json(launch, instance), indent=1) + "\n")
        done = self._system.run(
            [sys.executable, "-m", "selfhost.runtimes.keeper", "--run", str(folder.deployment)],
            timeout_s=START_S,
            env=_keeper_environment(self._system.env, folder.deployment),
        )
        if not done.ok and done.rc != LOCK_HELD:
            raise _not_started(folder, launch, evidence=done.stderr)
        return self._await(launch, folder, before=seen.instance)

    def stop(self, name: str, *, grace_s: float) -> StopReceipt:
        """End the engine and everything it started, and look that nothing of it is left."""
        folder = self.folder(name)
        began = time.monotonic()
        seen = self.inspect(name)
        before = {one.pid: one for one in self.processes(name)}
        keepers = members.keepers(folder.deployment)
        forced = False
        if keepers:
            _tell_grace(folder.stop, grace_s)
            for keeper in keepers:
                processes.send(keeper, signal.SIGTERM)
            _wait_gone(keepers, timeout_s=grace_s + KEEPER_SLACK_S)
            ended, _ = records.read_exit(folder.exit)
            forced = ended is not None and ended.forced
        # No keeper, or one that was killed or hangs: its part is done here. Usually nothing is left to find.
        rest = processes.end(
            lambda: (*self.processes(name), *members.keepers(folder.deployment)), grace_s=0.0 if keepers else grace_s
        )
        left = {one.pid for one in rest.left}
        for stale in (folder.engine, folder.exit, folder.stop, folder.launch):
            stale.unlink(missing_ok=True)
        gone = {**before, **{one.pid: one for one in rest.ended if one not in keepers}}
        return StopReceipt(
            ended=tuple(one for pid, one in sorted(gone.items()) if pid not in left),
            seconds=time.monotonic() - began,
            forced=forced or rest.forced,
            listener_free=not (before and seen.port is not None and ports.listening(seen.port)),
            leftovers=rest.left,
        )

    def remove(self, name: str) -> StopReceipt:
        receipt = self.stop(name, grace_s=STOP_GRACE_S)
        folder = self.folder(name)
        if not receipt.leftovers:
            for made in (folder.run, folder.engine_log.parent):
                if made.exists():
                    shutil.rmtree(made)
        return receipt

    def _settled(self, name: str) -> Seen:
        """Look until a start that another command began has come to something."""
        deadline = time.monotonic() + START_S
        while True:
            seen = self.inspect(name)
            if seen.state is not EngineState.STARTING or time.monotonic() > deadline:
                return seen
            time.sleep(POLL_S)

    def _await(self, launch: Launchable, folder: RunFolder, *, before: str) -> Seen:
        """The engine as soon as its keeper recorded it, or why it was not started. `before`: the former instance."""
        deadline = time.monotonic() + START_S
        gone = False
        while time.monotonic() < deadline:
            seen = self.inspect(launch.name)
            if seen.state is EngineState.RUNNING:
                return seen
            if seen.state is EngineState.EXITED and seen.instance != before:
                ended, _ = records.read_exit(folder.exit)
                if ended is not None and ended.error:
                    raise _not_started(folder, launch, evidence=ended.error)
                return replace(seen, leftovers=())  # it ran and is gone already: whoever waits for it says why
            if seen.state is EngineState.GONE and not members.keepers(folder.deployment):
                if gone:  # twice: the first look may have fallen between the keeper's last record and its end
                    break
                gone = True
            time.sleep(POLL_S)
        raise _not_started(folder, launch, evidence=_tail(folder.keeper_log))


def _launch_json(launch: Launchable, instance: str) -> dict[str, object]:
    return {
        "schema": LAUNCH_SCHEMA,
        "name": launch.name,
        "instance": instance,
        "python": launch.python,
        "module": launch.module,
        "argv": list(launch.argv),
        "env": dict(launch.env),
        "key_variable": launch.key_variable,
        "key_file": launch.key_file,
        "plan_digest": launch.plan_digest,
        "port": launch.port,
        "stop_grace_s": launch.stop_grace_s,
        "log_limit_bytes": launch.log_limit_bytes,
        "log_keep": launch.log_keep,
    }


def _keeper_environment(user: Mapping[str, str], deployment: Path) -> dict[str, str]:
    """The engine's environment plus the mark of a keeper, and where to import the keeper from."""
    here = Path(selfhost.__file__).parent.parent
    return {**engine_environment(user), members.KEEPER: str(deployment), "PYTHONPATH": str(here)}


def _tell_grace(path: Path, grace_s: float) -> None:
    """How long the keeper may wait; on a full disk it uses its own figure, and the engine is ended all the same."""
    try:
        write_atomic(path, json.dumps({"grace_s": grace_s}) + "\n")
    except OSError:
        return


def _wait_gone(keepers: tuple[ProcessRef, ...], *, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and any(processes.runs(one.pid, one.start_ticks) for one in keepers):
        time.sleep(POLL_S)


def _not_started(folder: RunFolder, launch: Launchable, *, evidence: str) -> EnvironmentMissing:
    lines = [line for line in evidence.splitlines() if line.strip()]
    holder = holder_of(folder.lock)
    return EnvironmentMissing(
        f"the engine of {launch.name} could not be started",
        why=f"`{launch.python} -m {launch.module}` is started by a small keeper process, and that did not get so far."
        + (f" The lock of the deployment is held by pid {holder.get('pid', '?')}." if holder is not None else ""),
        fix=(
            f"look at the keeper's own words:\nless {folder.keeper_log}",
            f"end what may be left of it, then start again:\nselfhost down {launch.name}",
        ),
        evidence="\n".join(lines[-5:]),
        id="RT050",
    )


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - 4096))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
