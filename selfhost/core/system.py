"""The eyes: every file, device node and short command that is looked at goes through a System."""

import errno
import json
import os
import shutil
import signal
import stat as stat_module
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

_NVML = str(Path(__file__).parents[1] / "hosts" / "nvml.py")
_NVML_TIMEOUT_S = 4.8
_LDCONFIG_TIMEOUT_S = 2.0
_END_S = 0.5
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

    def nvml(self) -> Mapping[str, Any]:
        """What NVML says, as hosts/nvml writes it; {} where there is none to ask, or `failure` and why.

        Asked only beside an NVIDIA driver: it starts a program here.
        """
        ...

    def libraries(self) -> tuple[str, ...] | None:
        """Names of the shared libraries that the loader finds; None where nobody looked."""
        ...

    @property
    def ids(self) -> Mapping[str, Any]:
        """`uid`, `gid` and `groups` that count when something is opened; {} where nobody looked."""
        ...

    @property
    def kubernetes(self) -> tuple[Mapping[str, Any], ...]:
        """Objects of a cluster that were recorded. No cluster is asked unbidden."""
        ...


class LocalSystem:
    """This machine, from this process. Holds nothing that changes, so threads may share it."""

    kubernetes: tuple[Mapping[str, Any], ...] = ()

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._env = dict(os.environ if env is None else env)

    @property
    def env(self) -> Mapping[str, str]:
        return self._env

    @property
    def ids(self) -> Mapping[str, Any]:
        return {"uid": os.geteuid(), "gid": os.getegid(), "groups": sorted(os.getgroups())}

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
        asked = tuple(argv)
        try:
            process = subprocess.Popen(
                asked,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=dict(self._env if env is None else env),
                start_new_session=True,  # what it starts in turn is ended with it
            )
        except (FileNotFoundError, PermissionError) as error:
            return Completed(argv=asked, rc=127, stderr=str(error), missing=True)
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired as expired:
            _end(process)
            return Completed(
                argv=asked, rc=124, stdout=_text(expired.stdout), stderr=_text(expired.stderr), timed_out=True
            )
        except BaseException:
            _end(process)
            raise
        return Completed(argv=asked, rc=process.returncode, stdout=stdout, stderr=stderr)

    def nvml(self) -> Mapping[str, Any]:
        # In a process of its own: a call into a hung driver never comes back. -P: our folders shadow no module of its.
        done = self.run([sys.executable, "-P", _NVML], timeout_s=_NVML_TIMEOUT_S)
        if done.timed_out:
            return {"failure": f"NVML gave no answer within {_NVML_TIMEOUT_S:.0f} s", "timed_out": True}
        try:
            said = json.loads(done.stdout)
        except ValueError:
            said = None
        if done.ok and isinstance(said, dict):
            return said
        lines = done.stderr.strip().splitlines()
        return {"failure": f"NVML could not be asked: {lines[-1][:160] if lines else f'it ended with {done.rc}'}"}

    def libraries(self) -> tuple[str, ...] | None:
        for program in ("ldconfig", "/sbin/ldconfig"):
            done = self.run([program, "-p"], timeout_s=_LDCONFIG_TIMEOUT_S)
            if done.ok:
                lines = (line.partition(" (")[0].strip() for line in done.stdout.splitlines()[1:])
                return tuple(dict.fromkeys(line for line in lines if ".so" in line))
        return None


def _end(process: subprocess.Popen[str]) -> None:
    """Kill it and all that it started. One that is stuck in a driver stays stuck; nobody waits for it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=_END_S)
    except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
        process.poll()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _text(output: str | bytes | None) -> str:
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""
