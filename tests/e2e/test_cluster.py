"""What only a real API server, scheduler and controllers can show. `make e2e-cluster KUBECONFIG=…` runs it.

No pod needs to run: what is shown is what is accepted, scheduled, upgraded, kept, refused, and why a pod waits.
"""

import json
import shutil
import signal
import subprocess

import pytest

from selfhost.deploy.cluster_verdict import verdict
from selfhost.runtimes.cluster.client import Cluster
from tests.e2e import real_cluster as real
from tests.e2e.world import REASONER, World
from tests.fakes.hub import FakeHub

pytestmark = [
    pytest.mark.skipif(not real.wanted(), reason="names no cluster: make e2e-cluster KUBECONFIG=…"),
    pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning"),  # a kubeconfig may ask for it
]
REPO = "acme/tiny-reasoner"
FAKE = real.FAKE


@pytest.fixture(scope="module", autouse=True)
def permitted():
    cluster = real.connect()
    if not real.may(cluster, "create", "namespaces"):
        pytest.skip("this account may not make namespaces")
    if not FAKE:
        yield
        return
    if not real.may(cluster, "create", "nodes"):
        pytest.skip("this account may not make nodes, which --fake-nodes asks for")
    with real.nodes():
        yield


@pytest.fixture
def restricted():
    with real.space("restricted") as cluster:
        yield cluster


@pytest.fixture
def privileged():
    with real.space("privileged") as cluster:
        yield cluster


@pytest.fixture(params=["apply", "helm"])
def way(request):
    """Without helm on the path, and with it."""
    if request.param == "helm" and not real.helm():
        pytest.skip("no helm on PATH")
    return "/usr/bin:/bin" + (f":{real.helm()}" if request.param == "helm" else "")


@pytest.fixture
def world(tmp_path, way):
    shutil.copytree(REASONER, tmp_path / "hub" / REPO)
    (tmp_path / "home").mkdir()
    with FakeHub(tmp_path / "hub") as hub:
        yield World(
            base=tmp_path / "home", wheels=None,
            extra_env={
                "KUBECONFIG": real.wanted(), "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0",
                "HF_HUB_DISABLE_XET": "1", "PATH": way,
            },
        )  # fmt: skip


def words(world: World, cluster: Cluster, *more: str) -> tuple[str, ...]:
    return (
        "up", REPO, "--name", world.name, "--runtime", "kubernetes", "--namespace", cluster.namespace, "--yes",
        "--progress", "plain", *more,
    )  # fmt: skip


def begun(world: World, cluster: Cluster, *more: str) -> str:
    """Apply, see the pod placed, and leave it to the cluster; returns what was said."""
    before = {one["metadata"]["uid"] for one in pods(cluster, world)}
    running = world.start(*words(world, cluster, *more))
    try:
        real.until(lambda: running.poll() is not None or placed(cluster, world, before))
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said[-3000:]
    return said


def pods(cluster: Cluster, world: World) -> tuple[dict, ...]:
    chosen = f"app.kubernetes.io/instance={world.name},app.kubernetes.io/component=engine"
    return cluster.list(f"/api/v1/namespaces/{cluster.namespace}/pods", labelSelector=chosen)


def placed(cluster: Cluster, world: World, before: set[str]) -> list[str]:
    found = [one for one in pods(cluster, world) if one["metadata"]["uid"] not in before]
    for one in pods(cluster, world):  # no kubelet ends the pod of the former plan
        if FAKE and one["metadata"].get("deletionTimestamp"):
            end(cluster, one)
    return [one["spec"]["nodeName"] for one in found if one["spec"].get("nodeName")]


def end(cluster: Cluster, pod: dict) -> None:
    cluster.request(
        "DELETE", f"/api/v1/namespaces/{cluster.namespace}/pods/{pod['metadata']['name']}", {"gracePeriodSeconds": 0}
    )


def down(world: World, cluster: Cluster, *more: str) -> subprocess.CompletedProcess[str]:
    running = world.start("down", world.name, *more)
    real.until(lambda: running.poll() is not None or not FAKE or not [end(cluster, one) for one in leaving(cluster)])
    while running.poll() is None:
        for one in leaving(cluster) if FAKE else ():
            end(cluster, one)
        try:
            running.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            continue
    out, err = running.communicate()
    return subprocess.CompletedProcess(running.args, running.returncode, out, err)


