"""Public reports of manifests that failed on a cluster: each as the file that it describes, and what must be said."""

import pytest

from selfhost.shapes.finding import Finding
from selfhost.visibility.files import NO_FILES, Files
from selfhost.visibility.project import Source, judge

HEAD = "apiVersion: apps/v1\nkind: {kind}\nmetadata:\n  name: llm\n  namespace: models\nspec:\n"
TEMPLATE = "  selector: {matchLabels: {app: llm}}\n  template:\n    metadata: {labels: {app: llm}}\n    spec:\n"
VLLM = "vllm/vllm-openai:v0.33.0"
NO_SURGE = "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}"
ONE_CARD = "resources: {limits: {nvidia.com/gpu: 1}}"


def beside(path: str) -> Files:
    del path
    return NO_FILES


def controller(
    *container: str,
    kind: str = "Deployment",
    top: tuple[str, ...] = ("replicas: 1", NO_SURGE),
    spec: tuple[str, ...] = (),
    image: str = VLLM,
    name: str = "engine",
) -> str:
    """A workload; each word of `container` is a line of its only container."""
    lines = [f"        - name: {name}", f"          image: {image}", *(f"          {line}" for line in container)]
    head = "".join(f"  {line}\n" for line in top)
    around = "".join(f"      {line}\n" for line in spec)
    return HEAD.format(kind=kind) + head + TEMPLATE + around + "      containers:\n" + "\n".join(lines) + "\n"


def args(*words: str) -> str:
    return "args: [" + ", ".join(f'"{word}"' for word in words) + "]"


def env(**values: str) -> str:
    return "env: [" + ", ".join(f'{{name: {name}, value: "{value}"}}' for name, value in values.items()) + "]"


def found(*texts: str, id_: str) -> Finding:
    sources = [Source(path=f"{number}.yaml", text=text) for number, text in enumerate(texts)]
    said = judge(sources, host=None, beside=beside).findings
    chosen = [finding for finding in said if finding.id == id_]
    assert chosen, [f"{finding.id} {finding.title}" for finding in said]
    return chosen[0]


