"""Updates, groups, autoscalers, pools and nodes; and that a cause stands before what follows from it."""

import pytest

from tests.doctor.cluster_objects import (
    claim,
    container,
    deployment,
    ended,
    event,
    meta,
    mounted,
    node,
    pod,
    replica_set,
    running,
    unschedulable,
    waiting,
)
from tests.doctor.cluster_verdict import area, causes, first

LATE = [
    {
        "type": "Progressing",
        "status": "False",
        "reason": "ProgressDeadlineExceeded",
        "message": 'ReplicaSet "x-bbbbbbbbb" has timed out progressing.',
    }
]


def rolling(surge, missing):
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}


def update(resource="nvidia.com/gpu", *, held="1", wanted="1", has="1", replicas=1, strategy=None, conditions=()):
    limits = lambda count: [container(limits={resource: count})]  # noqa: E731 -- two lists of one shape
    old = running(pod("x-aaaaaaaaa-11111", owner=("ReplicaSet", "x-aaaaaaaaa"), node="gpu-1", containers=limits(held)))
    new = pod(
        "x-bbbbbbbbb-22222",
        owner=("ReplicaSet", "x-bbbbbbbbb"),
        containers=limits(wanted),
        status=unschedulable(f"0/1 nodes are available: 1 Insufficient {resource}."),
    )
    made = deployment("x", made=2, replicas=replicas, strategy=strategy, conditions=list(conditions))
    return (
        node("gpu-1", cards={resource: has}),
        made,
        replica_set("x-aaaaaaaaa", "x"),
        replica_set("x-bbbbbbbbb", "x"),
        old,
        new,
    )


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "nvidia.com/mig-3g.40gb"])
def test_old_and_new_wait_for_each_other(resource):
    objects = update(resource, held="2", wanted="2", has="2", conditions=LATE)
    found = first(*objects)
    assert causes(*objects) == ["KX016"]
    assert f"the old pod holds 2/2 {resource} of gpu-1, the new one needs 2" in found.title


def test_what_follows_from_the_deadlock_comes_after_it():
    found = area(*update(conditions=LATE)).findings
    assert [(one.id, one.severity.value) for one in found] == [("KX016", "error"), ("KX002", "info"), ("KX022", "info")]
    assert all(one.why.startswith("Follows from KX016") for one in found[1:])


@pytest.mark.parametrize(
    ("strategy", "replicas", "expected"),
    [
        (rolling("25%", "25%"), 1, "KX016"),
        (rolling(1, 0), 1, "KX016"),
        (rolling("100%", 0), 1, "KX016"),
        (rolling(0, 1), 1, "KX002"),
        (rolling("25%", "25%"), 4, "KX002"),
        ({"type": "Recreate"}, 1, "KX002"),
    ],
)
def test_only_a_surge_that_may_miss_none_deadlocks(strategy, replicas, expected):
    assert causes(*update(strategy=strategy, replicas=replicas)) == [expected]


def test_cards_of_others_are_no_deadlock():
    nodes, made, old_set, new_set, old, new = update()
    other = running(pod("other-0", "lab", node="gpu-1", containers=[container(limits={"nvidia.com/gpu": "1"})]))
    unbound = {**old, "spec": {**old["spec"], "containers": [container(image="busybox:1.37")]}}
    assert causes(nodes, made, old_set, new_set, unbound, other, new) == ["KX002"]


def test_a_volume_for_one_node_deadlocks_across_two():
    volume, _ = mounted("data")
    old = running(pod("x-aaaaaaaaa-11111", owner=("ReplicaSet", "x-aaaaaaaaa"), node="n1", volumes=[volume]))
    new = pod(
        "x-bbbbbbbbb-22222",
        owner=("ReplicaSet", "x-bbbbbbbbb"),
        node="n2",
        volumes=[volume],
        status=waiting("ContainerCreating"),
    )
    said = event(
        "Pod",
        "x-bbbbbbbbb-22222",
        "FailedAttachVolume",
        'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) x-aaaaaaaaa-11111',
    )
    objects = (
        node("n1"),
        node("n2"),
        claim("data"),
        deployment("x", made=2),
        replica_set("x-aaaaaaaaa", "x"),
        replica_set("x-bbbbbbbbb", "x"),
        old,
        new,
        said,
    )
    assert causes(*objects) == ["KX212"]
    shared = claim("data", modes=("ReadWriteMany",))
    assert "KX212" not in causes(*(shared if one["kind"] == "PersistentVolumeClaim" else one for one in objects))