def leaving(cluster: Cluster) -> list[dict]:
    listed = cluster.list(f"/api/v1/namespaces/{cluster.namespace}/pods")
    return [one for one in listed if one["metadata"].get("deletionTimestamp")]


def claim(cluster: Cluster, world: World) -> dict | None:
    return cluster.find(f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims/{world.name}-weights")


def deployment(cluster: Cluster, world: World) -> dict:
    return cluster.get(f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/{world.name}")


def needs_a_class(cluster: Cluster) -> None:
    """Skips where no volume would be made, and a pod would wait for it."""
    listed = cluster.list("/apis/storage.k8s.io/v1/storageclasses")
    key = "storageclass.kubernetes.io/is-default-class"
    if any((one["metadata"].get("annotations") or {}).get(key) == "true" for one in listed):
        return
    pytest.skip("the cluster has no default storage class, and a pod would wait for its volume")


@pytest.mark.skipif(not FAKE, reason="needs a node with one L4, which --fake-nodes makes")
def test_a_plan_for_a_card_is_scheduled_in_a_restricted_namespace_upgraded_and_its_volume_outlives_it(
    world, restricted
):
    needs_a_class(restricted)
    said = begun(world, restricted)
    assert "violates PodSecurity" not in said
    assert {one["spec"]["nodeName"] for one in pods(restricted, world)} == {real.GPU_NODE}
    first, volume = deployment(restricted, world), claim(restricted, world)
    assert volume is not None

    begun(world, restricted, "--context", "1024")
    second = deployment(restricted, world)
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["metadata"]["generation"] > first["metadata"]["generation"]
    assert claim(restricted, world)["metadata"]["uid"] == volume["metadata"]["uid"]

    done = down(world, restricted)
    assert done.returncode == 0, done.stderr
    kept = claim(restricted, world)
    assert kept is not None
    assert kept["metadata"]["uid"] == volume["metadata"]["uid"]
    assert restricted.find(f"/apis/apps/v1/namespaces/{restricted.namespace}/deployments/{world.name}") is None

    begun(world, restricted)
    assert claim(restricted, world)["metadata"]["uid"] == volume["metadata"]["uid"]
    assert down(world, restricted).returncode == 0


def test_a_plan_for_the_processor_is_scheduled_and_the_same_again_changes_nothing(world, privileged):
    needs_a_class(privileged)
    begun(world, privileged, "--device", "cpu")
    before = deployment(privileged, world)
    running = world.start(*words(world, privileged, "--device", "cpu"))
    real.until(lambda: running.poll() is not None or "wait" in json.dumps(steps(world)), timeout_s=40)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert deployment(privileged, world)["metadata"]["generation"] == before["metadata"]["generation"]
    assert down(world, privileged).returncode == 0


def steps(world: World) -> list[str]:
    return (world.folder / "journal.jsonl").read_text().splitlines()[-1:]


def test_replicas_that_another_owns_survive(world, privileged):
    needs_a_class(privileged)
    begun(world, privileged, "--device", "cpu")
    path = f"/apis/apps/v1/namespaces/{privileged.namespace}/deployments/{world.name}"
    privileged.request(
        "PATCH", path, {"spec": {"replicas": 2}}, query={"fieldManager": "an-autoscaler"},
        content_type="application/merge-patch+json",
    )  # fmt: skip
    before = deployment(privileged, world)["metadata"]["labels"]["io.selfhost.digest"]
    running = world.start(*words(world, privileged, "--device", "cpu", "--context", "1024"))
    try:  # whether the second pod finds room is another matter
        real.until(
            lambda: (
                running.poll() is not None
                or deployment(privileged, world)["metadata"]["labels"]["io.selfhost.digest"] != before
            )
        )
    finally:
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert "`an-autoscaler`" in said
    assert deployment(privileged, world)["spec"]["replicas"] == 2
    assert down(world, privileged).returncode == 0


def test_a_volume_s_class_cannot_be_changed_in_place_and_it_is_said(world, privileged, tmp_path):
    needs_a_class(privileged)
    begun(world, privileged, "--device", "cpu")
    file = tmp_path / "selfhost.yaml"
    file.write_text(
        f"version: 1\nservices:\n  {world.name}:\n    model: {REPO}\n    runtime: kubernetes\n    devices: cpu\n"
        f"    kubernetes: {{namespace: {privileged.namespace}, storage_class: another}}\n"
    )
    done = world.run("up", world.name, "--file", str(file), "--yes", "--progress", "plain")
    assert done.returncode == 2, done.stderr[-3000:]
    assert "claim" in done.stderr  # lint sees it before the API server does
    assert claim(privileged, world)["spec"].get("storageClassName") != "another"
    assert down(world, privileged).returncode == 0


def test_a_restricted_namespace_refuses_root_at_once_with_the_fields(world, restricted):
    if not enforces(restricted):
        pytest.skip("this API server has no Pod Security admission")
    needs_a_class(restricted)
    done = world.run(*words(world, restricted, "--device", "cpu"), timeout_s=120)
    assert done.returncode == 5, done.stderr[-3000:]
    assert "error[KX401]" in done.stderr
    assert "runAsNonRoot" in done.stderr
    down(world, restricted)


def enforces(cluster: Cluster) -> bool:
    pod = {"metadata": {"name": "probe"}, "spec": {"hostNetwork": True, "containers": [{"name": "a", "image": "b"}]}}
    from selfhost.runtimes.cluster.answers import ApiError

    try:
        cluster.request("POST", f"/api/v1/namespaces/{cluster.namespace}/pods", pod, query={"dryRun": "All"})
    except ApiError as error:
        return "PodSecurity" in error.message
    return False


PENDING = {
    "KX003": {"resources": {"limits": {"nvidia.com/gpu": "64"}}, "tolerations": [real.GPU_TAINT]},
    "KX005": {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
    "KX006": {"nodeSelector": {"selfhost.example/nowhere": "true"}},
    "KX008": {"resources": {"requests": {"cpu": "900"}}},
    "KX202": {"claim": "not-there"},
    "KX404": {"runtimeClassName": "not-there"},
    "KX405": {"priorityClassName": "not-there"},
    "KX402": {"quota": "0", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
}


@pytest.mark.parametrize("id", sorted(PENDING))
def test_why_a_pod_waits_is_told_as_the_scheduler_and_admission_mean_it(privileged, id):
    ask = dict(PENDING[id])
    if not FAKE and "resources" in ask and "limits" in ask["resources"]:
        pytest.skip("needs a node with one card and a taint, which --fake-nodes makes")
    pod = {"containers": [{"name": "engine", "image": "example.org/none:1", "resources": ask.pop("resources", {})}]}
    quota, volume = ask.pop("quota", ""), ask.pop("claim", "")
    if volume:
        pod["volumes"] = [{"name": "a", "persistentVolumeClaim": {"claimName": volume}}]
    if quota:
        body = {"metadata": {"name": "cards"}, "spec": {"hard": {"requests.nvidia.com/gpu": quota}}}
        privileged.request("POST", f"/api/v1/namespaces/{privileged.namespace}/resourcequotas", body)
        real.until(lambda: used(privileged))
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}] if ask.pop("tolerations", None) else []
    mine = {"app.kubernetes.io/instance": "waits", "app.kubernetes.io/component": "engine"}
    body = {
        "metadata": {"name": "waits", "labels": mine},
        "spec": {
            "selector": {"matchLabels": mine},
            "template": {"metadata": {"labels": mine}, "spec": {**pod, **ask, "tolerations": tolerations}},
        },
    }
    privileged.request("POST", f"/apis/apps/v1/namespaces/{privileged.namespace}/deployments", body)
    found = real.until(lambda: [one.id for one in verdict(privileged, "waits")], timeout_s=45)
    real.until(lambda: id in [one.id for one in verdict(privileged, "waits")], timeout_s=45)
    assert found


def used(cluster: Cluster) -> bool:
    found = cluster.get(f"/api/v1/namespaces/{cluster.namespace}/resourcequotas/cards")
    return bool((found.get("status") or {}).get("hard"))
