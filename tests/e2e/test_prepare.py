"""`prepare` in a fresh Debian: what --check predicts is what the first run changes, and the second changes nothing."""

import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e import containers

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
VERSION = "1.20.0-1"
PACKAGES = (
    "nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1",
)  # fmt: skip
_CTK = """#!/bin/sh
case "$1 $2" in
"runtime configure") printf '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}' > /etc/docker/daemon.json;;
"cdi generate") cat > /etc/cdi/nvidia.yaml <<END
cdiVersion: 0.6.0
kind: nvidia.com/gpu
devices: [{name: all, containerEdits: {deviceNodes: [{path: /dev/null}]}}]
containerEdits: {mounts: [{hostPath: /usr/lib/libcuda.so.580.95.05, containerPath: /usr/lib/libcuda.so.580.95.05}]}
END
;;
*) exit 9 ;;
esac
"""
_PLAY = """
import json, os, sys
from selfhost.runtimes.ansible import Play, run
asked = json.loads(sys.argv[1])
seen = []
ended = run(Play(playbook="prepare.yml", **asked), env=os.environ, on_event=seen.append)
print(json.dumps({
    "ok": ended.ok,
    "changed": [one.task for one in seen if one.state == "changed"],
    "failed": [one.said for one in seen if one.state == "failed"],
    "left": [name for name in os.listdir("/tmp") if name.startswith("selfhost-prepare")],
}))
"""


class Machine:
    """A fresh Debian in a container, with this checkout and its Python lent to it."""

    def __init__(self, client: containers.Client, name: str) -> None:
        self.client, self.name = client, name

    def sh(self, line: str) -> str:
        return self.client.run("exec", self.name, "sh", "-c", line)

    def python(self, *words: str, timeout: float = 400) -> subprocess.CompletedProcess[str]:
        env = {
            "SUDO_USER": "ana",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ANSIBLE_CHECK_MODE": "nonsense",
        }
        named = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        argv = ["docker", "exec", *named, self.name, sys.executable, *words]
        return subprocess.run(argv, capture_output=True, text=True, env=self.client.env, timeout=timeout, check=False)

    def prepare(self, *words: str, rc: int) -> dict:
        done = self.python("-m", "selfhost", "prepare", "--json", "--yes", *words)
        assert done.returncode == rc, done.stdout[-3000:] + done.stderr[-3000:]
        return json.loads(done.stdout)

    def play(self, **asked: object) -> dict:
        done = self.python("-c", _PLAY, json.dumps(asked))
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def debian() -> Iterator[containers.Client]:
    """A daemon whose containers reach the network: the machine's own, since two daemons would share one bridge."""
    folder = Path(tempfile.mkdtemp(prefix="prep", dir=os.environ.get("SELFHOST_TEST_ROOMY")))
    base = folder / "base"
    subprocess.run(
        ["debootstrap", "--variant=minbase", "bookworm", str(base)], check=True, capture_output=True, timeout=400
    )
    with _daemon(folder) as client:
        with subprocess.Popen(["tar", "-C", str(base), "-c", "."], stdout=subprocess.PIPE) as tar:
            subprocess.run(
                ["docker", "import", "-", "fresh:1"], stdin=tar.stdout, env=client.env, check=True, timeout=200
            )
        yield client
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _daemon(folder: Path) -> Iterator[containers.Client]:
    socket = folder / "d.sock"
    argv = [
        *("dockerd", "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"), "-H", f"unix://{socket}"),
        *("--pidfile", str(folder / "pid"), "--bridge", "none", "--iptables=false"),
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
    client = containers.Client("docker", ("docker",), {"DOCKER_HOST": f"unix://{socket}"})
    try:
        containers._until_it_answers(client, daemon, folder / "log")
        yield client
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)
        # With the network of the machine the daemon leaves its name for it mounted.
        subprocess.run(["umount", str(folder / "exec" / "netns" / "default")], capture_output=True, check=False)


@pytest.fixture
def machine(debian, request) -> Iterator[Machine]:
    client = debian
    name = f"m{abs(hash(request.node.name)) % 10**8}"
    python = Path(os.path.realpath(sys.executable)).parents[1]
    lent = [word for path in {str(ROOT), str(python)} for word in ("-v", f"{path}:{path}:ro")]
    client.run("run", "-d", "--network", "host", "--name", name, *lent, "fresh:1", "sleep", "1800")
    made = Machine(client, name)
    made.sh("useradd -m ana")
    yield made
    client.run("rm", "-f", name)


def _rows(document: dict) -> list[tuple[str, str]]:
    return [(one["role"], one["step"]) for one in document["steps"] if one["state"] != "ok"]


