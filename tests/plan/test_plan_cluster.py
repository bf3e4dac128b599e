"""What is decided only for a cluster: the pod's words, what it asks the scheduler for, storage, times, security."""

from dataclasses import replace

import pytest

from selfhost.core.errors import InputError, SelfhostError
from selfhost.hosts.cluster_choice import Wish, startable
from selfhost.hosts.cluster_facts import facts_of
from selfhost.hosts.cluster_host import host_on
from selfhost.models.catalog import by_alias
from selfhost.models.listed import listed
from selfhost.plan.cluster.names import parts_of, release_of, with_registry
from selfhost.plan.cluster.values import values_of
from selfhost.plan.decide import decide, decide_all
from selfhost.plan.digest import digest_of
from selfhost.plan.reasoning import parse
from selfhost.plan.to_json import from_json, to_json
from selfhost.shapes.cluster import ClusterAsk, NodeLabel
from selfhost.shapes.host import Known, Unknown
from selfhost.shapes.model import Origin
from selfhost.shapes.workload import Toleration
from tests.fakes.cluster import (
    A100_80,
    GPU_TAINT,
    H100,
    L4,
    MI300X,
    device_class,
    l4_slice,
    node,
    runtime_class,
)
from tests.fakes.planning import a_service
from tests.render.golden_cases import host_of

GIB = 1024**3
ONE = {"nvidia.com/gpu": "1"}


def plan_in(objects, alias="qwen3-4b", *, which=0, model=None, **wish):
    """On the smallest cards of a cluster, or on those of a recorded machine."""
    if isinstance(objects, str):
        host = host_of(objects)
    else:
        facts = facts_of(objects)
        host = host_on(facts, startable(facts, Wish())[which])
    found = model or listed(by_alias(alias))
    return decide(host=host, model=found, service=a_service(alias, runtime="kubernetes", **wish), port=8000)


def value_after(argv, flag):
    return argv[argv.index(flag) + 1]


