"""Plain manifests are what real helm makes of the same values, object by object, save what only Helm has."""

import copy
from dataclasses import replace

import pytest

from selfhost.deploy.read_back import read_bundle
from selfhost.plan.cluster.values import values_of
from selfhost.plan.reasoning import parse
from selfhost.plan.workload import workload_of
from selfhost.render.kubernetes import manifests
from selfhost.render.manifests.objects import ONLY_HELM, objects
from selfhost.render.targets import render
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.place import Place
from selfhost.shapes.workload import Toleration
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.project import Source, judge
from tests.fakes.cluster import A100_80, GPU_TAINT, H100, L4, MI300X, device_class, l4_slice, node, runtime_class
from tests.fakes.workloads import without_places
from tests.plan.test_plan_cluster import plan_in
from tests.render.chart import NAMESPACE, merged, rendered
from tests.render.chart_values import SETS
from tests.render.golden_cases import cases, plan_of
from tests.render.golden_cases import rendered as golden

EVERYTHING_ASKED = ClusterAsk(
    namespace=NAMESPACE, replicas=2, storage_class="nfs", hub_token_secret="hf-token", key_secret="chat-key",
    image_pull_secrets=("registry",), ca_config_map="company-ca", host="chat.example", ingress_class="traefik",
    tls_secret="chat-tls", runtime_class="nvidia", node_selector={"pool": "gpu"},
    tolerations=(Toleration(key="dedicated", operator="Equal", value="llm", effect="NoSchedule"),),
)  # fmt: skip
ONE = {"nvidia.com/gpu": "1"}
PLANS = {
    **{str(case): lambda case=case: plan_of(case) for case in golden() if case.target == "kubernetes"},
    "labels-and-taints": lambda: plan_in([node("a", ONE, L4, GPU_TAINT), runtime_class("nvidia")]),
    "older-beside": lambda: plan_in([node("a", ONE, H100), node("b", ONE, A100_80)]),
    "amd-labels": lambda: plan_in([node("a", {"amd.com/gpu": "1"}, MI300X)]),
    "slice": lambda: plan_in([node("a", {"nvidia.com/mig-3g.40gb": "1"}, H100)]),
    "claim": lambda: plan_in([node("d"), l4_slice("d", "gpu-0"), device_class("gpu.nvidia.com")]),
    "claim-v1beta1": lambda: plan_in(
        [node("d"), l4_slice("d", "gpu-0", api="resource.k8s.io/v1beta1"), device_class("gpu.nvidia.com")]
    ),
    "everything-asked": lambda: plan_in("h100", cluster=EVERYTHING_ASKED),
    "existing-claim": lambda: plan_in("h100", cluster=ClusterAsk(existing_claim="models", sub_path="it")),
    "existing-claim-whole": lambda: plan_in("h100", cluster=ClusterAsk(existing_claim="models")),
    "dollars": lambda: plan_in("h100", engine_args=("--chat-template", "a$(HOME)$$b"), engine_env={"X": "$(Y)"}),
}


def by_name(found):
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def without_helms_own(one):
    one = copy.deepcopy(one)
    metadata = one["metadata"]
    for label in ("helm.sh/chart", "app.kubernetes.io/managed-by"):
        del metadata["labels"][label]
    noted = metadata.pop("annotations", {})
    kept = {key: value for key, value in noted.items() if key != "helm.sh/resource-policy"}
    return {**one, "metadata": {**metadata, **({"annotations": kept} if kept else {})}}


def of_helm(values, release):
    found = [
        one for one in rendered(values, release=release) if "helm.sh/hook" not in one["metadata"].get("annotations", {})
    ]
    return by_name(map(without_helms_own, found))


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_gives_the_same_objects_with_helm_and_without(name):
    plan = PLANS[name]()
    release, values = plan.cluster.release, values_of(plan)
    mine = by_name(objects(values, release=release, namespace=NAMESPACE))
    assert mine == of_helm(values, release)
    assert len(mine) >= 4


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("target", ["helm", "kubernetes"])
def test_files_of_a_plan_read_back_as_it(target, name):
    plan = PLANS[name]()
    place = Place(folder="/b", key_file="", env_file="", python="")
    back = read_bundle(target, render(target, plan, place).files)
    planned = workload_of(plan, place)
    if target == "helm" and planned.pod.namespace:  # it is the command's, not the chart's
        planned = replace(planned, pod=replace(planned.pod, namespace=""))
    assert without_places(back) == without_places(planned)