SERVES = (args("Qwen/Qwen3-8B"), ONE_CARD)
CLAIM = """apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: cache, namespace: models}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 24Gi}}}
"""
ON_CLAIM = ("volumes: [{name: cache, persistentVolumeClaim: {claimName: cache}}]",)
SAID = {
    "K002": ("KX051", "the old pod holds 2 nvidia.com/gpu, the new one needs 2"),
    "K004": ("KX250", "RWO claim cache + surge"),
    "K006": ("KX350", "startup budget 150 s, expected load >= "),
    "K007": ("KX354", "404 is not slowness: the path does not exist"),
    "K008": ("KX352", "probe timeout 2 s on a batch engine"),
    "K012": ("KX651", "warnings only, not the cause of a failure"),
    "K013": ("KX150", "uid 1002700000 has no passwd entry in this image"),
    "K014": ("KX150", "image ships user vllm=2000"),
    "K015": ("KX152", "known bad image range for non-root"),
    "K017": ("KX458", "4 violations"),
    "K018": ("KX458", "3 violations"),
    "K019": ("KX255", "read-only mount with cache layout"),
    "K023": ("KX254", "but the cache variable points elsewhere"),
    "K024": ("KX257", "multiply by TP: 640Gi × 8 workers"),
    "K025": ("DV033c", "no card among its resources"),
    "K026": ("DV026", "management.* is operator-only"),
    "K029": ("KX551", "manifest written for <=1.30"),
    "K034": ("KX556", "remove nvidia.com/gpu"),
    "K037": ("KX056", "old → new: version: v1 → v2"),
    "K042": ("KX655", "label 'model' does not exist on the series"),
    "K044": ("KX064", "a pod of the group is still Pending or pulling"),
    "K045": ("KX154", "engine image lacks ray"),
    "K046": ("KX656", "is not in the leader's network"),
    "K048": ("KX654", "pool port not among containerPorts"),
    "K049": ("KX660", "everything fits in every replica affinity is useless"),
    "K053": ("KX258", "LMCACHE_MAX_LOCAL_CPU_SIZE 300 GB × TP 4 = 1200 GB > memory limit"),
}
SHM = "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]"
SHM_MOUNT = "volumeMounts: [{name: shm, mountPath: /dev/shm}]"
SPACE = """apiVersion: v1
kind: Namespace
metadata: {{name: models, labels: {{pod-security.kubernetes.io/enforce: {level}}}}}
"""
GROUP = """apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llm}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    restartPolicy: RecreateGroupOnPodRestart
    workerTemplate:
      spec:
        containers:
          - name: engine
            image: vllm/vllm-openai:v0.27.1
            command: [bash, -c, "ray start --address=$(LWS_LEADER_ADDRESS):6379 --block"]
            resources: {limits: {nvidia.com/gpu: 8}}
"""
SCALER = """apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llm}
spec:
  scaleTargetRef: {name: llm}
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        query: 'vllm:num_requests_waiting{model="m1"}'
        threshold: "5"
"""
POOL = """apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: llm, namespace: models}
spec:
  selector: {matchLabels: {app: llm}}
  targetPorts: [{number: 8000}]
"""
VLLM_8B = args("--model", "meta-llama/Llama-3.1-8B-Instruct")
FILES = {
    "K002": [
        controller(args("Qwen/Qwen3-32B", "-tp=2"), "resources: {limits: {nvidia.com/gpu: 2}}", top=("replicas: 1",))
    ],
    "K004": [CLAIM, controller("volumeMounts: [{name: cache, mountPath: /d}]", top=(), spec=ON_CLAIM, image="m:1")],
    "K006": [
        controller(
            VLLM_8B,
            ONE_CARD,
            "startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 5, failureThreshold: 30}",
        )
    ],
    "K007": [controller(*SERVES, "livenessProbe: {httpGet: {path: /healthz, port: 8000}}")],
    "K008": [
        controller(
            *SERVES, "livenessProbe: {httpGet: {path: /health, port: 8000}, timeoutSeconds: 2, failureThreshold: 1}"
        )
    ],
    "K012": [
        "apiVersion: v1\nkind: Service\nmetadata: {name: vllm-qwen, namespace: models}\nspec: {ports: [{port: 80}]}\n",
        controller(*SERVES),
    ],
    "K013": [controller(*SERVES, env(HOME="/home/x"), "securityContext: {runAsUser: 1002700000}", kind="StatefulSet")],
    "K014": [controller(*SERVES, spec=("securityContext: {runAsUser: 1000}",))],
    "K015": [controller(*SERVES, image="vllm/vllm-openai:v0.8.0", spec=("securityContext: {runAsUser: 1001}",))],
    "K017": [SPACE.format(level="restricted"), controller(*SERVES, "securityContext: {runAsNonRoot: false}")],
    "K018": [
        SPACE.format(level="baseline"),
        controller(
            args("mistralai/Mistral-7B-v0.3"),
            "resources: {limits: {amd.com/gpu: 1}}",
            "securityContext: {seccompProfile: {type: Unconfined}, capabilities: {add: [SYS_PTRACE]}}",
            image="vllm/vllm-openai-rocm:v0.33.0",
            spec=("hostNetwork: true", "hostIPC: true"),
        ),
    ],
    "K019": [
        controller(
            args("--model=/model-cache/models--org--name/snapshots/abc"),
            "resources: {limits: {gpu.intel.com/xe: 1}}",
            "volumeMounts: [{name: cache, mountPath: /model-cache, readOnly: true}]",
            image="vllm/vllm-openai-xpu:v0.33.0",
            spec=ON_CLAIM,
        )
    ],
    "K023": [
        controller(*SERVES, env(HF_HOME="/tmp/hf"), "volumeMounts: [{name: cache, mountPath: /data}]", spec=ON_CLAIM)
    ],
    "K024": [
        controller(
            args("Qwen/Qwen3-32B", "--tensor-parallel-size", "8"),
            "resources: {limits: {nvidia.com/gpu: 8}}",
            env(LMCACHE_MAX_LOCAL_DISK_SIZE="640Gi"),
            SHM_MOUNT,
            spec=(SHM,),
        )
    ],
    "K025": [controller(args("--model", "Qwen/Qwen3-8B"), top=("replicas: 2", NO_SURGE))],
    "K026": [controller(*SERVES, spec=("runtimeClassName: nvidia-cdi",))],
    "K029": [
        controller(
            args("Qwen/Qwen3-8B"),
            "resources: {claims: [{name: gpu}]}",
            spec=("resourceClaims: [{name: gpu, source: {resourceClaimName: one}}]",),
        )
    ],
    "K034": [controller(args("Qwen/Qwen3-8B"), 'resources: {limits: {nvidia.com/gpu: "0"}}')],
    "K037": [
        controller(*SERVES).replace("{app: llm}", "{app: llm, version: v1}"),
        controller(*SERVES).replace("{app: llm}", "{app: llm, version: v2}"),
    ],
    "K042": [SCALER],
    "K044": [GROUP],
    "K045": [GROUP],
    "K046": [
        controller(
            'command: [bash, -c, "MY_IP=$(hostname -i); ray start --node-ip-address=$MY_IP"]',
            "resources: {limits: {nvidia.com/gpu: 8}}",
            image="example/vllm-ray:1",
            spec=("hostNetwork: true",),
        )
    ],
    "K048": [POOL, controller(args("Qwen/Qwen3-8B", "--port", "8300"), ONE_CARD, "ports: [{containerPort: 8300}]")],
    "K049": [controller(args("--routing-logic", "prefixaware"), image="lmcache/lmstack-router:v1", name="router")],
    "K053": [
        controller(
            args("Qwen/Qwen3-32B", "--tensor-parallel-size=4"),
            "resources: {limits: {nvidia.com/gpu: 4, memory: 900Gi}}",
            env(LMCACHE_MAX_LOCAL_CPU_SIZE="300"),
            SHM_MOUNT,
            spec=(SHM,),
        )
    ],
}


