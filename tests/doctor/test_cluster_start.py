"""Images that do not come and containers that end: texts of containerd, the kubelet and the engines."""

import pytest

from tests.doctor.cluster_objects import (
    container,
    deployment,
    ended,
    event,
    node,
    pod,
    replica_set,
    running,
    waiting,
)
from tests.doctor.cluster_verdict import area, causes, first

GPU = {"nvidia.com/gpu": "1"}
IMAGE = "docker.io/vllm/vllm-openai:v0.27.1"
POD = "x-7d9c8b5f4-abcde"
AROUND = node("gpu-1", cards=GPU), deployment("x"), replica_set("x-7d9c8b5f4", "x")
PULL = f'failed to pull and unpack image "{IMAGE}": failed to resolve reference "{IMAGE}": '


def one(status, *, phase="Pending", spec=None, **more):
    return pod(
        POD,
        owner=("ReplicaSet", "x-7d9c8b5f4"),
        containers=[spec or container(limits=GPU)],
        node="gpu-1",
        phase=phase,
        status=status,
        **more,
    )


def crashing(said, code=1, **more):
    return one(
        waiting(
            "CrashLoopBackOff",
            f"back-off 5m0s restarting failed container=engine pod={POD}",
            restarts=5,
            last=ended(code, said),
        ),
        phase="Running",
        **more,
    )


def of_pod(reason, message, **more):
    return event("Pod", POD, reason, message, **more)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (f"{PULL}{IMAGE}: not found", "KX101"),
        ("manifest for vllm/vllm-openai:v99 not found: manifest unknown: manifest unknown", "KX101"),
        (f"{PULL}unexpected status from HEAD request to https://ghcr.io/v2/x/manifests/1: 401 Unauthorized", "KX102"),
        (
            (
                f"{PULL}pull access denied, repository does not exist or may require authorization: "
                "server message: insufficient_scope"
            ),
            "KX102",
        ),
        (
            f"{PULL}unexpected status from HEAD request to https://registry-1.docker.io/v2/x: 429 Too Many Requests",
            "KX103",
        ),
        (
            (
                "toomanyrequests: You have reached your unauthenticated pull rate limit. "
                "https://www.docker.com/increase-rate-limit"
            ),
            "KX103",
        ),
        (
            "failed to extract layer sha256:4015e4: write /var/lib/containerd/x: no space left on device: unknown",
            "KX104",
        ),
        (
            (
                f'{PULL}failed to do request: Head "https://reg.lan/v2/": dial tcp: lookup reg.lan on '
                "10.0.0.1:53: no such host"
            ),
            "KX105",
        ),
        (
            (
                f'{PULL}failed to do request: Head "https://reg.lan/v2/": tls: failed to verify '
                "certificate: x509: certificate signed by unknown authority"
            ),
            "KX105",
        ),
        (f"{PULL}no match for platform in manifest: not found", "KX106"),
        ("something of a new kind", "KX111"),
        ("Container image is not present with pull policy of Never", "KX109"),
        ("couldn't parse image name: invalid reference format: repository name must be lowercase", "KX108"),
    ],
)
def test_a_pull_that_fails(said, expected):
    assert causes(*AROUND, one(waiting("ErrImagePull", f"rpc error: code = Unknown desc = {said}"))) == [expected]


