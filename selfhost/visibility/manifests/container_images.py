"""What is known of an image: its users, its tools, the versions that cannot run as another user."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.images import engine_version, known, split
from selfhost.visibility.objects import Container, Manifests, Pod
from selfhost.visibility.rule import Found, manifest_rule

NO_ENTRY = "https://github.com/ai-dynamo/dynamo/issues/12457"
HOME = "https://github.com/vllm-project/vllm/issues/20127"
UNREADABLE = "https://github.com/vllm-project/vllm/issues/15302"
LATEST = "https://kubernetes.io/docs/concepts/containers/images/#imagepullpolicy-defaulting"
NO_RAY = "https://github.com/getainode/ainode/issues/84"
HOOKS = "https://github.com/kserve/kserve/blob/master/config/llmisvcconfig/config-llm-template.yaml"
_ROOT_VENV: Final = ((0, 8), (0, 9))
_WITHOUT_RAY: Final = (0, 27)
_USER_NAMES: Final = ("USER", "LOGNAME", "LNAME", "USERNAME")
"""Python's getpass looks into these before it asks for the user's entry."""
_CACHES: Final = ("HF_HOME", "XDG_CACHE_HOME", "VLLM_CACHE_ROOT")
_INSTALLED = re.compile(r"\binstall\b[^\n;&|]*\bray\b")
_RAY = re.compile(r"(?:^|[\s;&|(])ray\s+(?:start|status|job|stop)\b|multi-node-serving\.sh")
IMAGE_USER: Final = 2000
_LAST_UID: Final = 65535
"""What a Linux distribution gives out; OpenShift takes numbers far above."""


def uid_of(pod: Pod, container: Container) -> tuple[int, Tree] | None:
    for context in (container.tree.at("securityContext", "runAsUser"), pod.spec.at("securityContext", "runAsUser")):
        if context is not None and not context.is_null:
            scalar = context.scalar
            return (int(scalar), context) if isinstance(scalar, int) and not isinstance(scalar, bool) else None
    return None


def is_stock_vllm(image: str) -> bool:
    """The own image of vLLM for NVIDIA's cards, from whatever registry."""
    return re.search(r"(?:^|/)vllm/vllm-openai(?:-nonroot)?\Z", split(image)[0]) is not None


def _has_entry(image: str, uid: int) -> bool | None:
    """Whether the image knows the user; None where nobody said."""
    if is_stock_vllm(image):
        return uid in (0, IMAGE_USER)
    known_image = known(image)
    return False if known_image is not None and known_image.engine == "vllm" and uid > _LAST_UID else None


