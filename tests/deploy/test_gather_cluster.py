"""Which cards of a cluster a model is planned for: the fewest and smallest on which it fits, or why on none."""

import os
from dataclasses import replace

import pytest

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.deploy.gather_cluster import gather_on, plan_in
from selfhost.deploy.workplace import Workplace
from selfhost.plan.cluster.values import values_of
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.host import Vendor
from selfhost.shapes.plan import Verdict
from selfhost.shapes.workload import Toleration
from tests.fakes.cluster import GPU_TAINT, H100, L4, MI300X, node, pod, runtime_class
from tests.fakes.planning import a_service

ONE = {"nvidia.com/gpu": "1"}
TWO_KINDS = [node("small", ONE, L4, GPU_TAINT), node("big", {"nvidia.com/gpu": "8"}, H100, GPU_TAINT)]


class Nowhere:
    def on(self, event):
        pass

    def close(self):
        pass


@pytest.fixture
def work(tmp_path):
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)}
    return Workplace(
        env=env, system=LocalSystem(env), paths=Paths.of(env), sink=Nowhere(), ask=lambda _: False, interactive=False,
        say=lambda _: None,
    )  # fmt: skip


def found(work, objects, model="qwen3-4b", **wish):
    return gather_on(work, a_service(model, **wish), objects)


def test_what_fits_a_small_card_leaves_the_large_ones(work):
    got = found(work, TWO_KINDS)
    assert (got.plan.device_name, got.plan.verdict) == ("NVIDIA L4", Verdict.FITS)
    assert got.service.runtime == "kubernetes"


def test_what_does_not_fit_the_small_one_takes_the_large_one(work):
    got = found(work, TWO_KINDS, "qwen3-32b")
    assert got.plan.device_name == "NVIDIA H100 80GB HBM3"
    assert got.plan.parallel.ranks == 1


def test_a_small_card_that_is_held_is_passed_over(work):
    assert found(work, [*TWO_KINDS, pod("p", "small", ONE)]).plan.device_name == "NVIDIA H100 80GB HBM3"


def test_what_fits_nowhere_is_planned_on_the_largest_and_says_so(work):
    got = found(work, [node("a", ONE, L4), node("b", ONE, {**L4, "nvidia.com/gpu.memory": "15360"})], "qwen3-32b")
    assert got.plan.verdict is Verdict.DOES_NOT_FIT
    assert got.plan.memory.available > 20 * 1024**3


@pytest.mark.parametrize(
    ("device", "name"), [("H100", "NVIDIA H100 80GB HBM3"), ("nvidia.com/gpu", "NVIDIA L4"), (None, "NVIDIA L4")]
)
def test_device_names_one_kind_of_card(device, name, work):
    assert found(work, TWO_KINDS, device=device).plan.device_name == name


def test_a_kind_that_no_node_has_is_refused(work):
    with pytest.raises(EnvironmentMissing) as refused:
        found(work, TWO_KINDS, device="B200")
    assert refused.value.id == "PL095"
    assert "NVIDIA L4" in refused.value.why


def test_the_processor_is_taken_when_it_is_asked_for(work):
    got = found(work, [*TWO_KINDS, node("plain", memory="64Gi", cpu="12")], device="cpu")
    assert (got.plan.device, got.plan.build.backend) == ("cpu", "cpu")
    assert values_of(got.plan)["resources"]["requests"]["cpu"] == "12"


def test_amd_cards_are_planned_with_the_image_for_them(work):
    got = found(work, [node("a", {"amd.com/gpu": "1"}, MI300X)])
    assert got.host.accelerators[0].vendor is Vendor.AMD
    assert got.plan.cluster.image == "docker.io/vllm/vllm-openai-rocm:v0.33.0"


def test_a_shared_card_is_used_in_part(work):
    labels = {**L4, "nvidia.com/gpu.replicas": "3", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    got = found(work, [node("a", {"nvidia.com/gpu": "3"}, labels)], "qwen3-0.6b")
    # 0.9 / 3 = 0.30
    assert got.plan.argv[got.plan.argv.index("--gpu-memory-utilization") + 1] == "0.3"
    assert values_of(got.plan)["accelerator"]["count"] == 1
    assert [one.by for one in got.plan.decisions if one.field == "share"] == ["selfhost"]


def test_a_node_without_memory_beside_its_card_is_refused(work):
    with pytest.raises(EnvironmentMissing) as refused:
        found(work, [node("a", ONE, L4, memory="10Gi"), pod("p", "a", {"memory": "4Gi"})])
    assert refused.value.id == "PL098"
    assert "6.0 GiB" in refused.value.why


def test_a_node_without_cores_beside_its_card_is_refused(work):
    with pytest.raises(EnvironmentMissing) as refused:
        found(work, [node("a", ONE, L4, cpu="4"), pod("p", "a", {"cpu": "3500m"})])
    assert refused.value.id == "PL098"
    assert "0.5" in refused.value.why


def test_a_toleration_of_the_file_opens_a_node(work):
    taint = {"key": "dedicated", "value": "llm", "effect": "NoSchedule"}
    mine = Toleration(key="dedicated", operator="Equal", value="llm", effect="NoSchedule")
    got = found(work, [node("a", ONE, L4, taint)], cluster=ClusterAsk(tolerations=(mine,)))
    assert values_of(got.plan)["tolerations"] == [
        {"key": "dedicated", "operator": "Equal", "value": "llm", "effect": "NoSchedule"}
    ]
    with pytest.raises(EnvironmentMissing) as refused:
        found(work, [node("a", ONE, L4, taint)], cluster=ClusterAsk(tolerations=(replace(mine, value="other"),)))
    assert refused.value.id == "PL097"


def test_what_no_card_of_the_cluster_can_do_is_refused_as_elsewhere(work):
    with pytest.raises(InputError) as refused:
        found(work, TWO_KINDS, precision="int3")
    assert refused.value.id.startswith("PL")


def test_a_snapshot_with_nodes_is_planned_on_them(work):
    host = found(work, [*TWO_KINDS, runtime_class("nvidia")]).host
    again = plan_in(work, a_service("qwen3-4b", runtime="kubernetes"), host=host)
    assert again.plan.cluster.runtime_class == "nvidia"
    assert again.plan.device_name == "NVIDIA L4"


@pytest.mark.parametrize("token", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
def test_a_token_of_the_user_goes_into_a_secret_only_for_what_is_started(token, work):
    mine = replace(work, env={**work.env, token: "hf_x"})
    gated = "meta-llama/Llama-3.1-8B-Instruct"
    with pytest.raises(InputError) as refused:
        gather_on(mine, a_service(gated), TWO_KINDS)
    assert refused.value.id == "PL091"
    got = gather_on(mine, a_service(gated, name="llama"), TWO_KINDS, here=True)
    assert values_of(got.plan)["fetch"]["existingSecret"] == "llama-hub-token"
    assert "hf_x" not in str(got.plan)
