"""The log that `explain` was pointed at: anything that can be read, stdin, or a deployment's."""

import codecs
import errno
import io
import os
import re
import shlex
import stat
import sys
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.names import check_name
from selfhost.core.paths import Paths
from selfhost.core.redact import mask
from selfhost.core.system import LocalSystem
from selfhost.shapes.finding import Finding, Severity

HEAD_BYTES = 64 * 2**20
TAIL_BYTES = 192 * 2**20
"""Of a larger log its beginning, where a start tells about itself, and its end, where it died."""

CHUNK_BYTES = 2**20
LAST_LINES = 5
_ID = re.compile(r"[A-Z]{2}\d{3}[A-Z]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A log and what to call it."""

    path: str
    text: str
    deployment: str = ""
    """Whose log it is, when it is that of a deployment of ours."""

    def placed(self, finding: Finding) -> Finding:
        """`finding` with the name of this log before its line."""
        return replace(finding, place=replace(finding.place, path=self.path))

    def nothing_known(self) -> Finding:
        """Said when no row fits: the end of the log instead of a guess."""
        lines = [line.rstrip() for line in self.text.splitlines() if line.strip()]
        return Finding(
            id="",
            severity=Severity.INFO,
            title=f"nothing in {self.path} is a failure that selfhost knows",
            evidence="\n".join(mask(line[:240]) for line in lines[-LAST_LINES:]) or "(empty)",
            why="Either the log is healthy, the cause is not in this part of it, or it is new.",
            fix=("give the whole log of one start, and how it ended: --exit-code N",),
        )


def read(target: str, *, paths: Paths, system: LocalSystem) -> Log | None:
    """The log that `target` names; None when it is an id. A file wins over a deployment of its name."""
    if target == "-":
        return Log(path="stdin", text=_decoded(_stdin()))
    mode = _mode(target)
    is_folder = mode is not None and stat.S_ISDIR(mode)
    if mode is not None and not is_folder:
        return Log(path=target, text=_decoded(_bytes_of(Path(target))))
    if _ID.fullmatch(target):
        return None
    if "/" in target or is_folder:
        what = "is a folder" if is_folder else "does not exist"
        raise InputError(f"`{target}` {what}, expected an engine's log", fix=_WAYS, id="CF080")
    return _of_deployment(target, paths=paths, system=system)


_WAYS = ("name a log file, a deployment, or an id:\nselfhost explain engine.log", "or pipe it in:\nselfhost explain -")


def _mode(target: str) -> int | None:
    """The kind of file behind `target`; None when there is none. Pipes, devices and `<(command)` are files too."""
    try:
        return Path(target).stat().st_mode
    except PermissionError:
        raise _forbidden(target) from None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
            return None
        raise


def _stdin() -> bytes:
    """Raises InputError when nothing is connected there, as with `<&-`, which our own start turned into /dev/null."""
    why = "It is closed, or leads to /dev/null."
    try:
        if sys.stdin is not None and not _is_nothing(sys.stdin.buffer):
            return _ends(sys.stdin.buffer)
    except (OSError, ValueError) as error:
        why = f"{getattr(error, 'strerror', None) or error}."
    raise InputError("there is nothing to read on stdin", why=why, fix=_WAYS, id="CF084")


def _is_nothing(stream: BinaryIO) -> bool:
    try:
        handle = stream.fileno()
    except io.UnsupportedOperation:  # no file behind it
        return False
    seen = os.fstat(handle)
    return stat.S_ISCHR(seen.st_mode) and seen.st_rdev == Path(os.devnull).stat().st_rdev


def _of_deployment(name: str, *, paths: Paths, system: LocalSystem) -> Log:
    from selfhost.deploy.logs import log_of
    from selfhost.deploy.state import State

    try:
        folder = paths.deployment(check_name(name))
    except InputError:
        folder = None
    if folder is None or not folder.is_dir():
        raise InputError(
            f"`{name}` is neither a file here, nor a deployment, nor an id such as EF005", fix=_WAYS, id="CF080"
        )
    log = log_of(State(paths, name, say=lambda _: None), paths=paths, system=system)
    if not log.exists:
        raise InputError(
            f"{name} has no log yet",
            why="Its engine was never started.",
            fix=(f"start it:\nselfhost status {name}",),
            id="CF081",
        )
    path = Path(log.where)
    text = _decoded(_bytes_of(path)) if path.is_file() else log.last(None)
    return Log(path=log.where, text=text, deployment=name)


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            if not path.is_file():
                return _ends(stream)
            size = stream.seek(0, 2)
            stream.seek(0)
            if size <= HEAD_BYTES + TAIL_BYTES:
                return stream.read()
            head = stream.read(HEAD_BYTES)
            stream.seek(size - TAIL_BYTES)
            return head + b"\n" + stream.read()
    except PermissionError:
        raise _forbidden(str(path)) from None
    except OSError as error:  # a socket, a device without a driver
        raise InputError(f"`{path}` can't be read: {error.strerror}", fix=_WAYS, id="CF080") from None


def _forbidden(path: str) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"{path} may not be read", fix=(f"look at its owner and mode:\nls -ld {shlex.quote(path)}",), id="CF083"
    )


def _ends(stream: BinaryIO) -> bytes:
    """Beginning and end of what can't be gone back in, never more in memory than of a file."""
    head, tail, kept = stream.read(HEAD_BYTES), deque[bytes](), 0
    while chunk := stream.read(CHUNK_BYTES):
        tail.append(chunk)
        kept += len(chunk)
        while kept - len(tail[0]) >= TAIL_BYTES:
            kept -= len(tail.popleft())
    return head + b"".join(tail)


def _decoded(data: bytes) -> str:
    """Text of a log; PowerShell's redirection writes UTF-16."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")
