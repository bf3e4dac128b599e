"""Where a start in a cluster stands, by objects as an API server gives them."""

from typing import Any

import pytest

from selfhost.deploy.cluster_gather import without_own
from selfhost.deploy.cluster_stage import observed, overdue, stage_of, updated

Object = dict[str, Any]
LABELS = {"app.kubernetes.io/instance": "toy", "app.kubernetes.io/component": "engine"}


def deployment(**status: Any) -> Object:
    return {"kind": "Deployment", "metadata": {"name": "toy", "generation": 3}, "status": status}


def replica_set(name: str, revision: int, *conditions: Object) -> Object:
    mark = {"deployment.kubernetes.io/revision": str(revision)}
    return {
        "kind": "ReplicaSet",
        "metadata": {"name": name, "annotations": mark},
        "status": {"conditions": list(conditions)},
    }


def pod(
    name: str = "toy-1-a", owner: str = "toy-1", node: str = "n1", component: str = "engine", **status: Any
) -> Object:
    labels = {**LABELS, "app.kubernetes.io/component": component}
    meta = {"name": name, "labels": labels, "ownerReferences": [{"kind": "ReplicaSet", "name": owner}]}
    return {"kind": "Pod", "metadata": meta, "spec": {"nodeName": node} if node else {}, "status": status}


def waiting(reason: str, message: str = "") -> Object:
    return {"name": "engine", "state": {"waiting": {"reason": reason, "message": message}}, "ready": False}


def test_a_pod_that_no_node_takes_is_a_stall_with_the_scheduler_s_words():
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    stage = stage_of([deployment(), pod(node="", phase="Pending", conditions=[said])])
    assert (stage.name, stage.stalled, stage.hopeless) == ("scheduling", True, "")
    assert "0/1 nodes are available" in stage.text


def test_a_refusal_of_pod_security_shows_on_the_replica_set_and_is_hopeless():
    said = {
        "type": "ReplicaFailure",
        "status": "True",
        "message": 'pods "x" is forbidden: violates PodSecurity "restricted"',
    }
    stage = stage_of([deployment(), replica_set("toy-1", 1, said)])
    assert stage.name == "refused"
    assert "violates PodSecurity" in stage.hopeless


def test_a_quota_that_is_used_up_may_be_free_again():
    said = {"type": "ReplicaFailure", "status": "True", "message": 'pods "x" is forbidden: exceeded quota: g, used: 1'}
    stage = stage_of([deployment(), replica_set("toy-1", 1, said)])
    assert (stage.name, stage.stalled, stage.hopeless) == ("refused", True, "")


def test_a_webhook_that_is_away_may_come_back():
    said = {"type": "ReplicaFailure", "status": "True", "message": "Internal error: failed calling webhook: timeout"}
    stage = stage_of([deployment(conditions=[said])])
    assert (stage.name, stage.stalled, stage.hopeless) == ("refused", True, "")


@pytest.mark.parametrize(
    ("reason", "message", "is_hopeless"),
    [
        ("ContainerCreating", "", False),
        ("ErrImagePull", "rpc error: failed to resolve: manifest unknown", True),
        ("ImagePullBackOff", 'Back-off pulling image "x": unauthorized: access denied', True),
        ("ErrImagePull", "dial tcp: lookup docker.io: i/o timeout", False),
        ("ErrImagePull", "toomanyrequests: rate limit", False),
        ("InvalidImageName", "couldn't parse image name", True),
        ("CreateContainerConfigError", 'secret "k" not found', True),
    ],
)
def test_a_container_that_never_starts_is_told_from_one_that_may(reason: str, message: str, is_hopeless: bool):
    stage = stage_of([deployment(), pod(phase="Pending", containerStatuses=[waiting(reason, message)])])
    assert stage.name == "pulling"
    assert bool(stage.hopeless) is is_hopeless


