"""Real helm renders the chart for every set of values, and Kubernetes' own schemas take what it renders."""

import json

import pytest
import yaml

from tests.render.chart import CHART, as_yaml, helm, one, rendered, template
from tests.render.chart_values import SETS

VERSIONS = ("1.30", "1.34", "1.37")
FOREIGN = {
    "monitoring.coreos.com/v1": ("PodMonitor", "ServiceMonitor"),
    "keda.sh/v1alpha1": ("ScaledObject",),
    "gateway.networking.k8s.io/v1": ("HTTPRoute",),
}
"""Kinds that Kubernetes itself does not know, rendered only on demand."""
SINCE = {
    "resource.k8s.io/v1": ("1.34", "1.37"),
    "resource.k8s.io/v1beta2": ("1.33", "1.34"),
    "resource.k8s.io/v1beta1": ("1.32", "1.34"),
}
"""Versions of Kubernetes that serve this API; before 1.31 a pod names its claims in another way."""


def versions_of(objects):
    return next((SINCE[item["apiVersion"]] for item in objects if item["apiVersion"] in SINCE), VERSIONS)


@pytest.mark.parametrize("name", SETS)
def test_kubernetes_knows_every_field_that_is_rendered(name):
    import kubernetes_validate

    found = rendered(SETS[name])
    for item in found:
        if item["kind"] in FOREIGN.get(item["apiVersion"], ()):
            continue
        for version in versions_of(found):  # a kind without a schema raises as well
            kubernetes_validate.validate(item, version, strict=True)


def empty_places(tree, place=""):
    if tree is None:
        yield place
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from empty_places(value, f"{place}/{key}")


@pytest.mark.parametrize("name", SETS)
def test_no_field_is_left_without_a_value(name):
    assert [place for item in rendered(SETS[name]) for place in empty_places(item)] == []


@pytest.mark.parametrize("name", SETS)
def test_helm_lint_finds_nothing(name):
    version = "1.33" if name.startswith("dra-v1beta") else "1.35"
    words = ("--strict", "--quiet", "--kube-version", version, "--values", "-")
    done = helm("lint", CHART, *words, stdin=as_yaml(SETS[name]))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_defaults_alone_are_rendered_and_take_a_card():
    done = template()
    assert done.returncode == 0, done.stderr
    kinds = [item["kind"] for item in yaml.safe_load_all(done.stdout)]
    assert sorted(kinds) == [
        "Deployment",
        "Job",
        "NetworkPolicy",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Pod",
        "Service",
        "ServiceAccount",
    ]


def test_the_same_values_give_the_same_bytes():
    first, second = template(SETS["everything"]), template(SETS["everything"])
    assert first.stdout == second.stdout
    assert first.returncode == 0


def test_the_package_holds_the_scripts_and_renders_the_same(tmp_path):
    done = helm("package", CHART, "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.glob("selfhost-model-*.tgz")
    done = template(SETS["cpu"], chart=package)
    assert done.stdout == template(SETS["cpu"]).stdout
    for line in ("snapshot_download(", "waiting for the fetch job", "/v1/no-such-path"):
        assert line in done.stdout


@pytest.mark.parametrize(
    ("release", "override", "name"),
    [
        ("qwen3-4b", "", "qwen3-4b-selfhost-model"),
        ("my-selfhost-model", "", "my-selfhost-model"),
        ("3b-model", "", "m-3b-model-selfhost-model"),
        ("it", "Qwen/Qwen3_4B", "qwen-qwen3-4b"),
        ("it", "a" * 47 + "-" + "b" * 40, "a" * 47),
        ("it", "4b", "m-4b"),
    ],
)
def test_names_are_names_of_kubernetes(release, override, name):
    found = rendered({"fullnameOverride": override}, release=release)
    assert one(found, "Service")["metadata"]["name"] == name
    assert all(len(item["metadata"]["name"]) <= 63 for item in found)


def test_every_object_has_the_labels_of_its_release():
    ours = [item for item in rendered(SETS["everything"]) if item["kind"] != "ConfigMap"]
    assert len(ours) == 13
    for item in ours:
        labels = item["metadata"]["labels"]
        component = labels.pop("app.kubernetes.io/component")
        assert component in ("engine", "fetch", "weights", "test")
        for own in ("release", "kueue.x-k8s.io/queue-name"):
            labels.pop(own, None)
        assert labels == {
            "app.kubernetes.io/name": "selfhost-model",
            "app.kubernetes.io/instance": "qwen3-4b",
            "app.kubernetes.io/version": "0.33.0",
            "app.kubernetes.io/managed-by": "Helm",
            "app.kubernetes.io/part-of": "selfhost",
            "helm.sh/chart": "selfhost-model-0.1.0",
            "io.selfhost.name": "qwen3-4b",
            "io.selfhost.digest": "0123456789abcdef",
            "io.selfhost.version": "0.7.0",
            "team": "search",
        }
        assert item["metadata"]["namespace"] == "team"
        assert item["metadata"]["annotations"]["contact"] == "search@example.org"


def test_each_key_of_the_values_is_in_the_schema_and_the_other_way_round():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert {"global", *values} == set(schema["properties"])
    for key, value in values.items():
        known = schema["properties"][key].get("properties")
        if known is not None:
            assert set(value) == set(known), key
