"""Which processes of this machine belong to a deployment's engine, even when its record is lost."""

import os
from collections.abc import Mapping
from pathlib import Path

from selfhost.core import processes
from selfhost.core.processes import ProcessRef, Stat

DEPLOYMENT = "SELFHOST_DEPLOYMENT"
FOLDER = "SELFHOST_FOLDER"
INSTANCE = "SELFHOST_INSTANCE"
PLAN = "SELFHOST_PLAN"
PORT = "SELFHOST_PORT"
KEEPER = "SELFHOST_KEEPER"


def tags(folder: Path, name: str) -> dict[str, str]:
    """Every process of an engine is started with these. The folder tells two state folders of one machine apart."""
    return {DEPLOYMENT: name, FOLDER: str(folder)}


def of(folder: Path, name: str, *, leader: ProcessRef | None = None) -> tuple[ProcessRef, ...]:
    """Everything that the engine in `folder` started and that still runs, oldest first.

    Found by tag; with the `leader` of this boot also by session and parentage, for a child may have been started
    without an environment. This process and its parents are never among them.
    """
    among = processes.table()
    found = processes.tagged(tags(folder, name), among)
    if leader is not None:
        found |= _session(leader, among)
    found |= processes.descendants(found, among)
    found -= processes.ancestors(os.getpid(), among)
    return tuple(processes.ref(among[pid]) for pid in sorted(found, key=lambda pid: (among[pid].start_ticks, pid)))


def _session(leader: ProcessRef, among: Mapping[int, Stat]) -> set[int]:
    """The session that the engine opened.

    Its number is kept by the kernel as long as one member lives. A process of that number with another start time is
    somebody else's session.
    """
    head = among.get(leader.pid)
    if head is not None and head.start_ticks != leader.start_ticks:
        return set()
    return {one.pid for one in among.values() if one.session == leader.pid and one.start_ticks >= leader.start_ticks}


def keepers(folder: Path) -> tuple[ProcessRef, ...]:
    among = processes.table()
    found = processes.tagged({KEEPER: str(folder)}, among)
    return tuple(processes.ref(among[pid]) for pid in sorted(found))


def value(pid: int, variable: str) -> str:
    """What a process was started with, or nothing."""
    prefix = f"{variable}=".encode()
    found = (entry for entry in processes.environment(pid) if entry.startswith(prefix))
    return next(found, b"").removeprefix(prefix).decode("utf-8", "replace")
