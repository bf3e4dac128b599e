"""Pods against nodes that were looked at, and names that no namespace has."""

import pytest

from selfhost.shapes.finding import Severity
from tests.visibility.test_visibility_manifests_cluster import POD, cluster, found, named

GI = 2**30


def node(name: str, **allocatable: str) -> dict[str, object]:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034", "disk": "ssd"}
    amounts = {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "4", **allocatable}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


TWO = (node("a"), node("b"))


def term(expression: str) -> str:
    return (
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        f"[{{matchExpressions: [{expression}]}}]}}}}}}"
    )


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S}", "nvidia.com/gpu.product=NVIDIA-L40S"),
        ("nodeSelector: {nvidia.com/gpu.clique: a.1}", "nvidia.com/gpu.clique=a.1"),
        (term("{key: nvidia.com/gpu.clique, operator: Exists}"), "nvidia.com/gpu.clique Exists"),
        (term('{key: nvidia.com/gpu.memory, operator: Gt, values: ["40000"]}'), "nvidia.com/gpu.memory Gt 40000"),
        (term("{key: disk, operator: NotIn, values: [ssd]}"), "disk NotIn ssd"),
    ],
)
def test_labels_that_no_node_has(spec: str, wanted: str) -> None:
    (finding,) = found(POD.replace("SPEC", spec), cluster(nodes=TWO), "KX074")
    assert wanted in finding.title
    assert finding.severity is Severity.ERROR
    assert finding.place.line == 5
    assert not found(POD.replace("SPEC", spec), cluster(), "KX074")


@pytest.mark.parametrize(
    "spec",
    [
        "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}",
        "nodeSelector: {nvidia.com/gpu.product: $PRODUCT}",
        "nodeName: a",
        term('{key: nvidia.com/gpu.memory, operator: Gt, values: ["15000"]}'),
        term('{key: nvidia.com/gpu.memory, operator: Lt, values: ["40000"]}'),
        term("{key: gone, operator: DoesNotExist}"),
        term("{key: disk, operator: In, values: [hdd, ssd]}"),
    ],
)
def test_labels_that_a_node_has(spec: str) -> None:
    assert not found(POD.replace("SPEC", spec), cluster(nodes=TWO), "KX074")


def test_one_of_two_terms_is_enough() -> None:
    one = "{matchExpressions: [{key: disk, operator: In, values: [hdd]}]}"
    other = "{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}"
    spec = term("x").replace("{matchExpressions: [x]}", f"{one}, {other}")
    assert not found(POD.replace("SPEC", spec), cluster(nodes=TWO), "KX074")


def test_nodes_without_a_label_were_not_read() -> None:
    bare = node("a")
    bare["metadata"] = {"name": "a"}
    assert not found(POD.replace("SPEC", "nodeSelector: {a: b}"), cluster(nodes=(bare,)), "KX074")


def test_nodes_that_come_when_they_are_wanted() -> None:
    grown = node("a")
    grown["metadata"] = {"name": "a", "labels": {"karpenter.sh/nodepool": "default"}}
    spec = "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S}"
    (finding,) = found(POD.replace("SPEC", spec), cluster(nodes=(grown,)), "KX074")
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("nvidia.com/gpu: 8", "asks for 8 nvidia.com/gpu; the most that one node has is 4"),
        ("amd.com/gpu: 1", "asks for 1 amd.com/gpu; no node advertises it"),
        ("nvidia.com/gpu: 1, memory: 256Gi", "asks for 256Gi memory; the most that one node has is 128Gi"),
        ("nvidia.com/gpu: 1, cpu: 33", "asks for 33 cpu; the most that one node has is 32"),
    ],
)
def test_more_than_any_node_has(limits: str, said: str) -> None:
    text = POD.replace("SPEC", "restartPolicy: Never").replace("nvidia.com/gpu: 1", limits)
    (finding,) = found(text, cluster(nodes=TWO), "KX075")
    assert said in finding.title
    assert finding.place.line == 11
    assert finding.severity is (Severity.ERROR if "gpu;" in finding.title else Severity.WARNING)
    assert not found(text, cluster(), "KX075")


def test_memory_counts_on_nodes_that_have_the_cards() -> None:
    text = POD.replace("SPEC", "restartPolicy: Never").replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 1, memory: 64Gi")
    bare = node("big", memory="512Gi")
    bare["status"] = {"allocatable": {"cpu": "64", "memory": "512Gi"}}
    small = node("small", memory="60Gi")
    (finding,) = found(text, cluster(nodes=(bare, small)), "KX075")
    assert "the most that one node has is 60Gi" in finding.title
    assert finding.evidence.startswith("small: ")


def test_cards_that_a_driver_of_claims_serves_by_the_old_name() -> None:
    text = POD.replace("SPEC", "restartPolicy: Never").replace("nvidia.com/gpu: 1", "amd.com/gpu: 1")
    bridge = named("DeviceClass", "gpu.amd.com", spec={"extendedResourceName": "amd.com/gpu"})
    assert not found(text, cluster(bridge, nodes=TWO), "KX075")


def test_a_name_that_no_namespace_has() -> None:
    text = POD.replace(", namespace: models", "").replace("SPEC", "restartPolicy: Never")
    assert found(text, cluster(named("Secret", "other", "models")), "KX459")
    assert not found(text, cluster(named("Secret", "hub", "elsewhere")), "KX459")


CLAIM = """apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c}
spec: {storageClassName: gp3, accessModes: [ReadWriteOnce], resources: {requests: {storage: 9Gi}}}
"""
CLASS = """---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: ebs.csi.aws.com
"""


def test_a_storage_class_that_the_cluster_lacks() -> None:
    here = cluster(named("StorageClass", "gp2"))
    (finding,) = found(CLAIM, here, "KX472")
    assert "gp3" in finding.title
    assert finding.fix[0].endswith("gp2")
    assert not found(CLAIM + CLASS, here, "KX472")
    assert not found(CLAIM, cluster(), "KX472")
    assert not found(CLAIM, cluster(named("StorageClass", "gp3")), "KX472")
    assert not found(CLAIM.replace("storageClassName: gp3, ", ""), here, "KX472")


def test_what_a_node_does_not_say() -> None:
    text = POD.replace("SPEC", "restartPolicy: Never").replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 1, memory: 64Gi")
    bare = node("a")
    bare["status"] = {"allocatable": {"nvidia.com/gpu": "4"}}
    assert not found(text, cluster(nodes=(bare,)), "KX075")
    bare["status"] = {}
    assert not found(text, cluster(nodes=(bare,)), "KX075")


def test_shares_that_another_scheduler_counts() -> None:
    text = POD.replace("SPEC", "schedulerName: hami-scheduler").replace(
        "nvidia.com/gpu: 1", "nvidia.com/gpu: 1, nvidia.com/gpumem: 40000"
    )
    assert not found(text, cluster(nodes=TWO), "KX075")