def test_a_back_off_is_explained_by_its_event_or_not_at_all():
    waits = one(waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"'))
    said = of_pod("Failed", f'Failed to pull image "{IMAGE}": rpc error: code = NotFound desc = {IMAGE}: not found')
    assert causes(*AROUND, waits, said) == ["KX101"]
    found = first(*AROUND, waits)
    assert (found.id, "events are kept for an hour" in found.why) == ("KX111", True)


def test_a_missing_pull_secret_is_the_cause_of_a_refusal():
    waits = one(waiting("ImagePullBackOff", f"{PULL}401 Unauthorized"), imagePullSecrets=[{"name": "regcred"}])
    said = of_pod(
        "FailedToRetrieveImagePullSecret",
        "Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not succeed.",
    )
    assert causes(*AROUND, waits, said) == ["KX112"]


def test_pulling_is_normal():
    found = area(
        *AROUND, one(waiting("ContainerCreating")), of_pod("Pulling", f'Pulling image "{IMAGE}"', type="Normal")
    )
    assert [(each.id, each.severity.value) for each in found.findings] == [("KX107", "info")]


@pytest.mark.parametrize(
    ("said", "code", "expected"),
    [
        (
            (
                "ValueError: VLLM_PORT 'tcp://10.43.1.2:8000' appears to be a URI. This may be caused by "
                "a Kubernetes service"
            ),
            1,
            "KX306",
        ),
        ("KeyError: 'getpwuid(): uid not found: 1002700000'", 1, "KX307"),
        ("PermissionError: [Errno 13] Permission denied: '/.cache'", 1, "KX308"),
        ("OSError: [Errno 30] Read-only file system: '/model-cache/models--x/refs'", 1, "KX215"),
        ("No platform detected, vLLM is running on UnspecifiedPlatform", 1, "KX309"),
        ("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", 1, "KX309"),
        ("bash: line 1: ray: command not found", 127, "KX310"),
        ("/opt/venv/bin/vllm: /opt/venv/bin/python3: Permission denied", 126, "KX320"),
        ("exec /usr/local/bin/vllm: exec format error", 1, "KX106"),
        ("FooError: of a new kind", 1, "KX313"),
        ("", 1, "KX313"),
    ],
)
def test_last_words(said, code, expected):
    assert causes(*AROUND, crashing(said, code)) == [expected]


def test_last_words_of_the_engine_are_explained_by_their_own_table():
    said = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.5 GiB"
    )
    assert first(*AROUND, crashing(said)).id.startswith("EF")


def test_nothing_said_asks_for_the_log():
    assert (
        f"kubectl -n team logs {POD} -c engine --previous | selfhost explain -" in first(*AROUND, crashing("")).fix[0]
    )


def test_no_card_inside_names_the_class_that_is_there():
    nvidia = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
    }
    found = first(*AROUND, nvidia, crashing("RuntimeError: Failed to infer device type"))
    assert '"runtimeClassName":"nvidia"' in found.fix[0]


def test_a_container_without_a_card_asked_for_none():
    found = first(
        *AROUND, crashing("RuntimeError: Failed to infer device type", spec=container(limits={"memory": "8Gi"}))
    )
    assert "asks for no card" in found.title


def test_ended_for_memory():
    spec = container(limits={**GPU, "memory": "64Gi"}, volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}])
    stuck = one(
        waiting("CrashLoopBackOff", restarts=3, last=ended(137, reason="OOMKilled")),
        phase="Running",
        spec=spec,
        volumes=[{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "20Gi"}}],
    )
    found = first(*AROUND, stuck)
    assert (found.id, "at its limit of 64Gi" in found.title, "shm 20Gi" in found.evidence) == ("KX311", True, True)
    assert causes(*AROUND, stuck) == ["KX311"]


def test_137_without_a_word_of_memory():
    assert causes(*AROUND, crashing("", 137)) == ["KX312"]


STARTUP = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 5, "failureThreshold": 30}
LIVENESS = {"httpGet": {"path": "/health", "port": 8000}, "initialDelaySeconds": 60, "periodSeconds": 10}
REFUSED = 'Get "http://10.1.0.5:8000/health": dial tcp 10.1.0.5:8000: connect: connection refused'
LATE = 'Get "http://10.1.0.5:8000/health": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'


def restarting(restarts, said="", code=137, **probes):
    state = {"running": {"startedAt": "2026-12-02T09:55:00Z"}}
    status = {
        "name": "engine",
        "image": IMAGE,
        "ready": False,
        "started": False,
        "restartCount": restarts,
        "state": state,
        "lastState": {"terminated": ended(code, said)} if restarts else {},
    }
    return one(
        {"containerStatuses": [status]},
        phase="Running",
        spec=container(limits=GPU, args=["serve", "Qwen/Qwen3-8B"], **probes),
    )


def failing(kind, said, *, killed=True):
    failed = of_pod("Unhealthy", f"{kind} probe failed: {said}", container="engine")
    if not killed:
        return (failed,)
    return failed, of_pod(
        "Killing", f"Container engine failed {kind.lower()} probe, will be restarted", container="engine", type="Normal"
    )


def test_a_startup_budget_is_compared_with_the_load():
    objects = *AROUND, restarting(5, startupProbe=STARTUP), *failing("Startup", REFUSED)
    found = first(*objects)
    # 8e9 parameters of 2 bytes: 320 s at 50 MB/s, 32 s at 500 MB/s, 180 s of compiling
    assert (found.id, "startup budget 150 s, expected load >= 532 s" in found.title) == ("KX301", True)
    assert causes(*objects) == ["KX301"]