def test_the_check_predicts_the_first_run_and_the_second_changes_nothing(machine):
    only = ("--only", "docker", "--only", "podman")
    machine.sh("sed -i /^ana:/d /etc/subuid /etc/subgid")
    predicted = machine.prepare("--check", *only, rc=1)
    assert machine.sh("command -v docker || true") == ""
    first = machine.prepare(*only, rc=0)
    assert _rows(predicted) == _rows(first)
    assert _rows(first) == [
        ("docker", "package docker.io"),
        ("docker", "settings in /etc/docker/daemon.json"),
        ("docker", "group docker for ana"),
        ("podman", "package podman"),
        ("podman", "subordinate user ids for ana"),
        ("podman", "subordinate group ids for ana"),
    ]
    second = machine.prepare(*only, rc=0)
    assert second["changed"] == 0
    assert machine.prepare("--check", *only, rc=0)["changed"] == 0
    assert "docker" in machine.sh("id -nG ana").split()
    assert machine.sh("podman --version").startswith("podman version")
    assert machine.sh("grep ^ana: /etc/subuid") == "ana:100000:65536"
    assert machine.sh("ls -d /tmp/selfhost-prepare* 2>/dev/null || true") == ""


def test_settings_of_the_user_are_merged_and_kept_beside(machine):
    machine.sh("mkdir -p /etc/docker; printf '#!/bin/sh\\necho Docker version 27.5.1, build x\\n' > /usr/bin/dockerd")
    machine.sh("chmod +x /usr/bin/dockerd; groupadd docker")
    machine.sh("""echo '{"data-root": "/big", "log-opts": {"max-size": "1g"}}' > /etc/docker/daemon.json""")
    machine.prepare("--only", "docker", rc=0)
    now = json.loads(machine.sh("cat /etc/docker/daemon.json"))
    assert now == {
        "data-root": "/big",
        "log-driver": "json-file",
        "log-opts": {"max-size": "1g", "max-file": "3"},
        "features": {"cdi": True},
    }
    assert '"max-size": "1g"}}' in machine.sh("cat /etc/docker/daemon.json.*~")


def test_the_snap_of_docker_is_refused_in_words(machine):
    machine.sh("mkdir -p /snap/bin; touch /snap/bin/docker")
    assert machine.prepare("--only", "docker", rc=4)["error"]["id"] == "RT096"


def test_no_network_is_told_as_that(machine):
    machine.sh("rm -rf /var/lib/apt/lists/*; echo nameserver 127.0.0.1 > /etc/resolv.conf")
    assert machine.prepare("--only", "podman", rc=4)["error"]["id"] == "RT093"


def test_another_distribution_is_named(machine):
    machine.sh("rm /etc/os-release; printf 'NAME=Fedora\\nID=fedora\\nVERSION_ID=43\\n' > /etc/os-release")
    machine.sh("echo 'Fedora release 43' > /etc/fedora-release; cp /etc/fedora-release /etc/redhat-release")
    error = machine.prepare("--only", "podman", rc=4)["error"]
    assert error["id"] == "RT095"
    assert "Fedora" in error["what"]


def test_the_group_of_a_card_s_nodes_is_joined_by_its_number(machine):
    machine.sh("groupadd -g 992 render; mkdir -p /dev/dri; mknod /dev/kfd c 234 0; mknod /dev/dri/renderD128 c 226 128")
    machine.sh("chgrp 992 /dev/kfd /dev/dri/renderD128")
    predicted = machine.prepare("--check", "--only", "amd_access", rc=1)
    first = machine.prepare("--only", "amd_access", rc=0)
    assert _rows(predicted) == _rows(first) == [("amd_access", "groups of the nodes for ana")]
    assert "992" in machine.sh("id -G ana").split()
    assert machine.prepare("--only", "amd_access", rc=0)["changed"] == 0


def test_cards_without_a_driver_are_refused_and_the_driver_is_named(machine):
    for role in ("nvidia_container_toolkit", "amd_access"):
        error = machine.prepare("--only", role, rc=4)["error"]
        assert error["id"] == "RT099"
    assert machine.sh("command -v nvidia-smi || true") == ""


