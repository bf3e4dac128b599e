"""Engine images without a registry: a Debian base and what is put on top, kept as layers in the tests' cache.

An image here is what `docker save` writes (github.com/moby/moby, image/spec): layers as tar files, a configuration, and
a list of both. It is made while it is loaded, so that nothing of some gigabytes lies twice on the disk.
"""

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.e2e.debian13 import cache

BASE_PACKAGES = ("ca-certificates", "python3")
_NOT_NEEDED = ("var/cache/apt/*", "var/lib/apt/lists/*", "usr/share/doc/*", "usr/share/man/*", "usr/share/locale/*")
_EPOCH = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One tar file and its SHA-256."""

    path: Path
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestImage:
    """One image by its tags, as it will be loaded."""

    __test__ = False

    tags: tuple[str, ...]
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...] = ()
    user: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    arch: str = "amd64"

    def config(self) -> bytes:
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        inner = {
            "Env": [f"{key}={value}" for key, value in {"PATH": path, **self.env}.items()],
            "Entrypoint": list(self.entrypoint) or None,
            "User": self.user,
            "WorkingDir": "/workspace",
            "Labels": dict(self.labels),
        }
        whole = {
            "architecture": self.arch,
            "os": "linux",
            "created": _EPOCH,
            "config": inner,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in self.layers]},
            "history": [{"created": _EPOCH, "created_by": "tests"} for _ in self.layers],
        }
        return json.dumps(whole, sort_keys=True).encode()


def layer(name: str, key: str, write: Callable[[tarfile.TarFile], None]) -> Layer:
    """The layer `name` of the content that `key` stands for; written once."""
    folder = cache() / "test-images"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    target, noted = folder / f"{stem}.tar", folder / f"{stem}.sha256"
    with (folder / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not noted.is_file():
            for old in folder.glob(f"{name}-????????????.*"):
                old.unlink()
            making = folder / f"{stem}.making"
            with tarfile.open(making, "w", format=tarfile.GNU_FORMAT) as archive:
                write(archive)
            with making.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            making.rename(target)
            noted.write_text(digest)
    return Layer(path=target, digest=noted.read_text())


def base() -> Layer:
    """Debian 12 with Python and nothing else."""

    def write(archive: tarfile.TarFile) -> None:
        with _root() as root:
            _done("debootstrap", "--variant=minbase", f"--include={','.join(BASE_PACKAGES)}", "bookworm", str(root))
            (root / "workspace").mkdir(mode=0o777)
            _clean(root)
            for path in sorted(root.iterdir()):
                if path.name not in ("dev", "proc", "sys"):
                    archive.add(path, path.name)
            for name in ("dev", "proc", "sys"):
                archive.addfile(_folder(name))

    return layer("base", repr((BASE_PACKAGES, _NOT_NEEDED)), write)


def installed(*packages: str) -> Layer:
    """What Debian's own installer adds to the base: files that were not there or are changed."""
    below = base()

    def write(archive: tarfile.TarFile) -> None:
        with _root() as root:
            root.mkdir()
            _done("tar", "-C", str(root), "-xf", str(below.path))
            shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
            for name, minor in (("null", 3), ("zero", 5), ("urandom", 9)):
                _done("mknod", "-m", "666", str(root / "dev" / name), "c", "1", str(minor))
            before = dict(_times(root))
            _done("chroot", str(root), "apt-get", "update", "-qq")
            _done("chroot", str(root), "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
            _clean(root)
            for path, changed in sorted(_times(root)):
                if before.get(path) != changed and not path.startswith(("dev/", "proc/", "sys/")):
                    archive.add(root / path, path, recursive=False)

    return layer("installed", repr((below.digest, packages)), write)


@contextmanager
def _root() -> Iterator[Path]:
    root = cache() / "test-images" / "root"
    shutil.rmtree(root, ignore_errors=True)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _times(root: Path) -> Iterator[tuple[str, int]]:
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder) / name
            yield str(path.relative_to(root)), path.lstat().st_ctime_ns if not path.is_dir() else 0


def _clean(root: Path) -> None:
    for pattern in _NOT_NEEDED:
        for found in root.glob(pattern):
            shutil.rmtree(found) if found.is_dir() and not found.is_symlink() else found.unlink()


def _done(*argv: str) -> None:
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=540, check=False, env=env)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def files(name: str, content: Mapping[str, bytes | Path], *, programs: Iterable[str] = ()) -> Layer:
    """A layer of some files; `programs` among them can be run."""
    plain = {path: data if isinstance(data, bytes) else data.read_bytes() for path, data in sorted(content.items())}
    run = frozenset(programs)
    key = json.dumps({path: hashlib.sha256(data).hexdigest() for path, data in plain.items()}) + repr(sorted(run))

    def write(archive: tarfile.TarFile) -> None:
        for path, data in plain.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o755 if path in run else 0o644
            archive.addfile(entry, io.BytesIO(data))

    return layer(name, key, write)


def trees(name: str, key: str, folders: Mapping[str, Path], *, without: Sequence[str] = ()) -> Layer:
    """A layer of whole folders of this machine, owned by root and readable by all."""

    def shown(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if any(f"/{part}/" in f"/{entry.name}/" for part in without):
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode |= 0o555 if entry.isdir() or entry.mode & 0o100 else 0o444
        return entry

    def write(archive: tarfile.TarFile) -> None:
        for inside, folder in folders.items():
            for parent in reversed(Path(inside.strip("/")).parents[:-1]):
                archive.addfile(_folder(str(parent)))
            archive.add(folder, inside.strip("/"), filter=shown)

    return layer(name, key, write)


def _folder(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    return entry


def write_archive(images: Sequence[TestImage], out: IO[bytes]) -> None:
    """All of `images` as one stream for `docker load` and `podman load`; a layer that they share is in it once."""
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        rows: list[dict[str, Any]] = []
        for one in {layer.digest: layer for image in images for layer in image.layers}.values():
            archive.add(one.path, f"{one.digest}/layer.tar")
        for image in images:
            config = image.config()
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _put(archive, name, config)
            layers = [f"{layer.digest}/layer.tar" for layer in image.layers]
            rows.append({"Config": name, "RepoTags": list(image.tags), "Layers": layers})
        _put(archive, "manifest.json", json.dumps(rows).encode())


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))
