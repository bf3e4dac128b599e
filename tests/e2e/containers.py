"""Container engines of our own, with their state in a test's folder, and an image that is made here: no registry."""

import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.e2e.images import TestImage

ROOT = Path(__file__).parents[2]
_APPLETS = ("sh", "cat", "ls", "stat", "readlink", "sleep", "df", "id")
# On machines without delegated control groups crun refuses; runc comes with Docker.
_PODMAN_CONF = """[engine]
runtime = "runc-within-limits"
[engine.runtimes]
runc-within-limits = ["{runtime}"]
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
"""
# Where root may not raise its own limits (a test machine), those of a container are kept to them.
_WITHIN_LIMITS = """#!/usr/bin/python3
import json, os, resource, sys
words = sys.argv[1:]
files = [os.path.join(words[words.index("--bundle") + 1], "config.json")] if "--bundle" in words else []
files += [words[words.index("--process") + 1]] if "--process" in words else []
for path in files if {"create", "exec"} & set(words) else ():
    config = json.load(open(path))
    for limit in config.get("process", config).get("rlimits") or []:
        most = resource.getrlimit(getattr(resource, limit["type"]))[1]
        for end in ("hard", "soft") if most != resource.RLIM_INFINITY else ():
            limit[end] = min(limit[end], most)
    json.dump(config, open(path, "w"))
os.execv("RUNC", ["runc", *words])
"""


def runc_within_limits(folder: Path, name: str = "runc") -> Path:
    """A program that is runc but for limits."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(
        _WITHIN_LIMITS.replace("RUNC", str(shutil.which("runc", path=f"{os.environ['PATH']}:/usr/sbin")))
    )
    program.chmod(0o755)
    return program


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
        self.kind, self.argv, self.env = kind, argv, {**os.environ, **env}

    def run(self, *words: str, stdin: bytes | None = None) -> str:
        done = subprocess.run([*self.argv, *words], input=stdin, capture_output=True, env=self.env, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def load(self, folder: Path) -> str:
        tar = subprocess.run(["tar", "-C", str(folder), "-c", "."], capture_output=True, check=True).stdout
        self.run("import", "--change", "ENV PATH=/bin:/usr/bin", "-", "selfhost-test:1", stdin=tar)
        return "selfhost-test:1" if self.kind == "docker" else "localhost/selfhost-test:1"

    def load_images(self, images: "Sequence[TestImage]") -> None:
        """Through `load`, made while it is read."""
        from tests.e2e.images import write_archive

        with (
            tempfile.TemporaryFile() as words,
            subprocess.Popen(
                [*self.argv, "load"], stdin=subprocess.PIPE, stdout=words, stderr=words, env=self.env
            ) as load,
        ):
            assert load.stdin is not None
            try:
                write_archive(images, load.stdin)
                load.stdin.close()
            except BrokenPipeError:  # it says why itself
                load.kill()
            load.wait(timeout=300)
            words.seek(0)
            assert load.returncode == 0, words.read().decode()

    def selfhost(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {**self.env, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
        argv = [sys.executable, "-m", "selfhost", *words]
        return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120, check=False)


class Daemon:
    """A docker daemon of our own that can be stopped and started again, as at a reboot."""

    def __init__(
        self, folder: Path, *, prefix: Sequence[str] = (), path: str = "", options: Sequence[str] = ()
    ) -> None:
        """`prefix`: where it runs (tests.e2e.around). `path`: folders with programs that come before the machine's."""
        socket = folder / "d.sock"
        variables = {"DOCKER_HOST": f"unix://{socket}", "DOCKER_CONFIG": str(folder / "config")}
        own = runc_within_limits(folder / "bin").parent
        variables["PATH"] = ":".join((str(own), *([path] if path else []), os.environ["PATH"]))
        self.client = Client("docker", ("docker",), variables)
        self._folder = folder
        self._argv = [
            *prefix,
            *("env", f"PATH={variables['PATH']}:/usr/sbin:/sbin", "dockerd", "--data-root", str(folder / "data")),
            *("--exec-root", str(folder / "exec"), "-H", f"unix://{socket}", "--pidfile", str(folder / "pid")),
            *("--bridge", "none", "--iptables=false", "--default-address-pool", f"base={_free_net()},size=24"),
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._argv, stdout=log, stderr=log, start_new_session=True)
        _until_it_answers(self.client, self._process, self._folder / "log")

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def kill(self) -> None:
        """As a crash. Its containerd ends with it, and where process 1 reaps nobody would still count as running."""
        self._end(signal.SIGKILL)
        for file in ("pid", "exec/containerd/containerd.pid"):
            (self._folder / file).unlink(missing_ok=True)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self._process is not None:
            pid = self._folder / "pid"  # of the daemon itself: what was started may be a prefix
            os.kill(int(pid.read_text()) if pid.exists() else self._process.pid, number)
            self._process.wait(timeout=60)
            self._process = None


