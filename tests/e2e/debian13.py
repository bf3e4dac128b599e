"""Tools of Debian 13 on an older Debian: unpacked into the tests' cache, not installed.

Debian 12 has Docker 20.10 (no CDI), docker-compose 1.29 and a podman without Quadlet. What is named here runs on its
C library; podman itself, conmon and runc of Debian 13 do not.
"""

import os
import shutil
import subprocess
from pathlib import Path

PACKAGES = ("docker.io", "docker-cli", "docker-compose", "containerd", "docker-registry", "podman")
_SOURCE = "deb http://deb.debian.org/debian trixie main\n"


def cache() -> Path:
    """Where tests keep what is built once: SELFHOST_TEST_CACHE, or a folder beside the user's own engines."""
    own = os.environ.get("SELFHOST_TEST_CACHE")
    return Path(own) if own else Path(_HOME_CACHE) / "selfhost"


_HOME_CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
"""Read at import: a fixture gives every test a home of its own."""


def unpacked() -> Path:
    """A root with `usr/bin/docker-compose`, `usr/sbin/dockerd`, `usr/libexec/podman/quadlet`…; whole or not there."""
    target = cache() / "debian13"
    if target.is_dir():
        return target
    making = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(making, ignore_errors=True)
    state = making / "apt"
    for folder in ("lists/partial", "archives/partial", "debs"):
        (state / folder).mkdir(parents=True)
    (state / "trixie.list").write_text(_SOURCE)
    options = {
        "Dir::Etc::sourcelist": state / "trixie.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": state / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": state,
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    _run(["apt-get", *words, "update", "-qq"], cwd=state)
    _run(["apt-get", *words, "download", "-qq", *PACKAGES], cwd=state / "debs")
    for package in sorted((state / "debs").glob("*.deb")):
        _run(["dpkg", "-x", str(package), str(making)], cwd=making)
    shutil.rmtree(state)
    try:
        making.rename(target)
    except OSError:  # another run was faster
        shutil.rmtree(making)
    return target


def _run(argv: list[str], *, cwd: Path) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
