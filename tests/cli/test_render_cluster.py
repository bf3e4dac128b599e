"""`selfhost render helm` and `render kubernetes` as a user runs them: files, checks, a lock, snapshots of clusters."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from selfhost.stack.entry import Entry, LockedImage
from selfhost.stack.lock import to_text
from tests.fakes.cluster import GPU_TAINT, H100, L4, node, pod, runtime_class

ROOT = Path(__file__).parents[2]
DIGEST = "sha256:" + "5" * 64
REVISION = "0123456789abcdef0123456789abcdef01234567"
ONE = {"nvidia.com/gpu": "1"}
CLUSTER = [node("a", ONE, L4, GPU_TAINT), node("b", {"nvidia.com/gpu": "8"}, H100, GPU_TAINT), runtime_class("nvidia")]
OTHER = [node("x", ONE, {**L4, "nvidia.com/gpu.memory": "23028"}, {"key": "gpu", "effect": "NoSchedule"})]


def selfhost(*words: str, cwd: Path, home: Path | None = None) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "HOME": str(home or cwd), "HF_HUB_OFFLINE": "1", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "selfhost", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=cwd, env=env, check=False)


def snapshot(folder: Path, objects: list[dict]) -> str:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"schema": "selfhost.snapshot/1", "kubernetes": {"objects": objects}}))
    return str(path)


def texts(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def test_a_chart_with_the_values_of_the_smallest_card_that_fits(tmp_path: Path) -> None:
    done = selfhost("render", "helm", "qwen3-4b", "--host", snapshot(tmp_path, CLUSTER), "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    values = yaml.safe_load((tmp_path / "out/values.yaml").read_text())
    assert values["accelerator"]["nodeLabels"][0]["values"] == ["22342"]
    assert values["runtimeClassName"] == "nvidia"
    chart = ROOT / "templates/helm/selfhost-model"
    assert texts(tmp_path / "out/selfhost-model") == texts(chart)
    assert not (tmp_path / "out/key").exists()
    assert (tmp_path / "out/.gitignore").read_text().splitlines()[-2:] == ["key", "key.header"]


def test_a_check_says_what_was_edited_and_what_is_as_planned(tmp_path: Path) -> None:
    words = ("render", "kubernetes", "qwen3-4b", "--host", snapshot(tmp_path, CLUSTER), "-o", "out")
    assert selfhost(*words, cwd=tmp_path).returncode == 0
    assert selfhost(*words, "--check", cwd=tmp_path).returncode == 0
    path = tmp_path / "out/manifests.yaml"
    path.write_text(path.read_text().replace("replicas: 1", "replicas: 2"))
    checked = selfhost(*words, "--check", cwd=tmp_path)
    assert checked.returncode == 1
    assert "-  replicas: 2" in checked.stdout
    again = selfhost(*words, cwd=tmp_path)
    assert (again.returncode, "RT031" in again.stderr) == (2, True)


def test_a_namespace_and_a_context_stand_in_the_commands(tmp_path: Path) -> None:
    done = selfhost(
        "render", "kubernetes", "qwen3-4b", "--host", snapshot(tmp_path, CLUSTER), "--namespace", "models", "-o", "out",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "namespace: models" in (tmp_path / "out/manifests.yaml").read_text()
    assert (
        "kubectl --namespace models apply --server-side -f manifests.yaml" in (tmp_path / "out/README.txt").read_text()
    )


@pytest.mark.parametrize("words", [("render", "compose", "qwen3-4b"), ("plan", "qwen3-4b")])
def test_a_namespace_without_a_cluster_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    done = selfhost(*words, "--namespace", "models", cwd=tmp_path)
    assert (done.returncode, "CF110" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("objects", "id"),
    [
        ([node("a")], "PL095"),
        ([node("a", ONE, L4), pod("p", "a", ONE)], "PL096"),
        ([node("a", ONE, L4, {"key": "dedicated", "effect": "NoSchedule"})], "PL097"),
        ([node("a", ONE, L4, memory="8Gi")], "PL098"),
    ],
)
def test_a_cluster_without_a_place_is_refused_in_words(objects: list[dict], id: str, tmp_path: Path) -> None:
    place = snapshot(tmp_path, objects)
    for words in (("render", "helm"), ("plan", "--runtime", "kubernetes")):
        done = selfhost(*words, "qwen3-4b", "--host", place, cwd=tmp_path)
        assert (done.returncode, id in done.stderr) == (4, True), done.stderr


def test_a_folder_of_this_machine_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    config = {
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 512,
    }  # fmt: skip
    (model / "config.json").write_text(json.dumps(config))
    header = json.dumps({"x": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    done = selfhost("render", "helm", str(model), "--host", snapshot(tmp_path, CLUSTER), cwd=tmp_path)
    assert (done.returncode, "PL090" in done.stderr) == (2, True), done.stderr


def project(folder: Path, objects: list[dict], *, context: int = 32768) -> str:
    folder.mkdir(parents=True)
    (folder / "selfhost.yaml").write_text(
        "version: 1\nservices:\n  chat:\n    model: qwen3-4b\n    reasoning: off\n"
        "    kubernetes: {namespace: models, storage_class: fast}\n"
    )
    entry = Entry(
        runtime="docker", engine="vllm", engine_version="0.33.0", model="Qwen/Qwen3-4B", revision=REVISION,
        image=LockedImage(reference="vllm/vllm-openai:v0.33.0", digest=DIGEST, platform="linux/amd64"),
        reasoning="off", weights_precision="fp8", kv_precision="auto", context=context, concurrency=32,
    )  # fmt: skip
    (folder / "selfhost.lock").write_text(to_text({"chat": entry}))
    return snapshot(folder, objects)


def locked(folder: Path, place: str, target: str) -> "subprocess.CompletedProcess[str]":
    words = ("render", target, "chat", "--locked", "--file", "selfhost.yaml", "--host", place, "-o", f"{target}-out")
    return selfhost(*words, cwd=folder, home=folder / "home")


@pytest.mark.parametrize("target", ["helm", "kubernetes"])
def test_two_people_with_one_file_and_one_lock_get_the_same_bytes(target: str, tmp_path: Path) -> None:
    made = []
    for who in ("ana", "bob/work/deep"):
        folder = tmp_path / who
        done = locked(folder, project(folder, CLUSTER), target)
        assert done.returncode == 0, done.stderr
        made.append(texts(folder / f"{target}-out"))
    assert made[0] == made[1]
    first = made[0]["values.yaml" if target == "helm" else "manifests.yaml"].decode()
    assert DIGEST in first
    assert REVISION in first
    assert str(tmp_path) not in str(made[0])


def leaves(tree: object, path: str = "") -> dict[str, object]:
    if not isinstance(tree, Mapping) or not tree:
        return {path: tree}
    return {
        key: leaf for name, inner in tree.items() for key, leaf in leaves(inner, f"{path}.{name}".strip(".")).items()
    }


def test_between_two_clusters_only_what_the_page_lists_differs(tmp_path: Path) -> None:
    made = []
    for who, objects in (("ana", CLUSTER), ("bob", OTHER)):
        done = locked(tmp_path / who, project(tmp_path / who, objects), "helm")
        assert done.returncode == 0, done.stderr
        made.append(leaves(yaml.safe_load((tmp_path / who / "helm-out/values.yaml").read_text())))
    one, other = made
    differs = {path for path in {**one, **other} if one.get(path, "") != other.get(path, "")}
    assert {"accelerator.nodeLabels", "accelerator.tolerations", "runtimeClassName"} <= differs
    page = (ROOT / "docs/kubernetes.md").read_text().partition("## What may differ")[2]
    listed = tuple(
        re.findall(r"`([a-zA-Z.]+)`", " ".join(line.split("|")[1] for line in page.splitlines() if "|" in line))
    )
    assert [path for path in sorted(differs) if not path.startswith(listed)] == []


def test_a_plan_that_is_not_as_locked_is_refused(tmp_path: Path) -> None:
    done = locked(tmp_path / "ana", project(tmp_path / "ana", CLUSTER, context=4096), "helm")
    assert (done.returncode, "CF025" in done.stderr) == (2, True)
    assert "context" in done.stderr


@pytest.mark.parametrize("device", [("--device", "cpu"), ("--device", "cpu", "--host", "HERE")])
def test_the_model_of_a_package_is_fetched_from_the_hub(device: tuple[str, ...], tmp_path: Path) -> None:
    words = [snapshot(tmp_path, [node("a")]) if word == "HERE" else word for word in device]
    done = selfhost("render", "kubernetes", "smollm2-135m", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"model":"HuggingFaceTB/SmolLM2-135M-Instruct","revision":"main"' in done.stdout