def test_the_server_listens_inside_the_pod_and_drains_before_it_is_killed():
    plan = plan_in("h100")
    assert (plan.runtime, plan.container, plan.device) == ("kubernetes", None, "nvidia.com/gpu")
    assert plan.argv[0] == "/model"
    assert [value_after(plan.argv, flag) for flag in ("--host", "--port", "--shutdown-timeout")] == [
        "0.0.0.0",
        "8000",
        "60",
    ]
    assert not {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"} & plan.env.keys()
    values = values_of(plan)
    # a probe of 15 s and a drain of 60 s lie within the grace that the chart adds 15 s to
    assert values["drain"] == {"preStopSeconds": 15, "engineSeconds": 60}


def test_a_drain_of_ones_own_counts():
    plan = plan_in("h100", engine_args=("--shutdown-timeout", "200"))
    assert plan.argv.count("--shutdown-timeout") == 1
    assert values_of(plan)["drain"]["engineSeconds"] == 200
    assert values_of(plan)["extraArgs"] == ["--shutdown-timeout", "200"]


def test_sglang_drains_by_itself_and_gets_no_flag_for_it():
    plan = plan_in("h100", engine="sglang")
    assert "--shutdown-timeout" not in plan.argv
    assert values_of(plan)["engine"]["command"] == ["sglang", "serve"]


def test_the_parts_of_the_command_line_are_the_command_line():
    for host, alias, wish in (("h100", "qwen3-4b", {}), ("cpu", "qwen3-0.6b", {}), ("two-rtx", "qwen3-14b", {}),
                              ("h100", "gpt-oss-20b", {"engine": "sglang"})):  # fmt: skip
        plan = plan_in(host, alias, **wish)
        values = values_of(plan)
        forms = values["precision"]["forms"]
        mode = values["reasoning"]["modes"][plan.cluster.forms.modes[0].name]
        told = [*values["engine"]["args"], *forms["weights"][values["precision"]["weights"]],
                *forms["kv"][values["precision"]["kv"]], *mode["args"], *values.get("extraArgs", [])]  # fmt: skip
        assert tuple(told) == plan.argv


@pytest.mark.parametrize("mode", ["on", "off", "budget=2048"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_each_mode_has_the_words_that_a_plan_for_it_has(mode, engine):
    asked = plan_in("h100", engine=engine, reasoning=parse(mode))
    forms = asked.cluster.forms
    assert forms.modes[0].name == mode
    assert {form.name for form in forms.modes} == {"on", "off", mode}
    for form in forms.modes[1:]:
        other = plan_in("h100", engine=engine, reasoning=parse(form.name)).cluster.forms
        whole = {*forms.args, *form.args}
        assert whole == {*other.args, *other.modes[0].args}
        assert {**forms.env, **form.env} == {**other.env, **other.modes[0].env}
    # the key is as --reasoning takes it
    assert asked.cluster.forms.modes[0].request == asked.reasoning.client_extras


def test_every_level_of_effort_is_a_mode_of_its_own_and_off_is_none_of_gpt_oss():
    values = values_of(plan_in("h100", "gpt-oss-20b", reasoning=parse("effort=low")))
    reasoning = values["reasoning"]
    assert (reasoning["mode"], reasoning["effort"]) == ("effort", "low")
    said = {name: mode for name, mode in reasoning["modes"].items() if mode is not None}
    assert set(said) == {"on", "effort=low", "effort=medium", "effort=high"}
    assert reasoning["modes"]["off"] is None  # the chart's own default is taken out
    assert said["effort=high"]["request"] == {"reasoning_effort": "high"}


def test_a_model_that_does_not_think_has_one_mode():
    values = values_of(plan_in("h100", "qwen2.5-7b"))
    assert values["reasoning"]["field"] == ""
    assert {name for name, mode in values["reasoning"]["modes"].items() if mode is not None} == {"off"}


def test_the_image_has_its_registry_and_a_user_that_it_knows():
    plan = plan_in("h100")
    assert plan.cluster.image == "docker.io/vllm/vllm-openai:v0.33.0"
    assert values_of(plan)["image"] == {
        "registry": "docker.io", "repository": "vllm/vllm-openai", "tag": "v0.33.0", "digest": "",
    }  # fmt: skip
    assert values_of(plan)["podSecurityContext"] == {"runAsUser": 2000, "runAsGroup": 0}
    assert plan.cluster.exceptions == ()


def test_a_digest_of_a_lock_stands_in_the_values():
    digest = "sha256:" + "a" * 64
    plan = plan_in("h100", image=f"registry.example:5000/team/vllm:v0.33.0@{digest}")
    assert values_of(plan)["image"] == {
        "registry": "registry.example:5000", "repository": "team/vllm", "tag": "v0.33.0", "digest": digest,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reference", "whole"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("vllm/x:1", "docker.io/vllm/x:1"),
        ("localhost/x:1", "localhost/x:1"),
        ("r:5000/x@sha256:ab", "r:5000/x@sha256:ab"),
    ],
)
def test_references_are_written_out(reference, whole):
    assert with_registry(reference) == whole


def test_parts_of_a_reference_with_a_port_and_no_tag():
    assert parts_of("r:5000/x/y@sha256:ab") == ("r:5000", "x/y", "", "sha256:ab")
    assert parts_of("docker.io/a/b:1") == ("docker.io", "a/b", "1", "")


@pytest.mark.parametrize(
    ("name", "release"), [("qwen2.5-7b", "qwen2-5-7b"), ("3b", "model-3b"), ("a_b", "a-b"), ("x" * 60, "x" * 48)]
)
def test_a_release_is_named_as_a_service_may_be(name, release):
    assert release_of(name) == release


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("amd-mi300x", ["runAsNonRoot: false"]),
        ("arc-b580", ["runAsNonRoot: false"]),
        ("cpu", ["runAsNonRoot: false"]),
        ("h100", []),
    ],
)
def test_exceptions_to_restricted_name_the_field(host, words):
    plan = plan_in(host, "qwen3-0.6b")
    assert [one.partition(", because")[0] for one in plan.cluster.exceptions] == words
    if words:
        assert values_of(plan)["podSecurityContext"]["runAsUser"] == 0


