"""`up --runtime kubernetes` through the whole command, and each way in which a cluster lets it down."""

import base64
import json
import os
import signal
import socket
import time

import pytest

from tests.e2e.cluster_world import REPO, ClusterWorld, cluster_world
from tests.fakes.kubelet import Waiting


@pytest.fixture
def cluster(tmp_path):
    with cluster_world(tmp_path) as made:
        yield made


def test_a_model_comes_up_checked_stays_as_it_is_and_goes_without_its_weights(cluster: ClusterWorld):
    name = cluster.world.name
    done = cluster.up("--json")
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["ok"]
    assert told["runtime"] == "kubernetes"
    assert f"port-forward service/{name}" in told["reachable_from"]
    (pod,) = [
        one for one in cluster.api.of("Pod") if one["metadata"]["labels"].get("app.kubernetes.io/component") == "engine"
    ]

    key = (cluster.world.folder / "key").read_text().strip()
    assert key not in done.stdout + done.stderr
    assert key not in json.dumps([one for one in cluster.api.objects.values() if one["kind"] != "Secret"])

    again = cluster.up("--json")
    assert json.loads(again.stdout)["fresh"] is False, again.stderr[-2000:]
    assert pod["metadata"]["uid"] in [one["metadata"]["uid"] for one in cluster.api.of("Pod")]

    status = cluster.world.status()
    assert status["state"] == "ready"
    assert status["cluster"] == "context toy, namespace models"
    assert "vLLM API server version" in cluster.world.run("logs", name).stdout
    smoke = cluster.world.run("smoke", name)
    assert smoke.returncode == 0, smoke.stdout + smoke.stderr

    down = cluster.world.down()
    assert down.returncode == 0, down.stderr
    assert f"PersistentVolumeClaim {name}-weights in models  (weights, " in down.stdout
    left = {one["kind"] for one in cluster.api.objects.values() if one["metadata"].get("namespace") == "models"}
    assert left == {"PersistentVolumeClaim"}


def test_a_gated_model_gets_the_token_of_the_environment_by_a_secret_alone(cluster: ClusterWorld):
    cluster.hub.token, cluster.hub.gated = "hf_of-this-test", (REPO,)
    cluster.world.extra_env["HUGGING_FACE_HUB_TOKEN"] = " hf_of-this-test\n"
    name = cluster.world.name
    done = cluster.up("--json")
    assert done.returncode == 0, done.stderr[-3000:]
    (secret,) = [one for one in cluster.api.of("Secret") if one["metadata"]["name"] == f"{name}-hub-token"]
    assert base64.b64decode(secret["data"]["HF_TOKEN"]) == b"hf_of-this-test"
    others = json.dumps([one for one in cluster.api.objects.values() if one["kind"] != "Secret"])
    files = "".join(one.read_text() for one in cluster.world.folder.rglob("*") if one.is_file())
    assert "hf_of-this-test" not in done.stdout + done.stderr + others + files
    sees_it = [
        container["name"]
        for pod in cluster.api.of("Pod")
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
        if f"{name}-hub-token" in json.dumps(container)
    ]
    assert set(sees_it) == {"fetch"}
    down = cluster.world.down()
    assert down.returncode == 0, down.stderr
    assert cluster.api.of("Secret") == []


@pytest.mark.slow
def test_a_pod_of_somebody_else_makes_no_new_plan_for_what_runs(cluster: ClusterWorld):
    assert cluster.up().returncode == 0
    before = [one["metadata"]["uid"] for one in cluster.api.of("Pod")]
    (engine,) = [one for one in cluster.api.of("Pod") if one["spec"]["containers"][0]["name"] == "engine"]
    node = next(one for one in cluster.api.of("Node") if one["metadata"]["name"] == engine["spec"]["nodeName"])
    most = int(node["status"]["allocatable"]["cpu"]) - 2
    other = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "default"},
        "spec": {"nodeName": node["metadata"]["name"], "containers": [
            {"name": "c", "image": "x", "resources": {"requests": {"cpu": str(most)}}},
        ]},
        "status": {"phase": "Running"},
    }  # fmt: skip
    runs = {"engine": cluster.engine, "c": lambda _: ["sleep", "100"]}
    cluster.behave = lambda _, container: runs.get(container["name"], lambda _: None)(container)
    cluster.api.put(other)
    again = cluster.up("--json")
    assert json.loads(again.stdout)["fresh"] is False, again.stderr[-2000:]
    assert set(before) <= {one["metadata"]["uid"] for one in cluster.api.of("Pod")}


