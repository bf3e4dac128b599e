"""Who holds a TCP port of this machine, and which one is free."""

import os
import pwd
import socket
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from selfhost.core import processes

LISTEN = "0A"
"""proc(5), /proc/net/tcp, column st."""
V4 = frozenset({"0100007F", "00000000"})
"""127.0.0.1 and every address, as the kernel prints them on little- and (below) big-endian machines."""
V4_BIG = frozenset({"7F000001", "00000000"})
V6 = frozenset({"0" * 32, "0000000000000000FFFF00000100007F", "0000000000000000FFFF00007F000001"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who listens. `pid` 0: it could not be seen, and `reason` says why."""

    port: int
    pid: int = 0
    command: str = ""
    user: str = ""
    reason: str = ""

    def __str__(self) -> str:
        if not self.pid:
            return f"{'a process of user ' + self.user if self.user else 'another process'} ({self.reason})"
        return f"`{self.command}` (pid {self.pid}, user {self.user})"


def port_holder(port: int) -> Holder | None:
    """Who would be in the way of a server on 127.0.0.1:`port`; None when nobody is."""
    if can_bind(port):
        return None
    listener = _listener(port)
    if listener is None:
        return Holder(port=port, reason="nobody is seen to listen; the kernel refuses the port to this user")
    inode, uid = listener
    user = _user(uid)
    pid = _owner(inode)
    if pid is None:
        return Holder(port=port, user=user, reason="its process is not visible from here")
    command = processes.command(pid)
    return Holder(port=port, pid=pid, user=user, command=command if len(command) < 80 else command[:77] + "…")


def listening(port: int) -> bool:
    """Whether anything listens where a server on 127.0.0.1:`port` would."""
    return _listener(port) is not None


def can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no holder
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port(start: int, *, without: Collection[int] = ()) -> int:
    """The first free port from `start` on that is not among those `without`, or one that the kernel picks."""
    for port in range(start, 65536):
        if port not in without and can_bind(port):
            return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listener(port: int) -> tuple[str, int] | None:
    """Inode and user of the socket that listens on `port`."""
    suffix = f":{port:04X}"
    for table, addresses in (("tcp", V4 | V4_BIG), ("tcp6", V6)):
        try:
            lines = Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:  # IPv6 is switched off
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == LISTEN and fields[1].endswith(suffix) and fields[1].split(":")[0] in addresses:
                return fields[9], int(fields[7])
    return None


def _owner(inode: str) -> int | None:
    wanted = f"socket:[{inode}]"
    for pid in processes.table():
        folder = f"/proc/{pid}/fd"
        try:
            entries = os.listdir(folder)  # noqa: PTH208 - thousands of links; only their names are wanted
        except OSError:  # gone meanwhile, or another user's
            continue
        for entry in entries:
            try:
                if os.readlink(f"{folder}/{entry}") == wanted:  # noqa: PTH115 - as above
                    return pid
            except OSError:
                continue
    return None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
