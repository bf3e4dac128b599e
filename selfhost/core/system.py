"""The eyes: every file, device node and short command that is looked at goes through a System."""

import errno
import os
import shutil
import stat as stat_module
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

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


def _text(output: str | bytes | None) -> str:
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""