def fetching(*more: Object) -> list[Object]:
    waits = {"name": "wait", "state": {"running": {}}}
    first = pod(phase="Pending", initContainerStatuses=[waits], containerStatuses=[waiting("PodInitializing")])
    return [deployment(), first, *more]


def test_while_the_engine_s_pod_waits_for_weights_the_job_is_looked_at():
    job = {"kind": "Job", "metadata": {"name": "toy-fetch"}, "status": {}}
    running = {"name": "fetch", "state": {"running": {}}, "ready": True}
    its = pod("toy-fetch-x", "toy-fetch", component="fetch", phase="Running", containerStatuses=[running])
    assert stage_of(fetching(job, its)).text == "the job fetches the weights"


def test_a_job_that_failed_for_good_is_hopeless():
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "it failed 4 times"}
    job = {"kind": "Job", "metadata": {"name": "toy-fetch"}, "status": {"conditions": [failed]}}
    assert stage_of(fetching(job)).hopeless == "toy-fetch: it failed 4 times"


def test_an_image_that_the_job_cannot_pull_stops_the_start_too():
    job = {"kind": "Job", "metadata": {"name": "toy-fetch"}, "status": {}}
    its = pod(
        "toy-fetch-x", "toy-fetch", component="fetch", containerStatuses=[waiting("ErrImagePull", "manifest unknown")]
    )
    assert "manifest unknown" in stage_of(fetching(job, its)).hopeless


def test_the_pod_of_the_newest_plan_counts_and_not_the_one_that_still_serves():
    old = pod("toy-1-a", "toy-1", containerStatuses=[{"name": "engine", "state": {"running": {}}, "ready": True}])
    new = pod("toy-2-b", "toy-2", containerStatuses=[{"name": "engine", "state": {"running": {}}, "ready": False}])
    found = stage_of([deployment(), replica_set("toy-1", 1), replica_set("toy-2", 2), old, new])
    assert found.pod is not None
    assert (found.name, found.pod.name) == ("loading", "toy-2-b")


def test_a_pod_that_leaves_is_no_pod():
    going = pod(containerStatuses=[{"name": "engine", "state": {"running": {}}, "ready": True}])
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert stage_of([deployment(), going]).name == "applying"


def test_an_engine_that_ended_tells_how():
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    status = {**waiting("CrashLoopBackOff", "back-off 10s"), "lastState": {"terminated": ended}, "restartCount": 1}
    stage = stage_of([deployment(), pod(phase="Running", containerStatuses=[status])])
    assert stage.name == "ended"
    assert stage.pod is not None
    assert (stage.pod.exit_code, stage.pod.exit_reason, stage.pod.restarts) == (137, "OOMKilled", 1)


def test_a_deployment_that_its_controller_has_not_seen_yet_says_nothing_of_the_new_plan():
    assert not observed([deployment(observedGeneration=2)])
    assert observed([deployment(observedGeneration=3)])
    assert not updated([deployment(updatedReplicas=0, readyReplicas=1)])
    assert updated([deployment(updatedReplicas=1, readyReplicas=1)])


def test_the_deadline_is_over_when_the_deployment_says_so():
    said = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "has timed out"}
    assert overdue([deployment(conditions=[said])]) == "has timed out"
    assert overdue([deployment(conditions=[{**said, "status": "True", "reason": "ReplicaSetUpdated"}])]) == ""


def test_what_a_deployment_holds_itself_is_free_for_it():
    mine = {**pod("toy-1-a"), "metadata": {"name": "toy-1-a", "namespace": "models", "labels": LABELS}}
    theirs = {
        **mine,
        "metadata": {**mine["metadata"], "name": "other", "labels": {"app.kubernetes.io/instance": "other"}},
    }
    elsewhere = {**mine, "metadata": {**mine["metadata"], "namespace": "another"}}
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "models", "ownerReferences": [{"kind": "Pod", "name": "toy-1-a"}]},
    }
    kept = without_own((mine, theirs, elsewhere, claim), namespace="models", release="toy")
    assert kept == (theirs, elsewhere)