class Repository:
    """A signed repository like NVIDIA's, served on this machine."""

    def __init__(self, folder: Path, address: str) -> None:
        self.home = tempfile.mkdtemp(prefix="g")
        self.folder = folder
        self._gpg("--quick-generate-key", "Stand-in <one@example.org>", "rsa2048", "default", "never")
        rows = self._gpg("--list-keys", "--with-colons").splitlines()
        self.fingerprint = next(row.split(":")[9] for row in rows if row.startswith("fpr:"))
        flat = folder / "stable" / "deb" / "amd64"
        flat.mkdir(parents=True)
        (folder / "gpgkey").write_text(self._gpg("--armor", "--export"))
        stanzas = [self._package(flat, name) for name in PACKAGES]
        (flat / "Packages").write_text("\n".join(stanzas))
        digest = hashlib.sha256((flat / "Packages").read_bytes()).hexdigest()
        size = (flat / "Packages").stat().st_size
        (flat / "Release").write_text(f"Date: Wed, 02 Jan 2025 00:00:00 UTC\nSHA256:\n {digest} {size} Packages\n")
        self._gpg("--clearsign", "-o", str(flat / "InRelease"), str(flat / "Release"))
        handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        self.server = http.server.ThreadingHTTPServer((address, 0), lambda *a: handler(*a, directory=str(folder)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://{address}:{self.server.server_address[1]}"

    def _gpg(self, *words: str) -> str:
        argv = ["gpg", "--homedir", self.home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
        return subprocess.run([*argv, *words], capture_output=True, text=True, check=True).stdout

    def _package(self, flat: Path, name: str) -> str:
        tree = self.folder / "build" / name
        (tree / "DEBIAN").mkdir(parents=True)
        control = f"Package: {name}\nVersion: {VERSION}\nArchitecture: all\nMaintainer: n <n@a.b>\nDescription: x\n"
        (tree / "DEBIAN" / "control").write_text(control)
        if name == "nvidia-container-toolkit-base":
            (tree / "usr" / "bin").mkdir(parents=True)
            (tree / "usr" / "bin" / "nvidia-ctk").write_text(_CTK)
            (tree / "usr" / "bin" / "nvidia-ctk").chmod(0o755)
        deb = flat / f"{name}.deb"
        subprocess.run(["dpkg-deb", "-b", "--root-owner-group", str(tree), str(deb)], check=True, capture_output=True)
        digest = hashlib.sha256(deb.read_bytes()).hexdigest()
        return f"{control}Filename: ./{name}.deb\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        subprocess.run(["gpgconf", "--homedir", self.home, "--kill", "all"], check=False)
        shutil.rmtree(self.home, ignore_errors=True)


@pytest.fixture
def repository(tmp_path) -> Iterator[Repository]:
    made = Repository(tmp_path, "127.0.0.1")
    yield made
    made.close()


def _toolkit(repository: Repository, fingerprint: str) -> dict:
    return {
        "prepare_roles": ["nvidia_container_toolkit"],
        "nvidia_container_toolkit_url": repository.url,
        "nvidia_container_toolkit_fingerprint": fingerprint,
    }


def _with_a_driver(machine: Machine) -> None:
    machine.sh("apt-get install -y -q libssl3")  # of the Python that is lent to it
    machine.sh("printf '#!/bin/sh\\necho 580.95.05\\n' > /usr/bin/nvidia-smi; chmod +x /usr/bin/nvidia-smi")
    machine.sh("mkdir -p /etc/docker; touch /usr/bin/dockerd; chmod +x /usr/bin/dockerd")
    machine.sh("touch /usr/lib/libcuda.so.580.95.05")


def test_the_toolkit_comes_from_a_repository_whose_key_has_the_fingerprint(machine, repository):
    _with_a_driver(machine)
    variables = _toolkit(repository, repository.fingerprint)
    predicted = machine.play(variables=variables, check=True)
    first = machine.play(variables=variables)
    assert predicted["changed"] == first["changed"] == [
        "NVIDIA's signing key",
        "NVIDIA's repository",
        f"Packages nvidia-container-toolkit {VERSION}",
        "Runtime nvidia of docker",
        "CDI specification /etc/cdi/nvidia.yaml",
    ]  # fmt: skip
    second = machine.play(variables=variables)
    assert (second["ok"], second["changed"], second["left"]) == (True, [], [])
    assert "libcuda.so.580.95.05" in machine.sh("cat /etc/cdi/nvidia.yaml")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("rm /usr/lib/libcuda.so.580.95.05", id="a path that is gone"),
        pytest.param("truncate -s 60 /etc/cdi/nvidia.yaml", id="cut off"),
        pytest.param("sed -i s/580.95.05/575.1.1/g /etc/cdi/nvidia.yaml", id="of another driver"),
    ],
)
def test_a_specification_that_does_not_fit_is_written_anew(machine, repository, damage):
    _with_a_driver(machine)
    variables = _toolkit(repository, repository.fingerprint)
    machine.play(variables=variables)
    machine.sh(damage)
    assert machine.play(variables=variables)["changed"] == ["CDI specification /etc/cdi/nvidia.yaml"]


def test_a_key_with_another_fingerprint_is_refused_before_anything_is_written(machine, repository):
    _with_a_driver(machine)
    told = machine.play(variables=_toolkit(repository, "C95B321B61E88C1809C4F759DDCAE044F796ECB0"))
    assert not told["ok"]
    assert told["changed"] == []
    assert told["failed"][0].startswith("RT098 ")
    assert repository.fingerprint in told["failed"][0]
    assert (
        machine.sh("ls /etc/apt/keyrings /etc/apt/sources.list.d") == "/etc/apt/keyrings:\n\n/etc/apt/sources.list.d:"
    )