@pytest.mark.parametrize("name", PLANS)
def test_our_own_lint_has_nothing_to_say_of_the_objects(name):
    plan = PLANS[name]()
    text = manifests(values_of(plan), release=plan.cluster.release)
    judged = judge([Source(text=text, path="manifests.yaml")], host=None, beside=lambda _: NO_FILES)
    assert [f"{one.id} {one.title}" for one in judged.findings] == []
    assert judged.read == 1


@pytest.mark.parametrize("name", [name for name in SETS if "text" not in name])
def test_any_values_give_the_same_objects(name):
    values = merged(SETS[name], {"extraObjects": []})
    assert by_name(objects(values, release="it", namespace=NAMESPACE)) == of_helm(values, "it")


def test_there_are_enough_plans_of_every_kind():
    plans = [make() for make in PLANS.values()]
    assert len(plans) >= 15
    assert {plan.build.engine for plan in plans} == {"vllm", "sglang"}
    assert {plan.cluster.devices.vendor for plan in plans} == {"nvidia", "amd", "intel", "none"}
    assert {form.name for plan in plans for form in plan.cluster.forms.modes[:1]} >= {
        "on", "off", "budget=2048", "effort=low",
    }  # fmt: skip
    assert max(plan.parallel.ranks for plan in plans) >= 1
    assert [case for case in cases() if case.target == "helm"]


def test_what_only_helm_has_is_on_the_printed_list():
    values = values_of(PLANS["labels-and-taints"]())
    with_helm, without = rendered(values, release="it"), objects(values, release="it", namespace=NAMESPACE)
    only = {("label", label) for one in with_helm for label in one["metadata"]["labels"]}
    only |= {("annotation", label) for one in with_helm for label in one["metadata"].get("annotations", {})}
    only -= {("label", label) for one in without for label in one["metadata"]["labels"]}
    only -= {("annotation", label) for one in without for label in one["metadata"].get("annotations", {})}
    hooks = {("annotation", "helm.sh/hook"), ("annotation", "helm.sh/hook-delete-policy")}  # of the pod of `helm test`
    listed = {tuple(words.split(" ", 1)) for words in ONLY_HELM if words.startswith(("label ", "annotation "))}
    assert only - hooks == listed


def test_without_a_namespace_objects_name_none():
    found = objects(values_of(plan_in("h100")), release="it")
    assert [one for one in found if "namespace" in one["metadata"]] == []


def test_no_object_holds_a_secret_value():
    for one in objects(values_of(plan_in("h100", cluster=EVERYTHING_ASKED)), release="it"):
        assert one["kind"] != "Secret"


def switched(values):
    """The same values with each other mode and form, as a user's own file switches to it."""
    for key, mode in values["reasoning"]["modes"].items():
        word, _, value = key.partition("=")
        if mode is not None:
            told = {"mode": word, "budget_tokens": None, "effort": None}
            told |= {"budget_tokens": int(value)} if word == "budget" else {"effort": value} if value else {}
            yield key, {"reasoning": told}
    for kind in ("weights", "kv"):
        for name, args in values["precision"]["forms"][kind].items():
            if args is not None:
                yield f"{kind} {name}", {"precision": {kind: name}}


@pytest.mark.parametrize(
    ("host", "alias", "engine", "mode"),
    [
        ("h100", "qwen3-4b", "vllm", "budget=2048"),
        ("h100", "gpt-oss-20b", "sglang", "effort=low"),
        ("cpu", "qwen3-0.6b", "vllm", "on"),
    ],
)
def test_every_mode_and_form_of_a_plan_is_taken_by_helm_and_gives_the_same_objects(host, alias, engine, mode):
    values = values_of(plan_in(host, alias, engine=engine, reasoning=parse(mode)))
    seen = set()
    for _, change in switched(values):
        own = merged(values, change)
        mine = by_name(objects(own, release="it", namespace=NAMESPACE))
        assert mine == of_helm(own, "it")
        (args,) = [
            one["spec"]["template"]["spec"]["containers"][0] for one in mine.values() if one["kind"] == "Deployment"
        ]
        seen.add((tuple(args["args"]), str(args["env"])))
    modes = [form for form in values["reasoning"]["modes"].values() if form is not None]
    assert len(modes) >= 2
    assert len(seen) >= 3