def test_ranks_on_amd_cards_need_more_than_restricted_gives():
    eight = [node("a", {"amd.com/gpu": "8"}, MI300X, memory="2Ti")]
    facts = facts_of(eight)
    plan = decide_all(
        host=host_on(facts, facts.groups[0]), model=listed(by_alias("qwen3-4b")),
        service=a_service("qwen3-4b", runtime="kubernetes"), port=8000, count=2,
    ).plan  # fmt: skip
    values = values_of(plan)
    assert values["accelerator"]["count"] == 2
    assert values["podSecurityContext"]["seccompProfile"] == {"type": "Unconfined"}
    assert values["securityContext"] == {"capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}}
    assert len(plan.cluster.exceptions) == 2
    assert values["shm"] == {"size": "3Gi"}  # 1 + 1 for each rank


def test_a_node_is_asked_for_by_greater_memory_and_never_by_equal():
    objects = [node("a", ONE, L4, GPU_TAINT), runtime_class("nvidia")]
    plan = plan_in(objects)
    labels = plan.cluster.devices.labels
    # 23034 × 0.97 = 22342.98
    assert labels[0] == NodeLabel(key="nvidia.com/gpu.memory", operator="Gt", values=("22342",))
    assert NodeLabel(key="nvidia.com/gpu.sharing-strategy", operator="In", values=("none",)) in labels
    assert plan.cluster.devices.tolerations == (
        Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"),
    )
    assert plan.cluster.runtime_class == "nvidia"


def test_an_older_card_of_the_same_size_is_kept_out():
    plan = plan_in([node("a", ONE, H100), node("b", ONE, A100_80)], which=0)
    assert [label for label in plan.cluster.devices.labels if label.key.endswith("major")] == [
        NodeLabel(key="nvidia.com/gpu.compute.major", operator="Gt", values=("8",))
    ]


def test_without_labels_or_without_a_cluster_no_label_is_asked_for():
    for objects in ([node("a", ONE)], "h100"):
        plan = plan_in(objects, "qwen3-0.6b")
        assert plan.cluster.devices.labels == ()
        assert plan.cluster.reasons["accelerator.nodeLabels"].startswith("none: ")


def test_taints_that_are_not_about_cards_are_not_tolerated_by_themselves():
    spot = {"key": "spot", "effect": "PreferNoSchedule"}
    plan = plan_in([node("a", ONE, L4, GPU_TAINT, spot, {"key": "sku", "value": "gpu", "effect": "NoSchedule"})])
    assert [one.key for one in plan.cluster.devices.tolerations] == ["nvidia.com/gpu", "sku"]


def test_a_slice_is_asked_for_by_its_resource_and_by_its_own_size():
    labels = {**H100, "nvidia.com/mig-3g.40gb.memory": "40320"}
    plan = plan_in([node("a", {"nvidia.com/mig-3g.40gb": "2"}, labels)])
    assert (plan.cluster.devices.resource, plan.cluster.devices.count) == ("nvidia.com/mig-3g.40gb", 1)
    assert plan.cluster.devices.labels[0].key == "nvidia.com/mig-3g.40gb.memory"


def test_two_ranks_on_slices_are_refused():
    with pytest.raises(SelfhostError):
        plan_in([node("a", {"nvidia.com/mig-3g.40gb": "2"}, H100)], engine_args=("--tensor-parallel-size", "2"))


@pytest.mark.parametrize("api", ["resource.k8s.io/v1", "resource.k8s.io/v1beta1"])
def test_a_claim_is_made_where_cards_come_by_claims(api):
    plan = plan_in([node("d"), l4_slice("d", "gpu-0", api=api), device_class("gpu.nvidia.com")])
    devices = plan.cluster.devices
    assert (devices.mode, devices.resource, plan.device) == ("dra", "", "gpu.nvidia.com")
    assert devices.claim.api_version == api
    assert devices.claim.selectors == ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('22342Mi')) >= 0",)


def test_the_runtime_class_is_that_of_the_cluster_or_none():
    with_one = [node("a", ONE, L4), runtime_class("nvidia"), runtime_class("nvidia-cdi")]
    assert plan_in(with_one).cluster.runtime_class == "nvidia"
    assert plan_in([node("a", ONE, L4), runtime_class("gvisor")]).cluster.runtime_class == ""
    assert values_of(plan_in("h100"))["runtimeClassName"] == "none"
    assert "k3s" in plan_in("h100").cluster.reasons["runtimeClassName"]
    asked = ClusterAsk(runtime_class="nvidia")
    assert plan_in("h100", cluster=asked).cluster.runtime_class == "nvidia"
    assert plan_in([node("a", {"amd.com/gpu": "1"}, MI300X), runtime_class("nvidia")]).cluster.runtime_class == ""


@pytest.mark.parametrize("name", ["nvidia", "nvidia-cdi"])
def test_a_runtime_class_that_cannot_be_is_refused(name):
    with pytest.raises(InputError) as refused:
        plan_in([node("a", ONE, L4)], cluster=ClusterAsk(runtime_class=name))
    assert refused.value.id == "PL092"


def test_times_and_sizes_follow_the_weights():
    model = replace(listed(by_alias("qwen3-4b")), weights_bytes=Known(140 * 10**9, "test"))
    plan = plan_in("h100", model=model)
    # 140 GB at 100 MB/s and 600 s of a first start: 2000 s, in whole minutes 2040
    assert plan.cluster.startup_budget_s == 2040
    # 3 × 140 GB / 50 MB/s = 8400 s
    assert plan.cluster.fetch_budget_s == 8400
    # 2 × 140 GB, a twentieth more, + 8 GiB = 281.8 GiB: room for a second revision
    assert plan.cluster.weights_size == 282 * GIB
    # 5 GiB of the largest file + 4 GiB + 2 GiB of /dev/shm, up to the next even number
    assert plan.cluster.memory == 12 * GIB


def test_small_models_still_get_ten_minutes():
    assert plan_in("cpu", "smollm2-135m").cluster.startup_budget_s == 600