def test_liveness_without_startup_counts_from_the_start():
    objects = (
        *AROUND,
        restarting(5, "KeyboardInterrupt: terminated", 1, livenessProbe=LIVENESS),
        *failing("Liveness", REFUSED),
    )
    found = first(*objects)
    assert (found.id, "ends it after 90 s, while it loads" in found.title) == ("KX302", True)
    assert causes(*objects) == ["KX302"]


def test_404_is_not_slowness():
    objects = (
        *AROUND,
        restarting(6, livenessProbe=LIVENESS),
        *failing("Liveness", "HTTP probe failed with statuscode: 404"),
    )
    assert causes(*objects) == ["KX303"]


def test_a_key_closes_v1():
    probe = {"httpGet": {"path": "/v1/models", "port": 8000}}
    objects = (
        *AROUND,
        restarting(0, readinessProbe=probe),
        *failing("Readiness", "HTTP probe failed with statuscode: 401", killed=False),
    )
    assert causes(*objects) == ["KX305"]


@pytest.mark.parametrize(("timeout", "expected"), [(1, ["KX304"]), (2, ["KX304"]), (10, [])])
def test_a_busy_engine_needs_patience(timeout, expected):
    objects = (
        *AROUND,
        restarting(8, "", 0, startupProbe=STARTUP, livenessProbe={**LIVENESS, "timeoutSeconds": timeout}),
        *failing("Liveness", LATE),
    )
    assert causes(*objects) == expected


def test_a_first_start_is_normal_while_its_budget_lasts():
    found = area(*AROUND, restarting(0, startupProbe=STARTUP), *failing("Startup", REFUSED, killed=False)).findings
    assert [(each.id, each.severity.value) for each in found] == [("KX025", "info")]


@pytest.mark.parametrize(
    ("said", "expected", "words"),
    [
        (
            'secret "hf-token" not found',
            "KX314",
            "kubectl -n team create secret generic hf-token --from-literal=HF_TOKEN=VALUE",
        ),
        ("couldn't find key HF_TOKEN in Secret team/hf-token", "KX314", "kubectl -n team describe secret hf-token"),
        ('configmap "ca" not found', "KX314", "create configmap ca"),
        (
            f"container has runAsNonRoot and image will run as root (pod: {POD}, container: engine)",
            "KX315",
            '"runAsUser":2000',
        ),
        (
            "container has runAsNonRoot and image has non-numeric user (vllm), cannot verify user is non-root",
            "KX315",
            "runAsUser",
        ),
    ],
)
def test_a_container_that_cannot_be_made(said, expected, words):
    secret = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "HF_TOKEN"}}}
    found = first(*AROUND, one(waiting("CreateContainerConfigError", said), spec=container(limits=GPU, env=[secret])))
    assert (found.id, words in "\n".join(found.fix)) == (expected, True)


def test_a_command_that_is_not_in_the_image():
    said = (
        'failed to create containerd task: OCI runtime create failed: exec: "sglang": executable '
        "file not found in $PATH: unknown"
    )
    assert causes(*AROUND, one(waiting("RunContainerError", said))) == ["KX316"]


def test_an_engine_without_a_card_of_its_own():
    """A chart that rounds half a card down to 0 renders none (vllm-project/production-stack#1047)."""
    assert causes(*AROUND, running(one({}, spec=container()))) == ["KX516"]
    assert (
        causes(*AROUND, running(one({}, spec=container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]))))
        == []
    )
    assert causes(node("gpu-1"), *AROUND[1:], running(one({}, spec=container()))) == []
    for image in (
        "nvcr.io/nvidia/k8s-device-plugin:v0.19.0",
        "lmcache/lmstack-router:v0.1.12",
        "vllm/vllm-router:v0.1.17",
    ):
        assert causes(*AROUND, running(one({}, spec=container(image=image)))) == []


def test_a_pod_without_a_network():
    said = (
        'Failed to create pod sandbox: rpc error: plugin type="flannel" failed (add): failed to '
        'setup network for sandbox "9f": no IP addresses available'
    )
    assert causes(*AROUND, one(waiting("ContainerCreating")), of_pod("FailedCreatePodSandBox", said)) == ["KX604"]


def test_evicted_for_memory():
    gone = {
        "reason": "Evicted",
        "message": "The node was low on resource: memory. Threshold quantity: 100Mi, available: 40Mi. ",
    }
    assert causes(*AROUND, one(gone, phase="Failed")) == ["KX321"]


def test_a_running_pod_has_nothing_to_say():
    assert area(*AROUND, running(one({}))).findings == ()