def test_a_deadline_that_a_slow_load_passed_is_information():
    ready = running(pod("x-bbbbbbbbb-22222", owner=("ReplicaSet", "x-bbbbbbbbb"), node="gpu-1"))
    found = area(node("gpu-1"), deployment("x", conditions=LATE), replica_set("x-bbbbbbbbb", "x"), ready).findings
    assert [(one.id, one.severity.value) for one in found] == [("KX022", "info")]


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": meta("b", "team"),
    "spec": {"minAvailable": 1},
}


@pytest.mark.parametrize(("healthy", "allowed", "expected"), [(1, 0, ["KX021"]), (2, 1, []), (0, 0, [])])
def test_a_budget_that_blocks_drains(healthy, allowed, expected):
    status = {"expectedPods": max(healthy, 1), "currentHealthy": healthy, "disruptionsAllowed": allowed}
    assert causes(node("a"), {**BUDGET, "status": status}) == expected


def test_an_autoscaler_without_a_metric():
    condition = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "FailedGetPodsMetric",
        "message": "unable to get metric vllm_num_requests_waiting: no metrics returned",
    }
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": meta("x", "team"),
        "spec": {},
        "status": {"conditions": [condition]},
    }
    assert causes(node("a"), hpa) == ["KX023"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('sum(vllm:num_requests_waiting{model_name="m1"})', []),
        ('vllm:num_requests_waiting{model="m1"}', ["KX023"]),
        ("sum(vllm_num_requests_waiting)", ["KX023"]),
        ('avg(vllm:gpu_cache_usage_perc{model_name="m1"})', ["KX023"]),
    ],
)
def test_a_query_that_finds_nothing(query, expected):
    scaled = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": meta("x", "team"),
        "spec": {"triggers": [{"type": "prometheus", "metadata": {"query": query}}]},
    }
    assert causes(node("a"), scaled) == expected


GROUP = "leaderworkerset.sigs.k8s.io"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("RecreateGroupOnPodRestart", "KX318"), (None, "KX318"), ("RecreateGroupAfterStart", "KX313")],
)
def test_a_group_that_restarts_while_one_pulls(policy, expected):
    labels = [
        {f"{GROUP}/name": "g", f"{GROUP}/group-index": "0", f"{GROUP}/worker-index": str(index)} for index in (0, 1)
    ]
    lws = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": meta("g", "team"),
        "spec": {"leaderWorkerTemplate": {"size": 2, **({"restartPolicy": policy} if policy else {})}},
    }
    leader = pod(
        "g-0",
        labels=labels[0],
        node="a",
        phase="Running",
        status=waiting("CrashLoopBackOff", restarts=3, last=ended(1, "FooError: gave up")),
    )
    worker = pod("g-0-1", labels=labels[1], node="b", status=waiting("ContainerCreating"))
    pulls = event("Pod", "g-0-1", "Pulling", 'Pulling image "docker.io/vllm/vllm-openai:v0.27.1"')
    assert causes(node("a"), node("b"), lws, leader, worker, pulls) == [expected]


@pytest.mark.parametrize(
    ("spec", "ports", "expected"),
    [
        ({"targetPorts": [{"number": 8000}]}, [8300], ["KX601"]),
        ({"targetPortNumber": 8000}, [8300], ["KX601"]),
        ({"targetPorts": [{"number": 8000}]}, [8000, 9000], []),
        ({"targetPorts": [{"number": 8000}]}, [], ["KX601"]),
    ],
)
def test_a_pool_and_the_ports_of_its_pods(spec, ports, expected):
    pool = {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": meta("p", "team"),
        "spec": {"selector": {"matchLabels": {"app": "e"}}, **spec},
    }
    engine = running(
        pod(
            "e-0",
            labels={"app": "e"},
            node="a",
            containers=[container(ports=[{"containerPort": port} for port in ports])],
        )
    )
    assert causes(node("a"), pool, engine) == expected


def test_a_node_that_the_operator_does_not_find():
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": meta("cluster-policy"), "spec": {}}
    wants = pod(
        "qwen-0",
        containers=[container(limits={"nvidia.com/gpu": "1"})],
        status=unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
    )
    assert causes(node("a"), policy, wants) == ["KX012"]
    assert causes(node("a"), wants) == ["KX001"]
    found = node("a", labels={"feature.node.kubernetes.io/pci-0302_10de.present": "true"})
    assert "KX012" not in causes(found, policy, wants)


def test_a_node_under_pressure_and_a_node_that_is_away():
    assert causes(node("a", conditions={"DiskPressure": "True"})) == ["KX211"]
    assert causes(node("a", conditions={"Ready": "Unknown"})) == ["KX024"]


def test_a_pod_on_a_silent_node():
    placed = pod("qwen-0", node="a")
    found = area(node("a"), placed)
    assert (found.findings, found.settled) == ((), False)
    assert "the kubelet there has said nothing" in found.unknowns[0]
    assert causes(node("b"), placed) == ["KX019"]