def test_the_processor_gets_whole_cores_as_request_and_limit():
    values = values_of(plan_in("cpu", "qwen3-0.6b"))
    assert values["resources"]["requests"]["cpu"] == values["resources"]["limits"]["cpu"] == "2"
    assert values["engine"]["env"]["OMP_NUM_THREADS"] == "1"
    assert values["accelerator"] == {
        "vendor": "none", "mode": "none", "resource": "", "count": 0, "nodeLabels": [], "tolerations": [],
    }  # fmt: skip


def test_a_folder_of_this_machine_is_refused_until_a_claim_is_named():
    folder = replace(listed(by_alias("qwen3-4b")), origin=Origin.FOLDER, path="/home/ana/model", ref="/home/ana/model")
    with pytest.raises(InputError) as refused:
        plan_in("h100", model=folder)
    assert refused.value.id == "PL090"
    assert "/home/ana/model" in refused.value.what
    plan = plan_in("h100", model=folder, cluster=ClusterAsk(existing_claim="models", sub_path="it"))
    values = values_of(plan)
    assert values["weights"]["existingClaim"] == "models"
    assert values["fetch"] == {"enabled": False}
    assert values["cache"] == {"persistent": False}
    assert "/home/ana" not in str(values)


def test_a_gated_model_needs_a_secret():
    gated = replace(listed(by_alias("qwen3-4b")), gated=True)
    with pytest.raises(InputError) as refused:
        plan_in("h100", model=gated)
    assert refused.value.id == "PL091"
    plan = plan_in("h100", model=gated, cluster=ClusterAsk(hub_token_secret="hf-token"))
    assert values_of(plan)["fetch"]["existingSecret"] == "hf-token"


def test_an_engine_without_a_key_is_not_published():
    published = ClusterAsk(host="chat.example", tls_secret="chat-tls")
    assert values_of(plan_in("h100", cluster=published))["ingress"]["host"] == "chat.example"
    with pytest.raises(InputError) as refused:
        plan_in("h100", engine="sglang", cluster=published)
    assert refused.value.id == "PL099"


def test_several_replicas_need_a_volume_of_several_nodes():
    values = values_of(plan_in("h100", cluster=ClusterAsk(replicas=3, storage_class="nfs")))
    assert values["replicaCount"] == 3
    assert values["weights"]["accessModes"] == ["ReadWriteMany"]
    assert values["weights"]["storageClassName"] == "nfs"


def test_weights_and_caches_lie_apart_by_model_and_by_image_and_card():
    plan = plan_in("h100", model=replace(listed(by_alias("qwen3-4b")), revision=Known("f00d" * 10, "hub")))
    assert plan.cluster.weights_sub_path == f"models/qwen--qwen3-4b/{'f00d' * 10}"
    assert plan.cluster.cache_sub_path == "cache/vllm-openai-v0.33.0-sm_90"
    unknown = replace(listed(by_alias("qwen3-4b")), revision=Unknown("offline"))
    assert plan_in("h100", model=unknown).cluster.weights_sub_path == "models/qwen--qwen3-4b/main"


def test_who_asks_changes_nothing_about_what_runs():
    one, other = (
        plan_in("h100", cluster=ClusterAsk(context=context, namespace=space))
        for context, space in (("ana@dev", "a"), ("bob", "b"))
    )
    assert digest_of(one) == digest_of(other)
    assert values_of(one) == values_of(other)
    assert digest_of(one) != digest_of(plan_in("h100", cluster=ClusterAsk(replicas=2)))


def test_a_plan_for_a_cluster_comes_back_from_json():
    plan = plan_in([node("d"), l4_slice("d", "gpu-0"), device_class("gpu.nvidia.com")])
    raw = to_json(plan)
    assert raw["image"] == "docker.io/vllm/vllm-openai:v0.33.0"
    assert raw["argv"] == list(plan.argv)
    assert from_json(raw) == plan


def test_each_decision_for_a_cluster_has_a_reason():
    plan = plan_in([node("a", ONE, L4)])
    fields = {decision.field for decision in plan.decisions}
    assert {"devices enter by", "node labels", "runtime class", "release", "pod memory", "loading time", "weights",
            "replicas", "user", "pod security"} <= fields  # fmt: skip
    assert [decision.field for decision in plan.decisions if not decision.reason] == []


def test_sglang_has_time_to_generate_the_token_that_its_health_asks_for():
    probes = values_of(plan_in("h100", engine="sglang"))["probes"]
    assert {name: probe["timeoutSeconds"] for name, probe in probes.items() if isinstance(probe, dict)} == {
        "startup": 20, "readiness": 20, "liveness": 20,
    }  # fmt: skip
    assert probes["startup"]["failureThreshold"] * 10 >= probes["startupBudgetSeconds"]
    assert values_of(plan_in("h100"))["probes"].keys() == {"startupBudgetSeconds"}
