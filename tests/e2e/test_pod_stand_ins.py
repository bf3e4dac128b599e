"""The rendered pod of a card with the stand-ins of vLLM and SGLang, by `podman play kube`: no card, no scheduler.

Shown is what the engine is given: a command line that its own parser takes, no variable that selects cards, the key and
the mode. Which card comes in is the device plugin's part, which is not here.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.containers import Client, podman
from tests.e2e.engine_images.stand_ins import VERSIONS, stand_ins
from tests.e2e.talking import ask_when_ready
from tests.e2e.test_pod_real import KEY, PORT, ended, with_a_port
from tests.e2e.world import ROOT, World
from tests.fakes.qwen3 import in_hub_cache

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("dockerd", "podman")),
        reason="container engines of our own need root and `make test`'s packages (scripts/test_tools.sh)",
    ),
]
MASKS = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}
ROWS = (
    ("rtx4090", "vllm", "on"),
    ("rtx4090", "vllm", "off"),
    ("rtx4090", "sglang", "on"),
    ("h100", "sglang", "on"),
    ("a100-mig-slice", "vllm", "on"),
    ("amd-mi300x", "vllm", "off"),
    ("amd-mi300x", "sglang", "on"),
    ("arc-b580", "vllm", "on"),
)


@pytest.fixture(scope="module")
def by_podman(tmp_path_factory: pytest.TempPathFactory, engine_python: str | None) -> Iterator[Client]:
    if engine_python is None:
        pytest.skip("no Python with vLLM to read the parsers with: `make up` installs one")
    with podman(tmp_path_factory.mktemp("p")) as client:
        client.load_images(stand_ins(str(engine_python)))
        yield client


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("hub")
    in_hub_cache(home)
    return next(home.glob("**/snapshots/*"))


@pytest.mark.parametrize(("snapshot", "engine", "mode"), ROWS)
def test_the_pod_gives_its_engine_what_was_planned(
    snapshot: str, engine: str, mode: str, tmp_path: Path, by_podman: Client, weights: Path, published: Any
) -> None:
    base = tmp_path / "home"
    base.mkdir()
    world = World(base=base, wheels=None, extra_env={"HF_HOME": str(weights.parents[2].parent)})
    folder = tmp_path / "files"
    deployment = rendered(world, folder, snapshot, engine, mode)
    name = played(by_podman, world, folder, weights, deployment)
    try:
        ask_when_ready(PORT, KEY, "qwen3-4b", log=lambda: by_podman.run("logs", name), within_s=60)
        told = said(by_podman, name)
        heard = published(engine, VERSIONS[engine], [told["argv"]])["lines"][0]
        assert "parsed" in heard, heard
        if engine == "vllm":
            kwargs = json.loads(told["argv"][told["argv"].index("--default-chat-template-kwargs") + 1])
            assert kwargs["enable_thinking"] is (mode == "on")
        assert not MASKS & set(told["environment"])
        assert "NVIDIA_VISIBLE_DEVICES" not in told["values"]
        assert ("VLLM_API_KEY" in told["environment"]) == (engine == "vllm")
        assert not [one for one in told["environment"] if "TOKEN" in one or one == "HF_HOME"]
        assert told["capabilities"]["CapEff"].strip("0") == ""
        assert "/model" not in told["writable"]
        report = smoke(world, tmp_path, engine)
        bad = {(one["id"], one["state"]) for one in report if one["state"] not in ("passed", "skipped")}
        assert bad <= ({("SM130", "undecided")} if engine == "sglang" else set())
    finally:
        ended(by_podman, world, folder)


def rendered(world: World, folder: Path, snapshot: str, engine: str, mode: str) -> dict[str, Any]:
    service = {
        "model": "qwen3-4b", "engine": engine, "reasoning": {"mode": mode},
        "kubernetes": {"existing_claim": f"{world.name}-weights"},
    }  # fmt: skip
    folder.mkdir()
    (folder / "selfhost.yaml").write_text(json.dumps({"version": 1, "services": {world.name: service}}))
    machine = ROOT / "tests" / "snapshots" / f"{snapshot}.json"
    done = world.run(
        "render", "kubernetes", "-f", str(folder / "selfhost.yaml"), "-o", str(folder / "out"), "--host", str(machine)
    )
    assert done.returncode == 0, done.stderr
    found = yaml.safe_load_all((folder / "out" / "manifests.yaml").read_text())
    return next(one for one in found if one["kind"] == "Deployment")


def played(client: Client, world: World, folder: Path, weights: Path, deployment: dict[str, Any]) -> str:
    """The name of the engine's container."""
    volume = f"{world.name}-weights"
    client.run("volume", "create", volume)
    (seen,) = json.loads(client.run("volume", "inspect", volume))
    shutil.copytree(weights, seen["Mountpoint"], dirs_exist_ok=True)
    with_a_port(client, world, folder, deployment)
    return next(one for one in client.run("ps", "--format", "{{.Names}}").split() if one.endswith("-engine"))


def said(client: Client, name: str) -> dict[str, Any]:
    """What the stand-in says that it was given."""
    (line,) = [one for one in client.run("logs", name).splitlines() if one.startswith("stand-in ")]
    return dict(json.loads(line.removeprefix("stand-in ")))


def smoke(world: World, folder: Path, engine: str) -> list[dict[str, Any]]:
    key = folder / "key"
    key.write_text(KEY)
    words = ("--key-file", str(key)) if engine == "vllm" else ()
    done = world.run("smoke", "--url", f"http://127.0.0.1:{PORT}/v1", *words, "--json", timeout_s=200)
    checks = json.loads(done.stdout)["checks"]
    assert checks, done.stderr
    return list(checks)