@pytest.mark.slow
def test_purge_takes_the_volume_too(cluster: ClusterWorld):
    assert cluster.up().returncode == 0
    done = cluster.world.run("down", cluster.world.name, "--purge", "--yes")
    assert done.returncode == 0, done.stderr
    assert cluster.api.of("PersistentVolumeClaim") == []


@pytest.mark.slow
def test_watches_that_break_and_expire_meanwhile_cost_nothing(cluster: ClusterWorld):
    cluster.api.faults.drop_watches = 5
    cluster.api.faults.expire_watches = 5
    done = cluster.up()
    assert done.returncode == 0, done.stderr[-3000:]


def test_pod_security_stops_it_at_once_with_the_fields(cluster: ClusterWorld):
    cluster.api.faults.refuse_pods = (
        'pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container '
        '"engine" must set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true'
    )
    done = cluster.up()
    assert done.returncode == 5, done.stderr[-3000:]
    assert "error[KX401]" in done.stderr
    assert "runAsNonRoot" in done.stderr


def test_an_image_that_does_not_exist_stops_it_at_once(cluster: ClusterWorld):
    cluster.behave = lambda _, container: (
        Waiting("ImagePullBackOff", f'Back-off pulling image "{container["image"]}": manifest unknown')
        if container["name"] == "engine"
        else None
    )
    done = cluster.up()
    assert done.returncode == 5, done.stderr[-3000:]
    assert "error[KX101]" in done.stderr


@pytest.mark.slow
def test_a_secret_that_is_missing_stops_it_and_is_named(cluster: ClusterWorld):
    cluster.behave = lambda _, container: (
        Waiting("CreateContainerConfigError", 'secret "the-key" not found') if container["name"] == "engine" else None
    )
    done = cluster.up()
    assert done.returncode == 5, done.stderr[-3000:]
    assert "error[KX314]" in done.stderr
    assert "the-key" in done.stderr


@pytest.mark.slow
def test_an_engine_that_dies_is_diagnosed_by_its_own_log_before_the_restart(cluster: ClusterWorld):
    said = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"
    script = f"print({said!r}); exit(1)"
    cluster.behave = lambda _, container: ["/usr/bin/python3", "-c", script] if container["name"] == "engine" else None
    done = cluster.up()
    assert done.returncode == 5, done.stderr[-3000:]
    assert "error[EF" in done.stderr
    assert "error[EF043]" not in done.stderr


def test_a_pod_without_a_node_is_told_with_the_reason_and_goes_on_after_an_interrupt(cluster: ClusterWorld):
    cluster.api.faults.unschedulable = "0/1 nodes are available: 1 Insufficient cpu."
    running = cluster.world.start(*cluster.words())
    deadline = time.monotonic() + 60
    while not cluster.api.of("Pod") and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3)
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "Insufficient cpu" in said
    assert "the cluster goes on with" in said
    assert cluster.api.of("Deployment")

    cluster.api.faults.unschedulable = ""
    for pod in cluster.api.of("Pod"):
        cluster.api.put({**pod, "spec": {**pod["spec"], "nodeName": "node-1"}})
    done = cluster.up()
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_missing_permission_is_told_before_anything_is_applied(cluster: ClusterWorld):
    cluster.api.faults.forbidden = {("create", "deployments"), ("get", "pods/log"), ("create", "secrets")}
    done = cluster.up()
    assert done.returncode == 4
    assert "error[RT136]" in done.stderr
    assert "create deployments.apps" in done.stderr
    assert cluster.api.of("Secret") == []


def test_without_a_kubeconfig_nothing_is_begun(cluster: ClusterWorld):
    cluster.world.extra_env["KUBECONFIG"] = "/nonexistent"
    done = cluster.up()
    assert done.returncode == 4
    assert "error[RT130]" in done.stderr


@pytest.mark.slow
def test_status_says_unknown_when_the_cluster_does_not_answer(cluster: ClusterWorld):
    assert cluster.up().returncode == 0
    cluster.api.faults.answers[("GET", "")] = (503, {"message": "away"})
    status = cluster.world.status()
    assert status["state"] == "unknown"
    assert "toy" in str(status["health"])


def test_the_permissions_are_printed_without_any_cluster(cluster: ClusterWorld):
    cluster.world.extra_env["KUBECONFIG"] = "/nonexistent"
    done = cluster.world.run("up", "--rbac", "--namespace", "models")
    assert done.returncode == 0
    assert "kind: Role" in done.stdout
    assert "namespace: models" in done.stdout


@pytest.mark.slow
def test_a_port_that_was_asked_for_and_is_held_is_refused_with_its_holder(cluster: ClusterWorld):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        refused = cluster.up("--port", str(taken))
    assert refused.returncode == 4
    assert "error[RT004]" in refused.stderr