@manifest_rule("KX150", Severity.ERROR, source=NO_ENTRY)
def user_without_an_entry(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.containers:
        found = uid_of(pod, container)
        env = {**container.workload.env, **container.workload.env_sources}
        if found is None or _has_entry(container.wrapped.image, found[0]) is not False:
            continue
        if any(name in env for name in _USER_NAMES) or _opaque_env(container) or not container.engine:
            continue
        version = engine_version(container.wrapped.image)
        if version is not None and _ROOT_VENV[0] <= version < _ROOT_VENV[1]:
            continue  # KX152 says more
        yield Found(
            title=f"{container.wrapped.label} runs as a user that its image does not know",
            place=container.place(found[1]),
            evidence=f"uid {found[0]} has no passwd entry in this image"
            + (f" · image ships user vllm={IMAGE_USER}" if is_stock_vllm(container.wrapped.image) else ""),
            why="torch asks for the name of its user while it is imported: `KeyError: 'getpwuid(): uid not found: "
            f"{found[0]}'`, before any argument is read.",
            fix=(
                f"run as the image's own user:\nrunAsUser: {IMAGE_USER}",
                "or name the user, where the cluster gives the number:\nenv:\n  - name: USER\n    value: vllm",
            ),
        )


def _opaque_env(container: Container) -> bool:
    return any(text.startswith("--env") for text in container.wrapped.opaque)


@manifest_rule("KX151", Severity.WARNING, source=HOME)
def no_home_to_write_to(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.engines:
        found = uid_of(pod, container)
        env = {**container.workload.env, **container.workload.env_sources}
        if found is None or found[0] in (0, IMAGE_USER) or not is_stock_vllm(container.wrapped.image):
            continue
        if "HOME" in env or all(name in env for name in _CACHES) or _opaque_env(container):
            continue
        yield Found(
            title=f"{container.wrapped.label} has no home that it may write to",
            place=container.place(found[1]),
            evidence=f"runAsUser {found[0]} · HOME is not set, so it is /",
            why="A user without an entry has / as home: `PermissionError: [Errno 13] Permission denied: '/.cache'`.",
            fix=(("give it one on a volume:\nenv:\n  - name: HOME\n    value: /home/vllm\nvolumeMounts:\n"
                 "  - name: home\n    mountPath: /home/vllm"),),
        )  # fmt: skip


@manifest_rule("KX152", Severity.ERROR, source=UNREADABLE)
def image_only_for_root(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.containers:
        found, image = uid_of(pod, container), container.wrapped.image
        version = engine_version(image) if image and is_stock_vllm(image) else None
        other = (found is not None and found[0] != 0) or (found is None and _not_root(pod, container))
        if version is None or not other or not _ROOT_VENV[0] <= version < _ROOT_VENV[1]:
            continue
        yield Found(
            title=f"the image of {container.wrapped.label} runs for root only",
            place=container.place(found[1] if found else container.tree.at("image")),
            evidence=f"{image} · known bad image range for non-root: 0.8.x"
            + (f" · runAsUser {found[0]}" if found else " · runAsNonRoot"),
            why="Its Python lies below /root, which no other user may enter: `/opt/venv/bin/vllm: "
            "/opt/venv/bin/python3: Permission denied`.",
            fix=("take a version from 0.9 on, or run as root where the namespace allows it",),
        )


def _not_root(pod: Pod, container: Container) -> bool:
    own = container.tree.at("securityContext", "runAsNonRoot")
    return own.yes() if own is not None else pod.spec.yes("securityContext", "runAsNonRoot")


@manifest_rule("KX153", Severity.WARNING, source=LATEST)
def pulled_at_every_start(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.engines:
        image = container.tree.at("image")
        text = container.wrapped.image
        if image is None or not text or any(held in text for held in ("@", "$", "{{", "<")):
            continue
        tag, policy = split(text)[1], container.tree.at("imagePullPolicy")
        if tag not in ("", "latest", "nightly") or (policy is not None and policy.text != "Always"):
            continue
        yield Found(
            title=f"{container.wrapped.label} may be another version after every restart",
            place=container.place(image),
            evidence=f"image {text} · imagePullPolicy "
            f"{policy.text if policy is not None else 'not said, which is Always here'}",
            why="The registry is asked at each start, for an image of 10 GB and more. A pod that moves gets a new "
            "engine whose flags and memory differ, and two replicas may run two versions.",
            fix=("name a version, or a digest:\nimage: vllm/vllm-openai:v0.33.0\nimagePullPolicy: IfNotPresent",),
        )


@manifest_rule("KX154", Severity.ERROR, source=NO_RAY)
def ray_is_not_in_the_image(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.containers:
        image = container.wrapped.image
        words = " ".join(container.wrapped.argv)
        backend = container.flag("--distributed-executor-backend", "-deb") == "ray"
        if (
            not image
            or not is_stock_vllm(image)
            or not (_RAY.search(words) or backend or container.wrapped.argv[:1] == ("ray",))
        ):
            continue
        version = engine_version(image)
        if (version is not None and version < _WITHOUT_RAY) or _INSTALLED.search(words):
            continue
        script = _RAY.search(words)
        sure = version is not None and not (script and "multi-node-serving" in script[0])
        yield Found(
            title=f"{container.wrapped.label} needs Ray, which its image does not have",
            place=container.place(container.tree.at("command") or container.tree.at("args")),
            evidence=f"engine image lacks ray: {image}",
            why="vLLM's images ship without Ray (0.27.1 was seen to): `ray: command not found`, exit 127. Several "
            "nodes do not need it.",
            fix=(
                (
                    "let vLLM join the nodes itself, with --headless on all but the "
                    "first:\n--distributed-executor-backend=mp "
                    "--nnodes=$(LWS_GROUP_SIZE) --node-rank=$(LWS_WORKER_INDEX) --master-addr=$(LWS_LEADER_ADDRESS) "
                    "--master-port=29501"
                ),
            ),
            severity=None if sure else Severity.WARNING,
        )


@manifest_rule("KX155", Severity.WARNING, source=HOOKS)
def root_cannot_be_written(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.containers:
        value = container.tree.at("securityContext", "readOnlyRootFilesystem")
        image = known(container.wrapped.image) if container.wrapped.image else None
        nvidia = any(name.startswith("nvidia.com/") for name in container.cards)
        if value is None or not value.yes() or not nvidia or image is None or not image.engine:
            continue
        yield Found(
            title=f"the root of {container.wrapped.label} is read-only, where NVIDIA's hooks write",
            place=container.place(value),
            evidence="readOnlyRootFilesystem: true · an NVIDIA card",
            why="The hook that hands the driver's files in creates links and updates ld.so.cache inside the container. "
            "`restricted` does not ask for a read-only root.",
            fix=("leave it writable:\nreadOnlyRootFilesystem: false",),
        )


@manifest_rule(
    "KX156", Severity.WARNING, source="https://kubernetes.io/docs/tasks/configure-pod-container/security-context/"
)
def image_runs_as_root(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.containers:
        image = container.wrapped.image
        if uid_of(pod, container) is not None or not is_stock_vllm(image) or not _not_root(pod, container):
            continue
        if "nonroot" in image or any(name in container.workload.env for name in _USER_NAMES):
            continue
        yield Found(
            title=f"{container.wrapped.label} must not run as root, and its image does",
            place=container.place(container.tree.at("securityContext") or pod.spec.at("securityContext")),
            evidence=f"runAsNonRoot: true, no runAsUser · image {image} has no USER, so uid 0",
            why="The kubelet does not start it: `container has runAsNonRoot and image will run as root`. "
            "OpenShift puts a number of its own there, and a uid without a passwd entry in this image ends in "
            "`KeyError: 'getpwuid(): uid not found'`.",
            fix=(
                f"run as the image's own user:\nsecurityContext:\n  runAsNonRoot: true\n  runAsUser: {IMAGE_USER}",
                "or, where the cluster gives the number, name the user:\nenv:\n  - name: USER\n    value: vllm",
            ),
        )
