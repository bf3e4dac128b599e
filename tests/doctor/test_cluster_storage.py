"""Claims, volumes and disks: texts of kube-controller-manager, the attach/detach controller and the kubelet."""

import pytest

from tests.doctor.cluster_objects import (
    claim,
    container,
    deployment,
    ended,
    event,
    mounted,
    node,
    pod,
    replica_set,
    running,
    storage_class,
    unschedulable,
    waiting,
)
from tests.doctor.cluster_verdict import area, causes, first

GPU = {"nvidia.com/gpu": "1"}
NODE = node("gpu-1", cards=GPU)
TAINTED = node("gpu-1", cards=GPU, taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}])
UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
NO_CLASS = "no persistent volumes available for this claim and no storage class is set"


def using(called="cache", said=UNBOUND, **more):
    volume, mount = mounted(called)
    return pod(
        "qwen-0",
        containers=[container(limits=GPU, volumeMounts=[mount])],
        volumes=[volume],
        status=unschedulable(said),
        **more,
    )


def of_claim(reason, message, called="cache"):
    return event("PersistentVolumeClaim", called, reason, message)


def test_no_default_class():
    objects = (
        NODE,
        storage_class("local-path"),
        claim("cache", phase="Pending", klass=None),
        of_claim("FailedBinding", NO_CLASS),
        using(),
    )
    found = first(*objects)
    assert causes(*objects) == ["KX201"]
    assert "it names no class, and there is no default" in found.title
    assert "kubectl patch storageclass local-path" in found.fix[1]


def test_an_empty_class_asks_for_a_volume_made_by_hand():
    objects = (
        NODE,
        storage_class("fast", default=True),
        claim("cache", phase="Pending", klass=""),
        of_claim("FailedBinding", NO_CLASS),
        using(),
    )
    assert "storageClassName is empty" in first(*objects).title


def test_a_class_that_is_not_there():
    said = of_claim("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found')
    objects = NODE, storage_class("local-path"), claim("cache", phase="Pending", klass="fast"), said, using()
    assert causes(*objects) == ["KX208"]


def test_waiting_for_a_consumer_is_normal():
    said = of_claim("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    objects = (
        TAINTED,
        storage_class("local-path", default=True),
        claim("cache", phase="Pending", klass="local-path"),
        said,
        using(said="0/1 nodes are available: 1 node(s) had untolerated taint(s)."),
    )
    assert [one.id for one in area(*objects).findings] == ["KX005"]


def test_a_claim_that_nobody_uses_may_wait():
    said = of_claim("FailedBinding", NO_CLASS)
    assert causes(NODE, storage_class("local-path"), claim("cache", phase="Pending", klass=None), said) == []


def test_a_claim_that_does_not_exist_and_where_one_is():
    said = '0/1 nodes are available: persistentvolumeclaim "cache" not found. not found'
    found = first(NODE, claim("cache", "lab"), claim("other"), using(said=said))
    assert (found.id, "there is one in namespace lab" in found.evidence, "claims here: other" in found.evidence) == (
        "KX202",
        True,
        True,
    )


def test_a_provisioner_that_may_not_onto_the_tainted_node():
    chosen = {"volume.kubernetes.io/selected-node": "gpu-1"}
    said = of_claim(
        "ExternalProvisioning",
        (
            "Waiting for a volume to be created either by the external provisioner "
            '"microk8s.io/hostpath" or manually by the system administrator.'
        ),
    )
    objects = (
        TAINTED,
        storage_class("microk8s-hostpath", default=True, provisioner="microk8s.io/hostpath"),
        claim("cache", phase="Pending", klass="microk8s-hostpath", annotations=chosen),
        said,
        using(said="", tolerations=[{"operator": "Exists"}]),
    )
    found = first(*objects)
    assert (found.id, found.run_on.value) == ("KX204", "cluster admin")
    assert "does not tolerate nvidia.com/gpu" in found.why


@pytest.mark.parametrize(("mode", "expected"), [("Immediate", ["KX204"]), ("WaitForFirstConsumer", [])])
def test_a_provisioner_that_says_nothing(mode, expected):
    """microk8s' helper pod that no node takes leaves no event at the claim."""
    klass = storage_class("microk8s-hostpath", default=True, provisioner="microk8s.io/hostpath", mode=mode)
    wants = using(said=UNBOUND, tolerations=[{"operator": "Exists"}])
    assert causes(TAINTED, klass, claim("cache", phase="Pending", klass="microk8s-hostpath"), wants) == expected


def test_a_refusing_provisioner():
    said = of_claim(
        "ProvisioningFailed",
        (
            'failed to provision volume with StorageClass "gp3": rpc error: code = InvalidArgument desc '
            "= Volume capabilities MULTI_NODE_MULTI_WRITER not supported."
        ),
    )
    objects = (
        NODE,
        storage_class("gp3", default=True),
        claim("cache", phase="Pending", klass="gp3", modes=("ReadWriteMany",)),
        said,
        using(),
    )
    assert causes(*objects) == ["KX207"]


def volume(called, *nodes):
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": called},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
    }


