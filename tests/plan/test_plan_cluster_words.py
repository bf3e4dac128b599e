"""What files for a cluster say beside the values, and on nodes of which processor an image is put."""

from dataclasses import replace

import pytest

from selfhost.models.catalog import by_alias
from selfhost.models.listed import listed
from selfhost.plan.cluster.arch import arch_of
from selfhost.plan.cluster.names import model_folder
from selfhost.plan.cluster.values import values_of
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.host import Known
from selfhost.shapes.plan import Image
from tests.fakes.cluster import GPU_TAINT, L4, node
from tests.plan.test_plan_cluster import ONE, plan_in


def image_for(*platforms):
    return Image(engine="vllm", version="1", backend="cuda", name="vllm/vllm-openai", platforms=platforms)


@pytest.mark.parametrize(
    ("reference", "platforms", "arch"),
    [
        ("docker.io/vllm/vllm-openai-cpu:v0.32.0-x86_64", ("linux/amd64", "linux/arm64"), "amd64"),
        ("docker.io/vllm/vllm-openai-cpu:v0.32.0-arm64@sha256:ab", (), "arm64"),
        ("docker.io/vllm/vllm-openai:v0.33.0", ("linux/amd64", "linux/arm64"), ""),
        ("docker.io/vllm/vllm-openai:v0.33.0", ("linux/amd64",), "amd64"),
        ("vllm/vllm-openai@sha256:ab", ("linux/arm64",), "arm64"),
        ("registry.example:5000/own/vllm:1", ("linux/amd64",), ""),  # somebody's own, of which nothing is known
        ("registry.example:5000/own/vllm:arm64", ("linux/amd64",), "arm64"),
        ("registry.example:5000/own/vllm_x86_64@sha256:ab", (), "amd64"),
        ("registry.example:5000/own/myx86_64:1", (), ""),
    ],
)
def test_the_architecture_is_that_of_the_tag_or_of_the_only_platform(reference, platforms, arch):
    assert arch_of(image_for(*platforms), reference) == arch


@pytest.mark.parametrize(
    ("host", "wanted"),
    [("cpu", {"kubernetes.io/arch": "amd64"}), ("amd-mi300x", {"kubernetes.io/arch": "amd64"}), ("rtx4090", {})],
)
def test_an_image_of_one_architecture_is_kept_off_the_nodes_of_others(host, wanted):
    assert values_of(plan_in(host, "qwen3-0.6b")).get("nodeSelector", {}) == wanted


def test_what_was_asked_for_wins():
    ask = ClusterAsk(node_selector={"kubernetes.io/arch": "arm64", "pool": "gpu"})
    assert values_of(plan_in("cpu", "qwen3-0.6b", cluster=ask))["nodeSelector"] == {
        "kubernetes.io/arch": "arm64", "pool": "gpu",
    }  # fmt: skip


def test_a_branch_is_called_one_and_a_commit_is_not():
    branch = plan_in("h100").cluster.reasons
    assert branch["model"].startswith("main is a branch: the commit that it names on the day is fetched")
    model = replace(listed(by_alias("qwen3-4b")), revision=Known("f00d" * 10, "test"))
    assert "model" not in plan_in("h100", model=model).cluster.reasons


def test_no_digest_is_kept_of_an_image_that_nodes_pull():
    said = plan_in("h100").cluster.reasons["image"]
    assert "`docker manifest inspect vllm/vllm-openai:v0.33.0` shows whether it exists" in said
    assert "digest" not in said


def test_where_the_cluster_was_not_looked_at_a_reader_is_told_what_to_add():
    said = plan_in("rtx4090").cluster.reasons["nodes"]
    assert "k3s, RKE2 and k0s need `runtimeClassName: nvidia`" in said
    assert "`nodeSelector: {nvidia.com/gpu.product: NVIDIA-GeForce-RTX-4090}`" in said
    amd = plan_in("amd-mi300x").cluster.reasons["nodes"]
    assert "kubectl get nodes -L amd.com/gpu.product-name" in amd
    assert "runtimeClassName" not in amd
    assert "nodes" not in plan_in([node("a", ONE, L4, GPU_TAINT)]).cluster.reasons
    assert "nodes" not in plan_in("cpu", "qwen3-0.6b").cluster.reasons


def test_root_has_a_reason_that_holds():
    (amd,) = plan_in("amd-mi300x").cluster.exceptions
    assert amd.startswith("runAsNonRoot: false, because vllm/vllm-openai-rocm:v0.33.0 names no user without root")
    assert "/dev/kfd belongs to a group" in amd
    for untried in (plan_in("cpu", "qwen3-0.6b"), plan_in("h100", engine="sglang")):
        (words,) = untried.cluster.exceptions
        assert words.endswith("names no user without root and was not tried as another")


def test_times_say_what_they_are_counted_of():
    reasons = plan_in("cpu", "qwen3-0.6b").cluster.reasons
    assert reasons["fetch.budgetSeconds"] == "1.1 GiB at 50 MB/s, three times over; 30 min at least"
    assert "3 min" not in reasons["probes.startupBudgetSeconds"]  # ten are given
    assert "unhealthy" not in plan_in("h100").cluster.reasons["probes.startupBudgetSeconds"]


def test_a_folder_is_called_after_model_and_revision():
    assert model_folder("Qwen/Qwen3-4B", "refs/pr/1") == "models/qwen--qwen3-4b/refs-pr-1"
    plan = plan_in("h100")
    assert plan.cluster.weights_sub_path == model_folder("Qwen/Qwen3-4B", "main")
    # the chart derives it, so that another revision in a file of the user's gets another folder
    assert "subPath" not in values_of(plan)["weights"]
    whole = values_of(plan_in("h100", cluster=ClusterAsk(existing_claim="models")))
    assert whole["weights"]["subPath"] == ""
