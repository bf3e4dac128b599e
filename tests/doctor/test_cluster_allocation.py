"""Devices by plugin and by claim: refused at the node, not to be had by the claim, and pods that were never made."""

import pytest

from tests.doctor.cluster_objects import (
    container,
    event,
    meta,
    node,
    pod,
    unschedulable,
    waiting,
)
from tests.doctor.cluster_verdict import area, causes, first, text

GPU = {"nvidia.com/gpu": "1"}
NODE = node("gpu-1", cards=GPU)
RUNC = "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
CANNOT = (
    "0/1 nodes are available: 1 cannot allocate all claims. no new claims to deallocate, "
    "preemption: 0/1 nodes are available."
)


def placed(status, *, phase="Pending", limits=GPU, **more):
    return pod("qwen-0", node="gpu-1", phase=phase, containers=[container(limits=limits)], status=status, **more)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (f"{RUNC}unresolvable CDI devices nvidia.com/gpu=GPU-2f1c: unknown", "KX505"),
        (
            f"{RUNC}failed to inject CDI devices: unresolvable CDI devices management.nvidia.com/gpu=GPU-2f1c: unknown",
            "KX506",
        ),
        ("CDI device injection failed: unresolvable CDI devices k8s.gpu.nvidia.com/device=gpu-1", "KX507"),
        ("CDI device injection failed: unresolvable CDI devices k8s.gpu.intel.com/device=0000:03:00.0", "KX507"),
        (f"{RUNC}nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1", "KX509"),
        (f"{RUNC}nvidia-container-cli: detection error: nvml error: GPU is lost: unknown", "KX511"),
    ],
)
def test_the_container_engine_refuses(said, expected):
    assert causes(NODE, placed(waiting("RunContainerError", said))) == [expected]


def test_the_device_is_named():
    found = first(
        NODE,
        placed(
            waiting(
                "RunContainerError",
                f"{RUNC}failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=7: unknown",
            )
        ),
    )
    assert "gpu-1 has no CDI device nvidia.com/gpu=7" in found.title


def test_the_runtime_is_missing_on_the_node():
    said = (
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox "
        'runtime: no runtime for "nvidia" is configured'
    )
    objects = (
        NODE,
        placed(waiting("ContainerCreating"), runtimeClassName="nvidia"),
        event("Pod", "qwen-0", "FailedCreatePodSandBox", said),
    )
    assert causes(*objects) == ["KX504"]


@pytest.mark.parametrize(
    ("runtime", "expected"), [("containerd://1.6.39", ["KX508"]), ("containerd://1.7.28", []), ("cri-o://1.34.1", [])]
)
def test_containerd_before_cdi(runtime, expected):
    found = causes(
        node("gpu-1", cards=GPU, runtime=runtime), placed(waiting("CreateContainerError", "it did not start"))
    )
    assert found == expected


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (
            "UnexpectedAdmissionError",
            (
                "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
                "nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"
            ),
        ),
        (
            "UnexpectedAdmissionError",
            (
                "Allocate failed due to requested number of devices unavailable for amd.com/gpu. "
                "Requested: 1, Available: 0, which is unexpected"
            ),
        ),
        ("OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 1, capacity: 1"),
    ],
)
def test_the_kubelet_counts_otherwise(reason, message):
    objects = NODE, placed({"reason": reason, "message": message}, phase="Failed")
    assert causes(*objects) == ["KX510"]
    assert "sudo systemctl restart kubelet" in text(first(*objects))


def test_a_node_name_by_hand_goes_round_the_scheduler():
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"kind":"Pod","spec":{"nodeName":"gpu-1"}}'}
    status = {
        "reason": "OutOfnvidia.com/gpu",
        "message": "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 1, capacity: 1",
    }
    assert "The pod names its node" in first(NODE, placed(status, phase="Failed", annotations=applied)).why


def test_unhealthy_devices():
    said = (
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
        "amd.com/gpu, which is unexpected"
    )
    objects = NODE, placed({"reason": "UnexpectedAdmissionError", "message": said}, phase="Failed")
    assert causes(*objects) == ["KX511"]


def test_every_card_unhealthy():
    sick = node("gpu-1", cards={"nvidia.com/gpu": "4"}, allocatable={"nvidia.com/gpu": "0"})
    found = causes(
        sick,
        pod(
            "qwen-0",
            containers=[container(limits=GPU)],
            status=unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
        ),
    )
    assert found[0] == "KX512"


def slice_(*devices, node_="gpu-1", driver="gpu.nvidia.com"):
    listed = [
        {
            "name": called,
            "attributes": {"productName": {"string": product}, "type": {"string": "gpu"}},
            "capacity": {"memory": {"value": memory}},
        }
        for called, product, memory in devices
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": meta(f"{node_}-s"),
        "spec": {"driver": driver, "nodeName": node_, "pool": {"name": node_}, "devices": listed},
    }


CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": meta("gpu.nvidia.com"),
    "spec": {
        "selectors": [
            {
                "cel": {
                    "expression": (
                        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
                    )
                }
            }
        ]
    },
}
SLICE = slice_(("gpu-0", "Tesla T4", "15360Mi"), ("gpu-1", "NVIDIA L4", "23034Mi"))


def template(expression, count=1):
    request = {
        "deviceClassName": "gpu.nvidia.com",
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": expression}}],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": meta("one", "team"),
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}},
    }


def at_least(memory):
    return f"device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('{memory}')) >= 0"


def claiming(said=CANNOT):
    status = unschedulable(said) if said else {}
    return pod(
        "qwen-0",
        containers=[container(resources={"claims": [{"name": "gpus"}]})],
        status=status,
        resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "one"}],
    )


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (at_least("40Gi"), "the nearest, NVIDIA L4 23034Mi on gpu-1, wants memory >= 40Gi, has 23034Mi"),
        (
            "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100'",
            "wants productName == NVIDIA H100, has NVIDIA L4",
        ),
        ("device.attributes[\"gpu.nvidia.com\"].productName in ['NVIDIA H100', 'NVIDIA A100']", "wants productName in"),
        (
            "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('30Gi'))",
            "wants memory > 30Gi, has 23034Mi",
        ),
    ],
)
def test_the_nearest_device_is_named(expression, words):
    found = first(node("gpu-1"), SLICE, CLASS, template(expression), claiming())
    assert (found.id, words in found.title) == ("KX503", True)


def test_more_devices_than_one_node_has():
    found = first(node("gpu-1"), SLICE, CLASS, template(at_least("16Gi"), 2), claiming())
    assert (found.id, "the most that one node has is 1 (gpu-1)" in found.title) == ("KX503", True)


def test_devices_that_would_do_are_held():
    result = {"driver": "gpu.nvidia.com", "pool": "gpu-1", "device": "gpu-1", "request": "gpu"}
    held = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta("other-gpu", "lab"),
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "other-0"}],
        },
    }
    found = first(node("gpu-1"), SLICE, CLASS, template(at_least("16Gi")), held, claiming())
    assert (found.id, "claim lab/other-gpu of pod other-0" in found.evidence) == ("KX515", True)


def test_an_expression_beyond_us_is_not_judged():
    odd = "device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*l4$')"
    found = area(node("gpu-1"), SLICE, CLASS, template(odd), claiming(said=""))
    assert "KX503" not in [one.id for one in found.findings]


def test_a_plain_resource_that_a_class_serves_is_judged_by_its_devices():
    """kube-scheduler 1.36 makes a claim of its own for it; no node's allocatable lists it."""
    bridge = {**CLASS, "spec": {**CLASS["spec"], "extendedResourceName": "nvidia.com/gpu"}}
    wants = pod("qwen-0", containers=[container(limits={"nvidia.com/gpu": "4"})], status=unschedulable(CANNOT))
    found = first(node("gpu-1"), SLICE, bridge, wants)
    assert (found.id, "claims 4 devices of gpu.nvidia.com" in found.title) == ("KX503", True)
    assert "the most that one node has is 2 (gpu-1)" in found.title


def test_a_taint_hides_behind_claims_too():
    taint = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    said = "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) had untolerated taint(s)."
    objects = node("gpu-1", taints=taint), node("cpu-1"), SLICE, CLASS, template(at_least("16Gi")), claiming(said)
    assert causes(*objects) == ["KX005"]


def test_alternatives_are_not_judged_by_the_first():
    either = template(at_least("40Gi"))
    request = either["spec"]["spec"]["devices"]["requests"][0]
    exactly = request.pop("exactly")
    request["firstAvailable"] = [{"name": "a", **exactly}, {"name": "b", "deviceClassName": "gpu.amd.com"}]
    found = area(node("gpu-1"), SLICE, CLASS, either, claiming())
    assert (found.findings, found.settled) == ((), False)


def test_a_class_that_is_missing():
    said = "0/1 nodes are available: 1 request gpu: device class gpu.amd.com does not exist."
    found = first(node("gpu-1"), CLASS, claiming(said=said))
    assert (found.id, "gpu.amd.com" in found.title, "v1beta1" in found.why) == ("KX501", True, True)


def test_a_template_that_is_missing_leaves_no_word_of_the_scheduler():
    said = 'PodResourceClaim gpus: resourceclaimtemplate.resource.k8s.io "one" not found'
    objects = node("gpu-1"), CLASS, claiming(said=""), event("Pod", "qwen-0", "FailedResourceClaimCreation", said)
    assert causes(*objects) == ["KX502"]
