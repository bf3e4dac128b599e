"""A Docker daemon that is not there, not ours, not Docker, not on this machine, or gone in the middle."""

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.runtimes.all import runtime_of
from selfhost.runtimes.base import EngineState, Launchable
from selfhost.runtimes.docker_address import address_of
from selfhost.shapes.workload import Workload

TOY = Launchable(name="toy", workload=Workload(name="toy", argv=(), image="toy:1"))


def refused(paths: Paths, env: dict[str, str], *, runtime: str = "docker") -> EnvironmentMissing:
    made = runtime_of(runtime, paths=paths, system=LocalSystem({"HOME": "/nonexistent", "PATH": "/usr/bin", **env}))
    with pytest.raises(EnvironmentMissing) as raised:
        made.start(TOY)
    seen = made.inspect("toy")
    assert (seen.state, seen.reason) == (EngineState.UNKNOWN, raised.value.what)
    assert raised.value.fix
    return raised.value


@contextmanager
def answering(folder: Path, *answers: bytes) -> Iterator[Path]:
    """A socket that gives each connection the next answer, whatever is asked, and the last one for ever."""
    path = folder / "s.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    left = list(answers)

    def talk(connection: socket.socket) -> None:
        with connection:
            while connection.recv(65536):
                answer = left.pop(0) if len(left) > 1 else left[0]
                if not answer:
                    return
                connection.sendall(answer)

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield path
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(timeout=5)


def http(body: object, status: str = "200 OK") -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


VERSION = {"Version": "26.1.5", "ApiVersion": "1.45", "MinAPIVersion": "1.24", "Components": [{"Name": "Engine"}]}


