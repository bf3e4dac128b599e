"""Manifests against the objects of a cluster that was looked at."""

from dataclasses import replace

from selfhost.shapes.finding import Finding
from selfhost.shapes.host import Host
from selfhost.shapes.surroundings import Surroundings
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.lint import lint_all, lint_objects
from selfhost.visibility.objects import Manifests
from selfhost.visibility.sources import objects_in, read_source
from tests.fakes.machines import HOSTS

Object = dict[str, object]


def cluster(*objects: Object, nodes: tuple[Object, ...] = ()) -> Host:
    some = next(iter(HOSTS.values()))
    around = replace(some.surroundings or Surroundings(), nodes=nodes, objects=objects)
    return replace(some, accelerators=(), surroundings=around)


def named(kind: str, name: str, namespace: str = "", **rest: object) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"kind": kind, "metadata": metadata, **rest}


def found(text: str, host: Host, id_: str) -> list[Finding]:
    workloads = read_source(text, path="x.yaml", files=NO_FILES)
    objects = Manifests.of(objects_in(text, path="x.yaml", files=NO_FILES))
    return [finding for finding in (*lint_all(workloads, host), *lint_objects(objects, host)) if finding.id == id_]


POD = """apiVersion: v1
kind: Pod
metadata: {name: p, namespace: models}
spec:
  SPEC
  containers:
    - name: engine
      image: vllm/vllm-openai:v0.33.0
      args: ["--model", "Qwen/Qwen3-4B"]
      env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: t}}}]
      resources: {limits: {nvidia.com/gpu: 1}}
"""


def test_a_runtime_class_that_the_cluster_lacks() -> None:
    text = POD.replace("SPEC", "runtimeClassName: nvidia")
    assert found(text, cluster(named("RuntimeClass", "kata", handler="kata")), "DV031")
    assert not found(text, cluster(named("RuntimeClass", "nvidia", handler="nvidia")), "DV031")


def test_a_priority_class_that_the_cluster_lacks() -> None:
    text = POD.replace("SPEC", "priorityClassName: gpu-high")
    here = cluster(named("PriorityClass", "system-node-critical"), named("PriorityClass", "gpu-hi"))
    (finding,) = found(text, here, "KX459")
    assert "did you mean gpu-hi" in finding.title
    assert finding.place.line == 5
    assert not found(text, cluster(named("PriorityClass", "gpu-high")), "KX459")
    assert not found(text, cluster(), "KX459")


def test_a_secret_that_its_namespace_lacks() -> None:
    text = POD.replace("SPEC", "restartPolicy: Never")
    assert found(text, cluster(named("Secret", "other", "models")), "KX459")
    assert not found(text, cluster(named("Secret", "hub", "models")), "KX459")
    assert not found(text, cluster(named("Secret", "other", "elsewhere")), "KX459")


def test_pod_security_of_the_clusters_namespace() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    space: Object = {"kind": "Namespace", "metadata": {"name": "models", "labels": labels}}
    (finding,) = found(POD.replace("SPEC", "restartPolicy: Never"), cluster(space), "KX458")
    for field in ("allowPrivilegeEscalation", "capabilities.drop", "runAsNonRoot", "seccompProfile"):
        assert field in finding.evidence
    assert finding.evidence.startswith("4 violations")


DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: models}
spec:
  replicas: 1
  selector: {matchLabels: {app: llm, version: v2}}
  template:
    metadata: {labels: {app: llm, version: v2}}
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.33.0
          args: ["--model", "Qwen/Qwen3-32B", "--tensor-parallel-size=2"]
          resources: {limits: {nvidia.com/gpu: 2}}
          volumeMounts: [{name: shm, mountPath: /dev/shm}]
      volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}]
"""


def test_a_selector_that_differs_from_the_live_one() -> None:
    old = {"selector": {"matchLabels": {"app": "llm", "version": "v1"}}}
    (finding,) = found(DEPLOYMENT, cluster(named("Deployment", "llm", "models", spec=old)), "KX056")
    assert finding.evidence == "old → new: version: v1 → v2"
    same = {"selector": {"matchLabels": {"app": "llm", "version": "v2"}}}
    assert not found(DEPLOYMENT, cluster(named("Deployment", "llm", "models", spec=same)), "KX056")


def node(cards: str) -> Object:
    return {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {}},
        "status": {"allocatable": {"nvidia.com/gpu": cards}},
    }


def test_an_update_on_the_only_cards_of_the_cluster_is_an_error() -> None:
    (finding,) = found(DEPLOYMENT, cluster(nodes=(node("2"),)), "KX051")
    assert finding.severity.value == "error"
    assert "the old pod holds 2/2 nvidia.com/gpu, the new one needs 2" in finding.evidence
    assert not found(DEPLOYMENT, cluster(nodes=(node("2"), node("2"))), "KX051")
