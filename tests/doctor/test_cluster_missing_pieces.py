"""What is said all the same where part of a cluster was not saved."""

from tests.doctor.cluster_objects import (
    container,
    deployment,
    ended,
    event,
    meta,
    node,
    pod,
    replica_set,
    running,
    unschedulable,
    waiting,
)
from tests.doctor.cluster_verdict import area, causes, first, text

TAINT = "0/2 nodes are available: 1 node(s) had untolerated taint {nvidia.com/gpu: present}, 1 Insufficient cpu."
REFUSED = (
    'pods "x-1" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=1, '
    "used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2"
)


def card(name, **more):
    return pod(name, containers=[container(limits={"nvidia.com/gpu": "1"})], **more)


def test_only_the_scheduler_s_event():
    said = event("Pod", "x-bbbbbbbbb-22222", "FailedScheduling", TAINT)
    assert causes(said) == ["KX014"]
    assert "untolerated taint {nvidia.com/gpu: present}" in text(first(said))
    assert causes(said, target="pod/x-bbbbbbbbb-22222") == ["KX014"]


def test_only_the_event_of_a_pod_that_was_not_made():
    said = event("ReplicaSet", "x-bbbbbbbbb", "FailedCreate", f"Error creating: {REFUSED}")
    assert causes(said) == ["KX402"]


def test_events_of_pods_that_are_gone_say_nothing_beside_other_objects():
    said = event("Pod", "x-bbbbbbbbb-22222", "FailedScheduling", TAINT)
    assert area(said, node("gpu-1"), deployment("other")).findings == ()
    assert area(event("Pod", "x-bbbbbbbbb-22222", "Started", "Started container", type="Normal")).findings == ()


def test_old_and_new_wait_for_each_other_without_their_replica_sets():
    old = running(card("x-aaaaaaaaa-11111", node="gpu-1", owner=("ReplicaSet", "x-aaaaaaaaa")))
    new = card(
        "x-bbbbbbbbb-22222",
        owner=("ReplicaSet", "x-bbbbbbbbb"),
        status=unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
    )
    objects = (node("gpu-1", cards={"nvidia.com/gpu": "1"}), deployment("x"), old, new)
    assert causes(*objects) == ["KX016"]
    twin = card("x-aaaaaaaaa-33333", owner=("ReplicaSet", "x-aaaaaaaaa"), status=new["status"])
    assert causes(*objects[:3], twin) == ["KX002"]


def test_a_failure_that_the_replica_set_reports_beside_a_full_count():
    failed = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": REFUSED}]
    full = replica_set("x-bbbbbbbbb", "x")
    full["status"] |= {"replicas": 1, "conditions": failed}
    assert causes(deployment("x"), full) == ["KX402"]
    full["status"]["conditions"] = [{**failed[0], "reason": "FailedDelete"}]
    assert area(deployment("x"), full).findings == ()


def crashing(words="", **spec):
    state = waiting("CrashLoopBackOff", restarts=4, last=ended(1, words))
    return card("x-bbbbbbbbb-22222", node="gpu-1", phase="Running", status={**state, "phase": "Running"}, **spec)


def test_a_service_called_vllm_beside_an_engine_that_ends_without_a_word():
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta("vllm", "team"),
        "spec": {"clusterIP": "10.1.2.3"},
    }
    found = first(service, crashing())
    assert found.id == "KX306"
    assert "team/vllm" in found.evidence
    assert causes(service, crashing()) == ["KX306"]
    assert causes(crashing()) == ["KX313"]
    assert causes(service, crashing(enableServiceLinks=False)) == ["KX313"]
    assert "KX306" not in causes(service, crashing("KeyError: 'getpwuid(): uid not found: 1000'"))
    service["spec"]["clusterIP"] = "None"
    assert causes(service, crashing()) == ["KX313"]


def test_the_claim_that_was_made_where_its_template_was_not_saved():
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta("x-gpu-abcde", "team"),
        "spec": {
            "devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]}
        },
        "status": {},
    }
    devices = [{"name": "gpu-0", "attributes": {"productName": {"string": "NVIDIA T4"}}}]
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": meta("s1"),
        "spec": {"driver": "gpu.nvidia.com", "nodeName": "gpu-1", "pool": {"name": "gpu-1"}, "devices": devices},
    }
    said = unschedulable("0/1 nodes are available: 1 cannot allocate all claims.")
    said["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "x-gpu-abcde"}]
    waits = pod(
        "x", status=said, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}], containers=[container()]
    )
    found = first(node("gpu-1"), claim, slice_, waits)
    assert found.id == "KX503"
    assert "2 devices of gpu.nvidia.com" in found.title
    assert "the most that one node has is 1 (gpu-1)" in found.title


def test_shares_that_another_scheduler_counts():
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "40000"}
    said = unschedulable("0/1 nodes are available: 1 CardInsufficientMemory(gpu-1).")
    waits = pod("x", status=said, containers=[container(limits=limits)], schedulerName="hami-scheduler")
    found = first(node("gpu-1", cards={"nvidia.com/gpu": "10"}), waits)
    assert found.id == "KX014"
    assert "CardInsufficientMemory" in text(found)


def test_a_program_that_a_shell_does_not_find():
    words = "/usr/bin/bash: line 1: vllm: command not found"
    state = waiting("CrashLoopBackOff", restarts=4, last=ended(127, words))
    found = first(card("x", node="gpu-1", phase="Running", status={**state, "phase": "Running"}))
    assert found.id == "KX316"
    assert "has no program vllm" in found.title


def test_the_pods_that_hold_the_cards_were_not_saved():
    said = unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    free = node("gpu-1", cards={"nvidia.com/gpu": "1"})
    found = first(free, card("x", status=said))
    assert found.id == "KX014"
    assert "1 Insufficient nvidia.com/gpu" in found.title
    assert "pods that hold the rest" in found.why
    other = running(pod("other", node="gpu-1"))
    assert "KX014" not in causes(free, other, card("x", status=said))