def test_a_release_that_cannot_be_applied():
    said = (
        'Helm upgrade failed: Apply failed with 1 conflict: conflict with "kubectl" with '
        'subresource "scale" using apps/v1: .spec.replicas'
    )
    release = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": meta("x", "team"),
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": said}]},
    }
    assert "somebody else owns spec.replicas" in first(release).title


def test_a_healthy_cluster_is_calm():
    engine = running(
        pod(
            "x-aaaaaaaaa-11111",
            owner=("ReplicaSet", "x-aaaaaaaaa"),
            node="gpu-1",
            containers=[container(limits={"nvidia.com/gpu": "1"})],
        )
    )
    found = area(node("gpu-1", cards={"nvidia.com/gpu": "2"}), deployment("x"), replica_set("x-aaaaaaaaa", "x"), engine)
    assert (found.findings, found.unknowns) == ((), ())
    assert found.calm == "2 nvidia.com/gpu; 1 of 1 pod ready"


def test_one_object_is_looked_at_with_what_belongs_to_it():
    objects = (
        *update(),
        pod(
            "stuck-0",
            containers=[container(limits={"amd.com/gpu": "1"})],
            status=unschedulable("0/1 nodes are available: 1 Insufficient amd.com/gpu."),
        ),
    )
    assert causes(*objects) == ["KX016", "KX001"]
    assert causes(*objects, target="pod/x-bbbbbbbbb-22222") == ["KX016"]
    assert causes(*objects, target="deployment/x") == ["KX016"]
    assert causes(*objects, target="x") == ["KX016"]
    assert causes(*objects, target="pod/stuck-0") == ["KX001"]


def test_without_owner_references_generated_names_tell():
    """A snapshot that was redacted has none."""
    objects = [
        {**one, "metadata": {key: value for key, value in one["metadata"].items() if key != "ownerReferences"}}
        for one in update()
    ]
    assert causes(*objects, target="deployment/x") == ["KX016"]


def test_events_of_the_newer_api_are_read():
    stuck = pod("qwen-0", containers=[container(limits={"nvidia.com/gpu": "1"})])
    said = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": meta("e", "team"),
        "reason": "FailedScheduling",
        "note": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        "regarding": {"kind": "Pod", "namespace": "team", "name": "qwen-0"},
        "eventTime": "2026-12-02T10:00:00.000000Z",
    }
    assert "scheduler: 0/1 nodes" in first(node("a"), stuck, said).evidence


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"kind": "Pod"},
        {"kind": "Pod", "metadata": None, "spec": "x", "status": []},
        {"kind": "Node", "status": {"allocatable": None, "conditions": {}}},
        {"kind": "Deployment", "spec": {"replicas": "x", "strategy": {"rollingUpdate": {"maxSurge": "x%"}}}},
        {"kind": "Event", "involvedObject": None, "count": None},
        {"kind": "PersistentVolumeClaim", "spec": None},
        {"kind": "InferencePool", "spec": {"selector": "x"}},
        {"kind": "ResourceSlice", "spec": {"devices": [{}]}},
        {"kind": "HorizontalPodAutoscaler"},
        {"kind": "ScaledObject"},
        {"kind": "LeaderWorkerSet"},
    ],
)
def test_damaged_objects_are_no_reason_to_fail(broken):
    area(
        broken,
        node("a"),
        pod("qwen-0", containers=[container(limits={"nvidia.com/gpu": "1"})], status=unschedulable("x")),
    )


def test_an_operators_pods_wait_for_its_driver():
    init = {"name": "driver-validation", "image": "nvcr.io/nvidia/gpu-operator:v25.10.1"}
    status = {**init, "ready": False, "restartCount": 0, "state": {"running": {"startedAt": "2026-12-02T09:00:00Z"}}}
    plugin = pod(
        "nvidia-device-plugin-daemonset-x2k4p",
        "gpu-operator",
        node="a",
        containers=[container(image="nvcr.io/nvidia/k8s-device-plugin:v0.19.0")],
        initContainers=[init],
        status={"initContainerStatuses": [status]},
    )
    driver = running(pod("nvidia-driver-daemonset-9q5vz", "gpu-operator", node="a"), ready=False)
    found = {one.id: one for one in area(node("a"), plugin, driver).findings}
    assert (
        "waits on a for the driver: pod gpu-operator/nvidia-driver-daemonset-9q5vz is Running" in found["KX517"].title
    )


def test_ray_is_asked_for_an_address_that_nobody_has():
    said = "ValueError: No available node types can fulfill resource request {'node:192.168.178.20': 0.001}"
    stuck = pod("big-0", node="a", phase="Running", status=waiting("CrashLoopBackOff", restarts=2, last=ended(1, said)))
    assert causes(node("a"), stuck) == ["KX602"]