@pytest.mark.parametrize("report", SAID)
def test_a_report_is_found_in_its_files_in_words_that_help(report: str) -> None:
    id_, words = SAID[report]
    finding = found(*FILES[report], id_=id_)
    text = " ".join((finding.title, finding.evidence, finding.why, *finding.fix))
    assert words in text
    assert finding.place.line
    assert finding.source.startswith("https://")


def test_the_four_fields_that_restricted_asks_for_are_named() -> None:
    said = found(*FILES["K017"], id_="KX458").evidence
    for field in ("allowPrivilegeEscalation != false", "capabilities.drop", "runAsNonRoot != true", "seccompProfile"):
        assert field in said


def test_the_three_violations_of_baseline_are_named_apart() -> None:
    said = found(*FILES["K018"], id_="KX458").evidence
    assert "host namespaces (hostNetwork=true, hostIPC=true)" in said
    assert "non-default capabilities (SYS_PTRACE)" in said
    assert "seccompProfile (type Unconfined)" in said


def test_the_expected_load_is_that_of_the_models_size() -> None:
    said = found(*FILES["K006"], id_="KX350")
    seconds = int(said.evidence.partition(">= ")[2].partition(" ")[0])
    assert 16e9 / 50e6 < seconds < 16e9 / 50e6 + 16e9 / 500e6 + 120
    assert "downloads again" in said.why


def test_objects_in_several_files_are_seen_together() -> None:
    assert found(CLAIM, FILES["K004"][1], id_="KX250").place.path == "1.yaml"
    alone = judge([Source(path="1.yaml", text=FILES["K004"][1])], host=None, beside=beside).findings
    assert "KX250" not in {finding.id for finding in alone}


def test_a_comment_takes_a_finding_over_objects_back() -> None:
    line = "    restartPolicy: RecreateGroupOnPodRestart"
    marked = GROUP.replace(line, f"{line}  # selfhost: ignore KX064 -- no node is slow here")
    said = judge([Source(path="0.yaml", text=marked)], host=None, beside=beside).findings
    assert {"KX064", "CF057", "CF058"}.isdisjoint(finding.id for finding in said)


def test_folders_of_a_folder_are_judged_apart() -> None:
    """Overlays and examples repeat each other's names."""
    texts = {"base/claim.yaml": CLAIM, "base/llm.yaml": FILES["K004"][1], "other/llm.yaml": FILES["K004"][1]}
    sources = [Source(path=path, text=text, named=False) for path, text in texts.items()]
    said = [one for one in judge(sources, host=None, beside=beside).findings if one.id == "KX250"]
    assert [one.place.path for one in said] == ["base/llm.yaml"]
