"""Pods that were never made: what refuses them stands on the ReplicaSet. Texts of kube-apiserver 1.36."""

import pytest

from tests.doctor.cluster_objects import container, deployment, event, node, pod, replica_set, running
from tests.doctor.cluster_verdict import area, causes, first

GPU = {"nvidia.com/gpu": "1"}
NODE = node("gpu-1", cards=GPU)


def refused(said):
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": said}
    return (
        NODE,
        deployment("x", made=0, conditions=[failed]),
        replica_set("x-7d9c8b5f4", "x", made=0),
        event("ReplicaSet", "x-7d9c8b5f4", "FailedCreate", f"Error creating: {said}", count=17),
    )


FORBIDDEN = 'pods "x-7d9c8b5f4-q2w3e" is forbidden: '


@pytest.mark.parametrize(
    ("said", "expected", "words"),
    [
        (
            (
                f'{FORBIDDEN}violates PodSecurity "restricted:latest": seccompProfile (pod or container '
                '"engine" must set it)'
            ),
            "KX401",
            "in 1 point",
        ),
        (
            (
                f"{FORBIDDEN}exceeded quota: g, requested: requests.nvidia.com/gpu=1, used: "
                "requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2"
            ),
            "KX402",
            "quota g is used up",
        ),
        (
            f"{FORBIDDEN}failed quota: g: must specify requests.memory for: engine",
            "KX403",
            "requests.memory for: engine",
        ),
        (f'{FORBIDDEN}pod rejected: RuntimeClass "nvidia" not found', "KX404", "no RuntimeClass nvidia"),
        (f"{FORBIDDEN}no PriorityClass with name gpu-high was found", "KX405", "gpu-high"),
        (
            f'{FORBIDDEN}error looking up service account team/x: serviceaccount "x" not found',
            "KX406",
            "no ServiceAccount x in team",
        ),
        (f"{FORBIDDEN}maximum memory usage per Container is 8Gi, but limit is 12Gi", "KX407", "8Gi"),
        (
            'admission webhook "validate.kyverno.svc-fail" denied the request: image must have a digest',
            "KX408",
            "kyverno",
        ),
        (
            'Internal error occurred: failed calling webhook "pods.hami.io": connection refused',
            "KX408",
            "does not answer",
        ),
        (
            (
                f"{FORBIDDEN}unable to validate against any security context constraint: [provider "
                "restricted-v2: 2000 is not an allowed group]"
            ),
            "KX409",
            "security context constraint",
        ),
        (
            f"{FORBIDDEN}unable to create new content in namespace team because it is being terminated",
            "KX412",
            "being deleted",
        ),
        (
            (
                'Pod "x" is invalid: spec.resourceClaims[0]: must specify one of: `resourceClaimName`, '
                "`resourceClaimTemplateName`"
            ),
            "KX513",
            "<=1.30",
        ),
        (
            (
                'Pod "x" is invalid: spec.containers[0].resources.limits[nvidia.com/gpu]: Limit must be '
                "set for non overcommitable resources"
            ),
            "KX411",
            "no pod is made",
        ),
    ],
)
def test_what_refuses_pods_stands_on_the_replica_set(said, expected, words):
    objects = refused(said)
    assert causes(*objects, target="deployment/x") == [expected]
    assert words in first(*objects, target="deployment/x").title


def test_without_events_the_deployments_condition_says_it():
    objects = [
        one for one in refused(f'{FORBIDDEN}pod rejected: RuntimeClass "nvidia" not found') if one["kind"] != "Event"
    ]
    assert causes(*objects) == ["KX404"]


def test_a_refusal_of_before_is_past_when_the_pods_are_there():
    _, made, _, said = refused(f"{FORBIDDEN}exceeded quota: g, requested: a=1, used: a=1, limited: a=1")
    user = running(
        pod("x-7d9c8b5f4-abcde", owner=("ReplicaSet", "x-7d9c8b5f4"), node="gpu-1", containers=[container(limits=GPU)])
    )
    objects = NODE, {**made, "status": {"replicas": 1}}, replica_set("x-7d9c8b5f4", "x", made=1), user, said
    assert causes(*objects) == []


def test_pods_that_are_not_made_without_a_word_are_unknown():
    found = area(NODE, deployment("x", made=0), replica_set("x-7d9c8b5f4", "x", made=0), target="deployment/x")
    assert (found.findings, found.settled) == ((), False)
    assert "replicaset team/x-7d9c8b5f4 has made 0 of 1 pods, and nothing says why" in found.unknowns[0]