def _free_net() -> str:
    """A private network that no bridge here has: every daemon counts from its own first one."""
    routes = [line.split()[1] for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    taken = {int(route[4:6], 16) for route in routes if route[6:8] == "0A"}  # little-endian: 10.SECOND.…
    return f"10.{next(net for net in random.sample(range(128, 240), 112) if net not in taken)}.0.0/16"


@contextmanager
def docker_daemon(
    folder: Path, *, prefix: Sequence[str] = (), path: str = "", options: Sequence[str] = ()
) -> Iterator[Daemon]:
    """Ended with all that it started."""
    daemon = Daemon(folder, prefix=prefix, path=path, options=options)
    daemon.start()
    try:
        yield daemon
        for container in daemon.client.run("ps", "-aq").split():
            daemon.client.run("rm", "-f", container)
    finally:
        try:
            daemon.stop()
        finally:
            _unmount_below(folder)


def _unmount_below(folder: Path) -> None:
    """What a daemon that was killed left mounted, so that the folder can be removed."""
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in sorted((one for one in mounted if one.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", point], check=False)


@contextmanager
def docker(folder: Path) -> Iterator[Client]:
    """A daemon of our own, ended with all that it started."""
    with docker_daemon(folder) as daemon:
        yield daemon.client


def _until_it_answers(client: Client, daemon: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and daemon.poll() is None:
        if subprocess.run(["docker", "version"], env=client.env, capture_output=True, timeout=30).returncode == 0:
            return
        time.sleep(0.2)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


def adding(program: Path, argv: Sequence[str], words: Sequence[str]) -> Path:
    """A program that is `argv`, with `words` added to what `run` and `create` are told."""
    added = (
        f'case "$1" in run|create) verb=$1; shift; set -- "$verb" {shlex.join(words)} "$@";; esac\n' if words else ""
    )
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\n{added}exec {shlex.join(argv)} "$@"\n')
    program.chmod(0o755)
    return program


@contextmanager
def podman(
    folder: Path, *, prefix: Sequence[str] = (), driver: str = "vfs", words: Sequence[str] = ()
) -> Iterator[Client]:
    """`prefix`: where it runs (tests.e2e.around). `words`: as in `adding`."""
    runtime = runc_within_limits(folder / "bin", "runc-within-limits")
    (folder / "containers.conf").write_text(_PODMAN_CONF.format(runtime=runtime))
    own = ("--root", f"{folder}/root", "--runroot", f"{folder}/run", "--storage-driver", driver)
    argv = (*prefix, str(shutil.which("podman")), *own, "--cgroup-manager", "cgroupfs", "--events-backend", "file")
    wrapper = adding(folder / "bin" / "podman", argv, words)
    path = f"{wrapper.parent}:{os.environ['PATH']}"
    client = Client("podman", (str(wrapper),), {"CONTAINERS_CONF": str(folder / "containers.conf"), "PATH": path})
    try:
        yield client
    finally:
        client.run("rm", "-af", "-t", "0")
