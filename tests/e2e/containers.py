"""Container engines of our own, with their state in a test's folder, and an image that is made here: no registry."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
_APPLETS = ("sh", "cat", "ls", "stat", "readlink", "sleep", "df", "id")
# On machines without delegated control groups crun refuses; runc comes with Docker.
_PODMAN_CONF = """[engine]
runtime = "runc"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
"""


def rootfs(folder: Path) -> Path:
    """A static busybox and the folders that an engine mounts over."""
    for name in ("bin", "etc", "proc", "sys", "dev", "tmp", "run", "usr", "lib", "lib64"):
        (folder / name).mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), folder / "bin" / "busybox")
    for applet in _APPLETS:
        (folder / "bin" / applet).symlink_to("busybox")
    (folder / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    return folder


class Client:
    """One engine's command line, and selfhost with the same environment."""

    def __init__(self, kind: str, argv: tuple[str, ...], env: dict[str, str]) -> None:
        self.kind, self._argv, self.env = kind, argv, {**os.environ, **env}

    def run(self, *words: str, stdin: bytes | None = None) -> str:
        done = subprocess.run([*self._argv, *words], input=stdin, capture_output=True, env=self.env, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def load(self, folder: Path) -> str:
        tar = subprocess.run(["tar", "-C", str(folder), "-c", "."], capture_output=True, check=True).stdout
        self.run("import", "--change", "ENV PATH=/bin:/usr/bin", "-", "selfhost-test:1", stdin=tar)
        return "selfhost-test:1" if self.kind == "docker" else "localhost/selfhost-test:1"

    def selfhost(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {**self.env, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
        argv = [sys.executable, "-m", "selfhost", *words]
        return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120, check=False)


@contextmanager
def docker(folder: Path) -> Iterator[Client]:
    """A daemon of our own, ended with all that it started."""
    socket, pid = folder / "d.sock", folder / "pid"
    argv = [
        *("dockerd", "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"), "-H", f"unix://{socket}"),
        *("--pidfile", str(pid), "--bridge", "none", "--iptables=false"),
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
    client = Client("docker", ("docker",), {"DOCKER_HOST": f"unix://{socket}", "DOCKER_CONFIG": str(folder / "config")})
    try:
        _until_it_answers(client, daemon, folder / "log")
        yield client
        for container in client.run("ps", "-aq").split():
            client.run("rm", "-f", container)
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)


def _until_it_answers(client: Client, daemon: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and daemon.poll() is None:
        if subprocess.run(["docker", "version"], env=client.env, capture_output=True, timeout=30).returncode == 0:
            return
        time.sleep(0.2)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


@contextmanager
def podman(folder: Path) -> Iterator[Client]:
    (folder / "containers.conf").write_text(_PODMAN_CONF)
    wrapper = folder / "bin" / "podman"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f"#!/bin/sh\nexec {shutil.which('podman')} --root {folder}/root --runroot {folder}/run --storage-driver vfs "
        '--cgroup-manager cgroupfs --events-backend file "$@"\n'
    )
    wrapper.chmod(0o755)
    path = f"{wrapper.parent}:{os.environ['PATH']}"
    client = Client("podman", (str(wrapper),), {"CONTAINERS_CONF": str(folder / "containers.conf"), "PATH": path})
    try:
        yield client
    finally:
        client.run("rm", "-af", "-t", "0")
