"""Files that are whole or not there, and damage that is kept, not overwritten."""

import errno
import os
import tempfile
import time
from pathlib import Path


def ensure_folder(path: Path) -> Path:
    """Create `path` and what is missing above it for the owner only (0700); leave what exists as it is."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):  # mkdir(parents=True) would make the parents with the umask's mode
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    return path


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o600) -> None:
    """Replace `path` with `content` so that a reader or a power cut sees the old or the new, never half.

    The folder is synced too: without it the rename itself can be lost.
    """
    data = content.encode() if isinstance(content, str) else content
    ensure_folder(path.parent)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        _name(error, path)
        raise
    sync_folder(path.parent)


def append_line(path: Path, line: str) -> None:
    """Append one line and wait until it is on the disk. A torn line before it is closed first."""
    ensure_folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, (("\n" if torn else "") + line + "\n").encode())
        os.fsync(handle)
    except OSError as error:
        _name(error, path)
        raise
    finally:
        os.close(handle)


def _name(error: BaseException, path: Path) -> None:
    """Writing through an open file raises without a name; a person needs to know which disk is full."""
    if isinstance(error, OSError) and error.filename is None:
        error.filename = str(path)


def set_aside(path: Path) -> Path:
    """Move a damaged file out of the way under a new name beside it and return that name."""
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
    for attempt in range(1000):
        target = path.with_name(f"{path.name}.damaged-{stamp}{f'-{attempt}' if attempt else ''}")
        if not target.exists():
            path.rename(target)
            return target
    raise FileExistsError(path)


def sweep(folder: Path) -> None:
    """Remove temporary files that killed writers left. Call it only while holding the folder's lock."""
    for leftover in folder.glob(".*.????????"):
        if leftover.is_file():
            leftover.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