@pytest.mark.parametrize(
    "said",
    [
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had volume node affinity conflict.",
        (
            "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match "
            "PersistentVolume's node affinity."
        ),
    ],
)
def test_the_volume_is_where_the_cards_are_not(said):
    objects = NODE, node("cpu-1"), volume("pv-1", "cpu-1"), claim("cache", volume="pv-1"), using(said=said)
    found = first(*objects)
    assert causes(*objects) == ["KX205"]
    assert "lies on cpu-1, and pod team/qwen-0 would fit on gpu-1" in found.title


@pytest.mark.parametrize(
    ("message", "who"),
    [
        ('Multi-Attach error for volume "pvc-1b" Volume is already used by pod(s) fetch-x2k', "fetch-x2k"),
        (
            (
                'Multi-Attach error for volume "pvc-1b" Volume is already exclusively attached to one '
                "node and can't be attached to another"
            ),
            "fetch-x2k",
        ),
    ],
)
def test_the_pod_that_holds_the_volume_is_named(message, who):
    store, mount = mounted("cache")
    helper = running(
        pod("fetch-x2k", node="cpu-1", containers=[container("fetch", volumeMounts=[mount])], volumes=[store])
    )
    stuck = pod(
        "qwen-0", node="gpu-1", containers=[container(limits=GPU)], volumes=[store], status=waiting("ContainerCreating")
    )
    found = first(
        NODE, node("cpu-1"), claim("cache"), helper, stuck, event("Pod", "qwen-0", "FailedAttachVolume", message)
    )
    assert (found.id, f"held by {who} on cpu-1" in found.title) == ("KX206", True)
    assert f"kubectl -n team delete pod {who}" in found.fix[0]


def test_read_write_once_pod():
    store, _ = mounted("cache")
    user = running(pod("old-0", node="gpu-1", volumes=[store], containers=[container(image="busybox:1.37")]))
    said = (
        "0/1 nodes are available: 1 node has pod using PersistentVolumeClaim with the same name "
        "and ReadWriteOncePod access mode."
    )
    assert causes(NODE, claim("cache", modes=("ReadWriteOncePod",)), user, using(said=said)) == ["KX213"]


EVICTED = {
    "reason": "Evicted",
    "message": "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: "
    "5Gi. Container engine was using 98Gi, request is 0, has larger consumption of ephemeral-storage. ",
}


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            [{"name": "HF_HOME", "value": "/root/.cache/huggingface"}],
            "the cache variable HF_HOME points elsewhere (/root/.cache",
        ),
        ([], "the cache variable HF_HOME points elsewhere (it is not set)"),
        ([{"name": "HF_HOME", "value": "/data/hf"}], "without a request that is everything."),
    ],
)
def test_evicted_with_a_volume_beside_it(env, said):
    store, mount = mounted("cache")
    gone = pod(
        "qwen-0",
        node="gpu-1",
        phase="Failed",
        status=EVICTED,
        volumes=[store],
        containers=[container(limits=GPU, volumeMounts=[mount], env=env)],
    )
    found = first(NODE, claim("cache"), gone)
    assert (found.id, said in found.why) == ("KX210", True)
    assert ("put the cache onto the volume" in found.fix[0]) == ("points elsewhere" in said)


def test_no_space_left_inside():
    said = "OSError: [Errno 28] No space left on device: '/data/hub/tmp1'"
    stuck = pod(
        "qwen-0",
        node="gpu-1",
        phase="Running",
        containers=[container(limits=GPU)],
        status=waiting("CrashLoopBackOff", restarts=3, last=ended(1, said)),
    )
    assert causes(NODE, stuck) == ["KX216"]


def test_a_disk_buffer_counts_once_for_each_worker():
    """LMCache/LMCache#1399: 8 x 640 Gi is what is written, not 640 Gi."""
    env = [{"name": "LMCACHE_MAX_LOCAL_DISK_SIZE", "value": "640Gi"}]
    spec = container(limits={"nvidia.com/gpu": "8"}, args=["serve", "m", "--tensor-parallel-size", "8"], env=env)
    found = first(NODE, pod("qwen-0", node="gpu-1", phase="Failed", status=EVICTED, containers=[spec]))
    assert "LMCACHE_MAX_LOCAL_DISK_SIZE 640Gi x TP 8 = 5120Gi" in found.why


def test_what_failed_before_while_another_runs_is_a_warning():
    gone = pod("x-7d9c8b5f4-aaaaa", owner=("ReplicaSet", "x-7d9c8b5f4"), node="gpu-1", phase="Failed", status=EVICTED)
    now = running(
        pod("x-7d9c8b5f4-bbbbb", owner=("ReplicaSet", "x-7d9c8b5f4"), node="gpu-1", containers=[container(limits=GPU)])
    )
    found = area(NODE, replica_set("x-7d9c8b5f4", "x"), deployment("x"), gone, now).findings
    assert [(one.id, one.severity.value) for one in found] == [("KX210", "warning")]


def test_a_secret_that_cannot_be_mounted_is_a_missing_secret():
    stuck = pod("qwen-0", node="gpu-1", containers=[container(limits=GPU)], status=waiting("ContainerCreating"))
    said = 'MountVolume.SetUp failed for volume "key" : secret "api-key" not found'
    assert causes(NODE, stuck, event("Pod", "qwen-0", "FailedMount", said)) == ["KX314"]
    timed_out = (
        'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = '
        "DeadlineExceeded desc = context deadline exceeded"
    )
    assert causes(NODE, stuck, event("Pod", "qwen-0", "FailedMount", timed_out)) == ["KX209"]
