"""What a cluster refuses, or why nobody answers: each names what was seen, the layer and a command to paste."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.errors import SelfhostError
from selfhost.core.system import LocalSystem
from selfhost.runtimes.base import ClusterLaunch, Launchable
from selfhost.runtimes.cluster.access import missing, needs_of, rbac
from selfhost.runtimes.cluster.before import look
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.launch import Launch, objects_in
from selfhost.runtimes.cluster.read import read_objects
from selfhost.runtimes.cluster.record import Record
from selfhost.runtimes.cluster.refusals import naming
from selfhost.runtimes.cluster.secrets import ensure, held_key
from tests.fakes.kube_api import KubeApi
from tests.runtimes.test_kubernetes_runtime import objects


@pytest.fixture
def api():
    with KubeApi() as api:
        yield api


def cluster_of(tmp_path: Path, text: str, context: str = "", namespace: str = "") -> Cluster:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    return Cluster.connect(context, namespace, env={"KUBECONFIG": str(file), "PATH": "/usr/bin:/bin"})


@pytest.fixture
def cluster(api: KubeApi, tmp_path: Path) -> Cluster:
    return cluster_of(tmp_path, api.kubeconfig())


def refused(act: Any) -> SelfhostError:
    with pytest.raises(SelfhostError) as caught:
        act()
    error = caught.value
    assert error.why
    assert any("\n" in fix for fix in error.fix), "a command to paste"
    return error


def asked(cluster: Cluster) -> None:
    with naming(cluster, "read the cluster"):
        read_objects(cluster)


def preflight(cluster: Cluster, *, overwrite: bool = False, name: str = "toy") -> Any:
    given = objects(name, (), "d" * 40)
    system = LocalSystem(env={"PATH": ""})
    return look(cluster, system, name=name, release=name, objects=given, overwrite=overwrite)


def start(cluster: Cluster, tmp_path: Path, given: list[dict[str, Any]], *, force: bool = False) -> Any:
    folder = tmp_path / "bundle"
    folder.mkdir(exist_ok=True)
    (folder / "manifests.yaml").write_text("---\n".join(json.dumps(one) + "\n" for one in given))
    wish = ClusterLaunch(context="", namespace="", release="toy", folder=str(folder), pod_port=8000, force=force)
    record = Record(
        context="toy", namespace="models", release="toy", deployment="toy", port=0, pod_port=8000, how="apply"
    )
    made = Launch(cluster=cluster, system=LocalSystem(env={"PATH": ""}), record=record)
    return made.start(Launchable(name="toy", cluster=wish))


# -- the kubeconfig


def test_without_a_kubeconfig_the_place_is_named_where_it_was_looked_for(tmp_path):
    error = refused(lambda: Cluster.connect(env={"HOME": str(tmp_path)}))
    assert error.id == "RT130"
    assert str(tmp_path / ".kube" / "config") in error.why


@pytest.mark.parametrize("text", ["{", "", "[]", "\x80"])
def test_a_kubeconfig_that_is_none_is_named_with_its_path(tmp_path, text):
    error = refused(lambda: cluster_of(tmp_path, text))
    assert error.id == "RT131"
    assert "kubeconfig" in error.what


def test_of_a_wrong_context_the_nearest_name_is_proposed(api, tmp_path):
    error = refused(lambda: cluster_of(tmp_path, api.kubeconfig(), context="tyo"))
    assert error.id == "RT132"
    assert "`toy`" in error.what
    assert "--kube-context toy" in error.fix[0]


def test_a_context_of_a_user_that_is_not_there_is_a_broken_kubeconfig(api, tmp_path):
    text = api.kubeconfig().replace('"name": "me"', '"name": "somebody"')
    assert "user `me`" in refused(lambda: cluster_of(tmp_path, text)).why


def test_a_credential_plugin_that_is_not_installed_is_named(api, tmp_path):
    tree = json.loads(api.kubeconfig())
    tree["users"][0]["user"] = {"exec": {"command": "aws-not-here", "apiVersion": "client.authentication.k8s.io/v1"}}
    cluster = cluster_of(tmp_path, json.dumps(tree))
    error = refused(lambda: asked(cluster))
    assert error.id == "RT133"
    assert "`aws-not-here` is not on PATH" in error.what


def test_a_credential_plugin_that_fails_is_named_with_what_it_said(api, tmp_path):
    plugin = tmp_path / "login"
    plugin.write_text("#!/bin/sh\necho 'token expired, log in again' >&2\nexit 1\n")
    plugin.chmod(0o755)
    tree = json.loads(api.kubeconfig())
    exec_ = {"command": str(plugin), "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    tree["users"][0]["user"] = {"exec": exec_}
    error = refused(lambda: asked(cluster_of(tmp_path, json.dumps(tree))))
    assert error.id == "RT133"
    assert "token expired, log in again" in error.why


# -- the server


def test_expired_credentials_are_told_apart_from_a_missing_permission(api, tmp_path):
    error = refused(lambda: asked(cluster_of(tmp_path, api.kubeconfig(token="of-yesterday"))))
    assert error.id == "RT133"


def test_a_server_that_nobody_is_at_is_unreachable(tmp_path):
    with KubeApi() as api:
        text = api.kubeconfig()
    error = refused(lambda: asked(cluster_of(tmp_path, text)))
    assert error.id == "RT134"
    assert "can't be reached" in error.what


def test_a_server_that_says_nothing_is_too_slow_and_not_unreachable(tmp_path):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        with KubeApi() as api:
            text = api.kubeconfig().replace(api.url, f"http://127.0.0.1:{deaf.getsockname()[1]}")
        cluster = cluster_of(tmp_path, text)
        with pytest.raises(SelfhostError) as caught, naming(cluster, "ask"):
            cluster.request("GET", "/version", timeout_s=0.3)
    assert caught.value.id == "RT134"
    assert "in time" in caught.value.what


def test_a_server_that_is_ill_is_not_blamed_on_the_network(api, cluster):
    api.faults.answers[("GET", "/version")] = (503, {"reason": "ServiceUnavailable", "message": "etcd is leaderless"})
    error = refused(lambda: asked(cluster))
    assert error.id == "RT153"
    assert "etcd is leaderless" in error.why


def test_a_plain_http_port_behind_https_is_a_matter_of_tls_or_of_the_address(api, tmp_path):
    text = api.kubeconfig().replace("http://", "https://")
    assert refused(lambda: asked(cluster_of(tmp_path, text))).id in ("RT134", "RT135")


# -- permissions and namespaces


def test_every_missing_verb_is_named_before_anything_is_applied(api, cluster):
    api.faults.forbidden = {("create", "deployments"), ("patch", "services")}
    error = refused(lambda: preflight(cluster))
    assert error.id == "RT136"
    assert "create deployments.apps" in error.what
    assert "patch services" in error.what
    assert "--rbac" in error.fix[0]
    assert not [path for method, path in api.requests if method == "PATCH"]


def test_what_may_not_be_read_makes_a_diagnosis_poorer_and_stops_nothing(api, cluster):
    api.faults.forbidden = {("list", "nodes"), ("list", "pods")}
    read = read_objects(cluster)
    assert set(read.unread) == {"Node", "Pod"}
    assert any(one["kind"] == "StorageClass" for one in read.objects)


def test_secrets_are_never_read_with_the_cluster(api, cluster):
    read_objects(cluster)
    assert not [path for _, path in api.requests if "secrets" in path]


def test_a_namespace_that_is_missing_is_not_made(api, tmp_path):
    cluster = cluster_of(tmp_path, api.kubeconfig(), namespace="elsewhere")
    error = refused(lambda: preflight(cluster))
    assert error.id == "RT137"
    assert "create namespace elsewhere" in error.fix[0]


def test_a_namespace_that_is_being_deleted_takes_nothing(api, cluster):
    api.put(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "models"}, "status": {"phase": "Terminating"}}
    )
    assert refused(lambda: preflight(cluster)).id == "RT138"


def test_the_printed_permissions_hold_every_verb_that_is_asked_for(cluster):
    import yaml

    role = next(one for one in yaml.safe_load_all(rbac("models")) if one["kind"] == "Role")
    granted = {(verb, resource) for rule in role["rules"] for verb in rule["verbs"] for resource in rule["resources"]}
    assert missing(cluster, needs_of(["Deployment"])) == []
    needed = {(verb, need.resource) for need in needs_of([]) if need.must for verb in need.verbs}
    assert needed <= granted
    assert ("*", "*") not in granted


# -- objects of others


def test_an_object_of_somebody_else_is_not_taken_over(api, cluster):
    given = objects("toy", (), "d" * 40)[1]
    given["metadata"]["labels"] = {"app": "theirs"}
    api.put(given)
    error = refused(lambda: preflight(cluster))
    assert error.id == "RT139"
    assert "Deployment `toy`" in error.what


def test_a_helm_release_that_is_not_ours_is_named(api, cluster):
    given = objects("toy", (), "d" * 40)[1]
    given["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    given["metadata"]["annotations"] = {"meta.helm.sh/release-name": "shop"}
    api.put(given)
    assert "Helm release `shop`" in refused(lambda: preflight(cluster)).what


@pytest.mark.parametrize(
    ("where", "mark", "who"),
    [
        ("annotations", "argocd.argoproj.io/tracking-id", "Argo CD"),
        ("labels", "kustomize.toolkit.fluxcd.io/name", "Flux"),
        ("labels", "helm.toolkit.fluxcd.io/name", "Flux"),
    ],
)
def test_what_a_repository_keeps_is_changed_only_with_overwrite(api, cluster, where, mark, who):
    given = objects("toy", (), "d" * 40)[1]
    given["metadata"].setdefault(where, {})[mark] = "models"
    api.put(given)
    error = refused(lambda: preflight(cluster))
    assert error.id == "RT145"
    assert who in error.what
    assert any(who in note for note in preflight(cluster, overwrite=True).notes)


def test_what_helm_installed_is_not_applied_in_another_way(api, cluster):
    given = objects("toy", (), "d" * 40)[1]
    given["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"
    given["metadata"]["annotations"] = {"meta.helm.sh/release-name": "toy"}
    api.put(given)
    error = refused(lambda: preflight(cluster))
    assert error.id == "RT144"
    assert "helm is not installed" in error.what


def test_without_helm_it_is_server_side_apply_and_said_to_be(cluster):
    found = preflight(cluster)
    assert found.how == "apply"
    assert "helm is not installed" in found.why


def test_an_old_helm_is_not_used_and_named(cluster, tmp_path):
    old = tmp_path / "helm"
    old.write_text("#!/bin/sh\necho v3.11.2\n")
    old.chmod(0o755)
    system = LocalSystem(env={"PATH": f"{tmp_path}:/bin:/usr/bin"})
    import os

    before, os.environ["PATH"] = os.environ["PATH"], f"{tmp_path}:{os.environ['PATH']}"
    try:
        found = look(cluster, system, name="toy", release="toy", objects=objects("toy", (), "d" * 40), overwrite=False)
    finally:
        os.environ["PATH"] = before
    assert (found.how, found.why) == ("apply", "server-side apply: helm 3.11 is older than 3.14")


# -- apply


def test_applying_twice_changes_nothing(cluster, tmp_path):
    given = objects("toy", (), "d" * 40)
    assert {one.state for one in start(cluster, tmp_path, given)} == {"created"}
    assert {one.state for one in start(cluster, tmp_path, given)} == {"unchanged"}


def scaled(cluster: Cluster, replicas: int, manager: str = "kubectl") -> None:
    cluster.request(
        "PATCH",
        "/apis/apps/v1/namespaces/models/deployments/toy",
        {"spec": {"replicas": replicas}},
        query={"fieldManager": manager},
        content_type="application/merge-patch+json",
    )


def test_replicas_that_somebody_scaled_stay_as_they_are_and_it_is_said(api, cluster, tmp_path):
    given = objects("toy", (), "d" * 40)
    start(cluster, tmp_path, given)
    scaled(cluster, 3)
    assert any("`kubectl`" in note for note in preflight(cluster).notes)
    applied = start(cluster, tmp_path, objects("toy", (), "e" * 40), force=True)
    assert api.of("Deployment")[0]["spec"]["replicas"] == 3
    assert api.of("Deployment")[0]["metadata"]["labels"]["io.selfhost.digest"] == "e" * 40
    assert next(one for one in applied if one.kind == "Deployment").left == {".spec.replicas": "kubectl"}


def test_another_field_that_somebody_owns_is_named_and_kept_until_it_is_overwritten(api, cluster, tmp_path):
    start(cluster, tmp_path, objects("toy", (), "d" * 40))
    cluster.request(
        "PATCH",
        "/apis/apps/v1/namespaces/models/deployments/toy",
        {"spec": {"template": {"metadata": {"annotations": {"try": "theirs"}}}}},
        query={"fieldManager": "dashboard"},
        content_type="application/merge-patch+json",
    )
    error = refused(lambda: start(cluster, tmp_path, objects("toy", (), "e" * 40)))
    assert error.id == "RT140"
    assert ".spec.template.metadata.annotations.try by `dashboard`" in error.what
    assert "--overwrite" in error.fix[1]
    start(cluster, tmp_path, objects("toy", (), "e" * 40), force=True)
    assert api.of("Deployment")[0]["spec"]["template"]["metadata"]["annotations"]["try"] == "e" * 40


def test_a_field_that_cannot_be_changed_is_named_with_the_way_round_it(cluster, tmp_path):
    start(cluster, tmp_path, objects("toy", (), "d" * 40))
    changed = objects("toy", (), "d" * 40)
    changed[1]["spec"]["selector"] = {"matchLabels": {"another": "one"}}
    error = refused(lambda: start(cluster, tmp_path, changed))
    assert error.id == "RT141"
    assert "spec.selector" in error.what
    assert "delete deployment toy" in error.fix[0]


def test_of_a_volume_that_cannot_be_changed_nothing_proposes_to_lose_it_unsaid(cluster, tmp_path):
    given = objects("toy", (), "d" * 40)
    given[2]["spec"]["storageClassName"] = "standard"
    start(cluster, tmp_path, given)
    given[2]["spec"]["storageClassName"] = "fast"
    error = refused(lambda: start(cluster, tmp_path, given))
    assert error.id == "RT141"
    assert "get pvc toy-weights" in error.fix[0]
    assert "weights" in error.fix[1]


def test_a_kind_that_the_cluster_does_not_know_is_named_with_what_brings_it(cluster, tmp_path):
    monitor = {
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor",
        "metadata": {"name": "toy", "namespace": "models"},
    }  # fmt: skip
    error = refused(lambda: start(cluster, tmp_path, [monitor]))
    assert error.id == "RT143"
    assert "Prometheus operator" in error.why


def test_what_was_applied_before_a_refusal_is_told(api, cluster, tmp_path):
    api.faults.answers[("PATCH", "/deployments/toy")] = (
        403, {"reason": "Forbidden", "message": 'pods "toy" is forbidden: exceeded quota: g, requested: cpu=2'},
    )  # fmt: skip
    error = refused(lambda: start(cluster, tmp_path, objects("toy", (), "d" * 40)))
    assert error.id == "RT142"
    assert "exceeded quota" in error.evidence
    assert "ServiceAccount toy created" in error.why


def test_a_former_plan_s_objects_go_and_its_volume_stays(api, cluster, tmp_path):
    given = objects("toy", (), "d" * 40)
    start(cluster, tmp_path, given)
    start(cluster, tmp_path, given[1:2])
    assert [one["metadata"]["name"] for one in api.of("ServiceAccount")] == []
    assert [one["metadata"]["name"] for one in api.of("PersistentVolumeClaim")] == ["toy-weights"]


def test_every_id_of_a_refusal_is_of_the_range_of_clusters():
    room = Path(__file__).parents[2] / "selfhost" / "runtimes" / "cluster"
    found = {one for file in room.glob("*.py") for one in re.findall(r'id="(RT\d+)"', file.read_text())}
    assert found
    assert all(130 <= int(one[2:]) <= 159 for one in found)


def test_objects_are_read_back_as_they_were_written(tmp_path):
    given = objects("toy", ("--port", "8000"), "d" * 40)
    (tmp_path / "manifests.yaml").write_text("---\n".join(json.dumps(one) + "\n" for one in given))
    assert objects_in(str(tmp_path)) == given


def test_a_key_secret_that_is_not_there_is_named_with_the_command_that_makes_it(api, cluster):
    error = refused(lambda: held_key(cluster, "chat-key"))
    assert error.id == "RT152"
    assert "create secret generic chat-key" in error.fix[0]
    meta = {"name": "chat-key", "namespace": "models"}
    api.put({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"token": "YQ=="}})
    assert "no `api-key` in the Secret" in refused(lambda: held_key(cluster, "chat-key")).what
    api.put({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"api-key": "c2stMQ=="}})
    assert held_key(cluster, "chat-key") == "sk-1"


def test_a_field_that_an_old_cluster_does_not_know_is_told_as_such(api, cluster, tmp_path):
    said = "failed to create typed patch object: .spec.podFailurePolicy: field not declared in schema"
    api.faults.answers[("PATCH", "/deployments/toy")] = (500, {"reason": "", "message": said})
    error = refused(lambda: start(cluster, tmp_path, objects("toy", (), "d" * 40)))
    assert error.id == "RT142"
    assert "too old" in error.what


def test_a_key_in_a_secret_of_somebody_else_is_neither_read_nor_changed(api, cluster):
    meta = {"name": "toy-api-key", "namespace": "models"}
    api.put({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"api-key": "c2stMQ=="}})
    error = refused(lambda: ensure(cluster, "toy-api-key", "api-key", "sk-mine", name="toy", release="toy"))
    assert error.id == "RT152"
    assert "sk-1" not in str(vars(error))
    assert api.of("Secret")[0]["data"] == {"api-key": "c2stMQ=="}
