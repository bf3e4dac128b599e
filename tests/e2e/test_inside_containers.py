"""detect and doctor where users stand: in containers and pods, looked into from outside and run inside."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.containers import ROOT, Client, docker, podman, rootfs

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("dockerd", "podman", "busybox")),
    reason="a container engine of our own needs root and `make test`'s packages (scripts/test_tools.sh)",
)
MIB = 2**20
POD = """apiVersion: v1
kind: Pod
metadata: {name: llm}
spec:
  containers:
    - name: engine
      image: IMAGE
      command: [sleep, "600"]
      resources: {limits: {memory: 128Mi, cpu: "1"}}
"""


@pytest.fixture(scope="module")
def by_docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, str]]:
    with docker(tmp_path_factory.mktemp("d")) as client:
        yield client, client.load(rootfs(tmp_path_factory.mktemp("rootfs")))


@pytest.fixture(scope="module")
def by_podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, str]]:
    with podman(tmp_path_factory.mktemp("p")) as client:
        yield client, client.load(rootfs(tmp_path_factory.mktemp("rootfs")))


def facts(done_stdout: str) -> tuple[list[str], float, int]:
    """Labels innermost first, cores, bytes of memory."""
    machine = json.loads(done_stdout)["machine"]
    labels = [layer["label"] for layer in machine["nesting"]]
    return labels, machine["cores"]["value"], machine["memory_limit_bytes"]["value"]


def from_outside(client: Client, name: str) -> tuple[list[str], float, int]:
    done = client.selfhost("detect", "--inside", f"{client.kind}:{name}", "--json")
    assert done.returncode == 0, done.stderr
    return facts(done.stdout)


def inside(client: Client, image: str, *options: str) -> tuple[list[str], float, int]:
    """selfhost itself as the container's process, with this interpreter and this checkout handed in read-only."""
    folders = {"/usr", "/lib", "/lib64", sys.base_prefix, sys.prefix, str(ROOT)}
    binds = [word for folder in sorted(folders) if Path(folder).exists() for word in ("-v", f"{folder}:{folder}:ro")]
    run = ("run", "--rm", "--network", "none", *options, *binds, "-e", f"PYTHONPATH={ROOT}", "-e", "HOME=/tmp", image)
    return facts(client.run(*run, sys.executable, "-m", "selfhost", "detect", "--json"))


@pytest.mark.parametrize(
    ("options", "cores", "memory"),
    [((), None, None), (("--memory", "256m", "--cpus", "0.5"), 0.5, 256 * MIB), (("--cpuset-cpus", "0"), 1.0, None)],
)
def test_limits_of_a_docker_container_are_seen_from_outside_and_inside(
    by_docker: tuple[Client, str], options: tuple[str, ...], cores: float | None, memory: int | None
) -> None:
    client, image = by_docker
    name = client.run("run", "-d", "--rm", "--network", "none", *options, image, "sleep", "600")
    for labels, seen_cores, seen_memory in (from_outside(client, name), inside(client, image, *options)):
        assert labels[0] == "docker"
        assert seen_cores == (cores or os.cpu_count())
        assert (seen_memory == memory) if memory else (seen_memory > 1024 * MIB)


def test_a_mounted_socket_is_of_the_machine_around(by_docker: tuple[Client, str]) -> None:
    client, image = by_docker
    socket = client.env["DOCKER_HOST"].removeprefix("unix://")
    labels, _, _ = inside(client, image, "-v", f"{socket}:/var/run/docker.sock")
    assert labels[:2] == ["sibling-docker", "docker"]


def test_podman_and_a_played_pod_are_podman(by_podman: tuple[Client, str], tmp_path: Path) -> None:
    client, image = by_podman
    name = client.run("run", "-d", "--rm", "--network", "none", image, "sleep", "600")
    assert from_outside(client, name)[0][0] == "podman"
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(POD.replace("IMAGE", image))
    client.run("play", "kube", "--network", "none", str(manifest))
    labels, cores, memory = from_outside(client, "llm-engine")
    assert (labels[0], cores, memory) == ("podman", 1.0, 128 * MIB)


def test_doctor_looks_into_a_container_and_leaves_it_as_it_was(by_docker: tuple[Client, str]) -> None:
    client, image = by_docker
    name = client.run(
        "run", "-d", "--rm", "--network", "none", "--device", "/dev/null:/dev/fuse0", image, "sleep", "600"
    )
    before = client.run("inspect", "--format", "{{.State.Pid}} {{.RestartCount}}", name)
    done = client.selfhost("doctor", "--inside", f"docker:{name}", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "selfhost.findings/1"
    assert client.run("inspect", "--format", "{{.State.Pid}} {{.RestartCount}}", name) == before


def test_a_proof_leaves_nothing_behind(by_docker: tuple[Client, str]) -> None:
    client, _ = by_docker
    images, containers = client.run("images", "-q"), client.run("ps", "-aq")
    done = client.selfhost("doctor", "--prove", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert (client.run("images", "-q"), client.run("ps", "-aq")) == (images, containers)
