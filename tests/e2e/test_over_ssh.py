"""`--host user@machine` through a real sshd on loopback, with keys of this test alone."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or not all(shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") for tool in ("sshd", "ssh")),
    reason="an sshd of our own needs root and `make test`'s packages (scripts/test_tools.sh)",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def ssh_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment whose `ssh` knows this sshd; the user's own keys and known hosts stay out of it."""
    folder, port = tmp_path_factory.mktemp("ssh"), free_port()
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "keys").write_text((folder / "client.pub").read_text())
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/keys\n"
        f"PidFile {folder}/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    (folder / "ssh.conf").write_text(
        f"Host *\n  Port {port}\n  IdentityFile {folder}/client\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known\n"
    )
    wrapper = folder / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh.conf "$@"\n')
    wrapper.chmod(0o755)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    program = str(shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin"))
    daemon = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "sshd.conf")], stderr=subprocess.DEVNULL)
    try:
        until_it_listens(port)
        yield {**os.environ, "PATH": f"{wrapper.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    finally:
        daemon.terminate()
        daemon.wait(timeout=10)


def until_it_listens(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("sshd does not listen")


def selfhost(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "selfhost", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60, check=False)


def test_another_machine_is_seen_as_it_sees_itself(ssh_env: dict[str, str]) -> None:
    there = json.loads(selfhost(ssh_env, "detect", "--host", "root@127.0.0.1", "--json").stdout)
    here = json.loads(selfhost(ssh_env, "detect", "--json").stdout)
    for key in ("os", "kernel", "cpu", "cores", "memory_bytes", "nesting"):
        assert there["machine"][key] == here["machine"][key]
    assert there["accelerators"] == here["accelerators"]
    assert [engine["kind"] for engine in there["engines"]] == [engine["kind"] for engine in here["engines"]]


def test_doctor_and_save_work_over_it(ssh_env: dict[str, str], tmp_path: Path) -> None:
    assert selfhost(ssh_env, "doctor", "--host", "root@127.0.0.1", "--json").returncode == 0
    file = tmp_path / "far.json"
    assert selfhost(ssh_env, "detect", "--host", "root@127.0.0.1", "--save", str(file)).returncode == 0
    assert selfhost(ssh_env, "doctor", "--host", str(file)).returncode == 0


def test_a_machine_that_lets_nobody_in_is_an_answer(ssh_env: dict[str, str]) -> None:
    refused = selfhost(ssh_env, "detect", "--host", "nobody@127.0.0.1")
    assert refused.returncode == 4
    assert "HX110" in refused.stderr