def test_a_socket_that_is_not_there_is_a_daemon_that_does_not_run(paths, tmp_path) -> None:
    error = refused(paths, {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    assert error.id == "RT063"
    assert f"{tmp_path}/none.sock (DOCKER_HOST)" in error.what


def test_a_socket_that_nobody_listens_to_is_one_too(paths, tmp_path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "d.sock"))
    assert refused(paths, {"DOCKER_HOST": f"unix://{tmp_path}/d.sock"}).id == "RT063"


def test_podman_behind_dockers_socket_is_told_and_its_own_runtime_named(paths, tmp_path) -> None:
    said = {"Version": "4.3.1", "ApiVersion": "1.41", "Components": [{"Name": "Podman Engine"}, {"Name": "Conmon"}]}
    with answering(tmp_path, http(said)) as path:
        error = refused(paths, {"DOCKER_HOST": f"unix://{path}"})
    assert error.id == "RT068"
    assert any("--runtime podman" in fix for fix in error.fix)


def test_a_daemon_that_is_too_old_is_told_with_its_version(paths, tmp_path) -> None:
    with answering(tmp_path, http({"Version": "18.09.9", "ApiVersion": "1.39"})) as path:
        error = refused(paths, {"DOCKER_HOST": f"unix://{path}"})
    assert error.id == "RT067"
    assert "18.09.9" in error.evidence


def test_a_daemon_that_dies_in_the_middle_of_an_answer_is_told_as_such(paths, tmp_path) -> None:
    with answering(tmp_path, http(VERSION), http(VERSION), b"") as path:
        made = runtime_of("docker", paths=paths, system=LocalSystem({"DOCKER_HOST": f"unix://{path}", "HOME": "/x"}))
        with pytest.raises(EnvironmentMissing) as raised:
            made.start(TOY)
    assert raised.value.id == "RT069"


@pytest.mark.parametrize(
    ("said", "status", "identity"),
    [
        ("write /var/lib/docker/tmp/x: no space left on device", "500 Internal Server Error", "RT070"),
        ('could not select device driver "" with capabilities: [[gpu]]', "500 Internal Server Error", "RT073"),
        ("No such image: toy:1", "404 Not Found", "RT074"),
        ("something nobody heard of", "500 Internal Server Error", "RT084"),
    ],
)
def test_what_the_daemon_says_is_worded(paths, tmp_path, said, status, identity) -> None:
    """Real messages of dockerd (github.com/moby/moby) over a socket that says them."""
    with answering(tmp_path, http(VERSION), http(VERSION), http({"message": said}, status)) as path:
        made = runtime_of("docker", paths=paths, system=LocalSystem({"DOCKER_HOST": f"unix://{path}", "HOME": "/x"}))
        with pytest.raises(EnvironmentMissing) as raised:
            made.start(TOY) if identity != "RT074" else made.keep("toy", "no")
    assert raised.value.id == identity
    assert said in raised.value.evidence


def test_no_podman_is_told(paths, tmp_path) -> None:
    assert refused(paths, {"PATH": str(tmp_path)}, runtime="podman").id == "RT060"


def test_a_machine_behind_ssh_that_can_not_be_reached_is_told(paths, tmp_path) -> None:
    (tmp_path / "ssh").write_text(
        "#!/bin/sh\necho 'ssh: connect to host gpu1 port 22: No route to host' >&2\nexit 255\n"
    )
    (tmp_path / "ssh").chmod(0o755)
    env = {"DOCKER_HOST": "ssh://ana@gpu1", "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    error = refused(paths, env)
    assert error.id == "RT066"
    assert "ssh://ana@gpu1" in error.what


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_socket_of_root_is_refused_to_a_user(paths, tmp_path) -> None:
    with answering(tmp_path, http(VERSION)) as path:
        path.chmod(0o600)
        for folder in (tmp_path, *tmp_path.parents[:2]):
            folder.chmod(folder.stat().st_mode | 0o011)
        refused(paths, {"DOCKER_HOST": "unix:///nonexistent"})  # what is imported at use may lie where only root reads
        os.seteuid(65534)
        try:
            error = refused(paths, {"DOCKER_HOST": f"unix://{path}"})
        finally:
            os.seteuid(0)
    assert error.id == "RT064"


def context(folder: Path, name: str, host: str, **more: object) -> dict[str, str]:
    digest = sha256(name.encode()).hexdigest()
    meta = folder / "contexts" / "meta" / digest
    meta.mkdir(parents=True)
    endpoint = {"Host": host, **more}
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": endpoint}}))
    return {"DOCKER_CONFIG": str(folder), "HOME": str(folder)}


def test_the_address_is_that_of_dockers_own_client(tmp_path) -> None:
    env = context(tmp_path, "desktop-linux", "unix:///home/ana/.docker/desktop/docker.sock")
    assert address_of(LocalSystem(env)).url == "unix:///var/run/docker.sock"
    (tmp_path / "config.json").write_text('{"currentContext": "desktop-linux"}')
    assert str(address_of(LocalSystem(env))) == (
        "unix:///home/ana/.docker/desktop/docker.sock (the context desktop-linux)"
    )
    assert address_of(LocalSystem({**env, "DOCKER_CONTEXT": "default"})).url == "unix:///var/run/docker.sock"
    assert address_of(LocalSystem({**env, "DOCKER_HOST": "unix:///x.sock"})).url == "unix:///x.sock"


def test_a_context_with_certificates_uses_them(tmp_path) -> None:
    env = context(tmp_path, "far", "tcp://10.0.0.7:2376", SkipTLSVerify=False)
    files = tmp_path / "contexts" / "tls" / sha256(b"far").hexdigest() / "docker"
    files.mkdir(parents=True)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (files / name).write_text("x")
    found = address_of(LocalSystem({**env, "DOCKER_CONTEXT": "far"}))
    assert (found.tls, found.verify, found.ca, found.key) == (True, True, f"{files}/ca.pem", f"{files}/key.pem")


def test_a_context_that_is_gone_is_told(tmp_path) -> None:
    with pytest.raises(EnvironmentMissing) as raised:
        address_of(LocalSystem({"HOME": str(tmp_path), "DOCKER_CONTEXT": "gone"}))
    assert raised.value.id == "RT065"
    assert "`gone`" in raised.value.what


def test_dockers_own_client_reads_the_context_alike(tmp_path) -> None:
    """The one that is installed says where it would connect to."""
    env = context(tmp_path, "odd", f"unix://{tmp_path}/odd.sock")
    done = subprocess.run(
        ["docker", "version"], env={**os.environ, **env, "DOCKER_CONTEXT": "odd"}, capture_output=True, text=True
    )
    assert address_of(LocalSystem({**env, "DOCKER_CONTEXT": "odd"})).url in done.stderr


def test_selinux_that_would_keep_the_container_out_is_told_before_a_start() -> None:
    from selfhost.core.system import Completed
    from selfhost.runtimes import selinux
    from selfhost.runtimes.cli_client import CliClient
    from selfhost.shapes.workload import Mount

    class Fedora(LocalSystem):
        def read(self, path: str) -> str:
            return "1" if path == "/sys/fs/selinux/enforce" else super().read(path)

        def run(self, argv, **_):
            if argv[0] == "stat":
                return Completed(argv=tuple(argv), rc=0, stdout="unconfined_u:object_r:user_home_t:s0\n")
            security = {"host": {"security": {"selinuxEnabled": True}}}
            return Completed(argv=tuple(argv), rc=0, stdout=json.dumps(security))

    workload = Workload(name="toy", argv=(), mounts=(Mount(target="/model", source="/home/ana/m", read_only=True),))
    system = Fedora({})
    with pytest.raises(EnvironmentMissing) as raised:
        selinux.check(system, CliClient("podman", system), workload)
    assert raised.value.id == "RT072"
    assert any("chcon -R -t container_file_t /home/ana/m" in fix for fix in raised.value.fix)
    selinux.check(LocalSystem({}), CliClient("podman", system), workload)
