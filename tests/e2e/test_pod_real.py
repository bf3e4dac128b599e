"""The rendered pod with the real engine, by `podman play kube`: no cluster, no selfhost, the manifest as it is.

podman 4.3 passes over what needs a scheduler, and over `subPath`: the volume holds this one model. What a cluster adds
by itself is added here: the key's Secret, a port of this machine, and the engine that the test image lacks.
"""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import cpu_image
from tests.e2e.containers import Client, podman
from tests.e2e.talking import ask_when_ready
from tests.e2e.test_containers_real import ENGINES
from tests.e2e.world import REASONER, World

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("dockerd", "podman")),
        reason="container engines of our own need root and `make test`'s packages (scripts/test_tools.sh)",
    ),
]
KEY = "sk-of-the-test"
PORT = 18451


@pytest.fixture(scope="module")
def by_podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with podman(tmp_path_factory.mktemp("p")) as client:
        cpu_image.load(client)
        yield client


def smollm2() -> Path:
    """As `selfhost up` made it on this machine."""
    return next(path.parent for path in sorted((ENGINES.parent / "models").glob("*mol*135*/**/config.json")))


def manifests(world: World, folder: Path, model: Path, mode: str) -> list[dict[str, Any]]:
    """As `selfhost render kubernetes` writes them for a claim that holds the weights."""
    service = {
        "model": str(model),
        "devices": "cpu",
        "reasoning": {"mode": mode},
        "kubernetes": {"existing_claim": f"{world.name}-weights"},
    }
    if model != REASONER:
        del service["reasoning"]
    folder.mkdir()
    (folder / "selfhost.yaml").write_text(json.dumps({"version": 1, "services": {world.name: service}}))
    done = world.run("render", "kubernetes", "-f", str(folder / "selfhost.yaml"), "-o", str(folder / "out"))
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all((folder / "out" / "manifests.yaml").read_text()))


def with_the_engine(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """The Deployment, with the folders of this machine's engine."""
    (deployment,) = (one for one in objects if one["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (engine,) = pod["containers"]
    python, folders = cpu_image.engine(ENGINES)
    engine["env"].append({"name": "ENGINE_PYTHON", "value": python})
    for number, path in enumerate(folders):
        source = path.partition(":")[0]
        pod["volumes"].append({"name": f"engine{number}", "hostPath": {"path": source, "type": "Directory"}})
        engine["volumeMounts"].append({"name": f"engine{number}", "mountPath": source, "readOnly": True})
    return dict(deployment)


def with_a_port(client: Client, world: World, folder: Path, deployment: dict[str, Any]) -> None:
    """Played with the key's Secret, and a port of this machine."""
    pod = deployment["spec"]["template"]["spec"]
    assert "initContainers" not in pod
    pod["containers"][0]["ports"][0] |= {"hostPort": PORT, "hostIP": "127.0.0.1"}
    (folder / "pod.yaml").write_text(yaml.safe_dump(deployment))
    secret = json.dumps({"api-key": base64.b64encode(KEY.encode()).decode()})  # the form that podman 4.3 reads
    client.run("secret", "create", f"{world.name}-api-key", "-", stdin=secret.encode())
    client.run("play", "kube", str(folder / "pod.yaml"))


def started(client: Client, world: World, folder: Path, model: Path, mode: str) -> str:
    """Plays the manifest; returns the name of the engine's container."""
    volume = f"{world.name}-weights"
    client.run("volume", "create", volume)
    (seen,) = json.loads(client.run("volume", "inspect", volume))
    shutil.copytree(model, seen["Mountpoint"], dirs_exist_ok=True)
    with_a_port(client, world, folder, with_the_engine(manifests(world, folder, model, mode)))
    names = client.run("ps", "--format", "{{.Names}}").split()
    return next(name for name in names if name.endswith("-engine"))


def ended(client: Client, world: World, folder: Path) -> None:
    client.run("play", "kube", "--down", str(folder / "pod.yaml"))
    client.run("volume", "rm", "-f", f"{world.name}-weights")
    client.run("secret", "rm", f"{world.name}-api-key")


@pytest.mark.parametrize("mode", ["on", "off"])
def test_a_client_that_sends_nothing_sees_the_mode(
    real_world: World, by_podman: Client, tmp_path: Path, mode: str
) -> None:
    folder = tmp_path / "files"
    name = started(by_podman, real_world, folder, REASONER, mode)
    try:
        message = ask_when_ready(PORT, KEY, REASONER.name, log=lambda: by_podman.run("logs", name))
        assert bool(message.get("reasoning")) is (mode == "on")
        assert message["content"]
    finally:
        ended(by_podman, real_world, folder)


def test_the_pod_passes_smoke_and_keeps_its_promises(real_world: World, by_podman: Client, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    model = smollm2()
    name = started(by_podman, real_world, folder, model, "")
    try:
        ask_when_ready(PORT, KEY, model.name.lower(), log=lambda: by_podman.run("logs", name))
        (seen,) = json.loads(by_podman.run("inspect", name))
        assert not seen["EffectiveCaps"]
        assert {mount["Destination"]: mount["RW"] for mount in seen["Mounts"]}["/model"] is False
        assert KEY not in " ".join([*seen["Config"]["Cmd"], *seen["Args"]])
        key = tmp_path / "key"
        key.write_text(KEY)
        done = real_world.run("smoke", "--url", f"http://127.0.0.1:{PORT}/v1", "--key-file", str(key), timeout_s=600)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        ended(by_podman, real_world, folder)
