"""Volumes that are there and can't be mounted or written, and disks of nodes that are full."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.mend import describe, logs, patch_container
from selfhost.doctor.cluster.pod import Container, containers, engine, healthy
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import (
    Object,
    condition,
    counted,
    cut,
    holds,
    label,
    name,
    number,
    part,
    rows,
    text,
    words,
)
from selfhost.doctor.cluster.workers import per_worker
from selfhost.shapes.finding import RunOn
from selfhost.shapes.units import GIB, format_bytes

EVICTION: Final = "https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/"
CACHES: Final = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "XDG_CACHE_HOME", "HOME",
                 "VLLM_CACHE_ROOT", "MODELSCOPE_CACHE")  # fmt: skip
_READ_ONLY: Final = re.compile(r"\[Errno 30\] Read-only file system:? ?'?(?P<path>/[^'\s]*)?")
_FULL: Final = re.compile(r"\[Errno 28\]|No space left on device|no space left on device")


@cluster_rule("KX209", title="a volume cannot be mounted into the pod", source="https://kubernetes.io/docs/concepts/storage/volumes/",
              after=("KX206", "KX314"))  # fmt: skip
def not_mounted(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if healthy(pod) or any(one.running for one in containers(pod)):
        return
    event = next(
        (one for one in cluster.events(pod) if one.reason in ("FailedMount", "FailedAttachVolume", "FailedMapVolume")),
        None,
    )
    if (
        event is None
        or "Multi-Attach" in event.message
        or re.search(r'(?:secret|configmap) "[^"]+" not found', event.message)
    ):
        return
    yield Seen(
        title=f"{label(pod)} waits on {text(pod, 'spec', 'nodeName')} for a volume that cannot be mounted",
        evidence=f"{event.reason}: {cut(event.message, 300)}",
        why="Layer: kubelet. The pod is placed and starts no container before all its volumes are there.",
        fix=(describe(cluster, pod, "read what the driver says"),),
        run_on=RunOn.CLUSTER_ADMIN,
    )


@cluster_rule(
    "KX210",
    title="a pod was evicted for the disk it used",
    source="https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/issues/1581",
)
def evicted(cluster: Cluster, pod: Object) -> Iterator[Said]:
    said = text(pod, "status", "message") if text(pod, "status", "reason") == "Evicted" else ""
    said = said or next((one.message for one in cluster.events(pod) if one.reason == "Evicted"), "")
    if "ephemeral" not in said and "emptyDir" not in said and "local storage" not in said:
        return
    one = engine(pod)
    misplaced = _outside(pod)
    buffers, _ = per_worker(one, ("LMCACHE_MAX_LOCAL_DISK_SIZE",)) if one is not None else ("", 0)
    request = text(one.spec, "resources", "requests", "ephemeral-storage") if one is not None else ""
    fix = []
    if misplaced and one is not None:
        key, _, mount = misplaced
        where_to = f"{mount}/hf" if key == "HF_HOME" else mount
        fix.append(patch_container(cluster, pod, one.name, f"put the cache onto the volume at {mount}",
                                   {"env": [{"name": key, "value": where_to}]}))  # fmt: skip
    if one is not None and not request:
        fix.append(patch_container(cluster, pod, one.name, "ask for the disk that it needs, not to go first",
                                   {"resources": {"requests": {"ephemeral-storage": "8Gi"}}}))  # fmt: skip
    fix.append("or mount a volume where the engine writes its downloads and caches (HF_HOME, VLLM_CACHE_ROOT)")
    where = (
        f" The volume is mounted at {misplaced[2]}, but the cache variable {misplaced[0]} points "
        f"elsewhere{f' ({misplaced[1]})' if misplaced[1] else ' (it is not set)'}: what is downloaded fills the "
        "node's disk."
        if misplaced
        else ""
    )
    yield Seen(
        title=f"{label(pod)} was evicted for the disk it used"
        + (f": a volume is mounted at {misplaced[2]}, and the cache lies elsewhere" if misplaced else ""),
        evidence=cut(said, 400) + (f"; request: ephemeral-storage {request or 'none'}" if one is not None else ""),
        why="Layer: kubelet. What a container writes outside its volumes, and emptyDirs, is the node's own disk. The "
        f"pod that uses the most over its request goes first, and without a request that is everything.{where}"
        + (f" Each worker has its own: {buffers}, beside what the engine itself writes." if buffers else ""),
        fix=tuple(fix),
    )


def cache_volume(one: Container, pod: Object) -> str:
    """Where the claim is mounted that the hub's cache lies on; empty where no volume keeps it."""
    return _cache(one, pod)[1]


def _outside(pod: Object) -> tuple[str, str, str] | None:
    """The cache's variable, its value, and the mount of a claim that it does not lie on; None where all is well."""
    one = engine(pod)
    mounts = _claim_mounts(one, pod) if one is not None else []
    found = _cache(one, pod) if one is not None else None
    if not mounts or found is None or found[1]:
        return None
    return found[0], (one.env(found[0]) or "") if one is not None else "", mounts[0]


def _claim_mounts(one: Container, pod: Object) -> list[str]:
    claims = {
        text(volume, "name")
        for volume in rows(pod, "spec", "volumes")
        if part(volume, "persistentVolumeClaim") or part(volume, "ephemeral") or part(volume, "csi")
        or part(volume, "nfs") or part(volume, "hostPath")
    }  # fmt: skip
    mounts = rows(one.spec, "volumeMounts")
    return [text(mount, "mountPath").rstrip("/") for mount in mounts if text(mount, "name") in claims]


def _cache(one: Container, pod: Object) -> tuple[str, str]:
    """The variable that says where the cache is, and the mount below which that lies; empty for none."""
    mounts = _claim_mounts(one, pod)
    told = {key: value for key in CACHES if (value := one.env(key)) is not None}
    hub = next((key for key in CACHES[:5] if key in told), None)
    path = told[hub] if hub is not None else told.get("HOME", "/root") + "/.cache/huggingface"
    return hub or "HF_HOME", next((mount for mount in mounts if _below(path, [mount])), "")


def _below(path: str, mounts: list[str]) -> bool:
    return any(path == mount or path.startswith(f"{mount}/") for mount in mounts)


@cluster_rule("KX211", title="a node has no disk left", kinds=("Node",), source=EVICTION)
def disk_pressure(cluster: Cluster, node: Object) -> Iterator[Said]:
    failed = [
        one
        for one in cluster.events(node)
        if one.reason in ("FreeDiskSpaceFailed", "ImageGCFailed", "EvictionThresholdMet")
    ]
    if not holds(node, "DiskPressure") and not any(one.reason != "EvictionThresholdMet" for one in failed):
        return
    images = sorted(rows(node, "status", "images"), key=lambda one: number(one, "sizeBytes"), reverse=True)
    pods = [pod for pod in cluster.of("Pod") if text(pod, "spec", "nodeName") == name(node)]
    evicted = [pod for pod in pods if text(pod, "status", "reason") == "Evicted"]
    size = number(images[0], "sizeBytes") if images else 0
    called = next((one for one in words(images[0], "names") if "@" not in one), "an image") if images else ""
    biggest = f"; its largest image is {called}, {format_bytes(size)}" if size else ""
    gone = f"; {counted(len(evicted), 'pod')} evicted" if evicted else ""
    said = failed[0].message if failed else text(condition(node, "DiskPressure"), "message")
    yield Seen(
        title=f"node {name(node)} has no disk left for images and containers",
        evidence=f"{cut(said, 240)}{biggest}{gone}",
        why="Layer: kubelet. An image is unpacked beside what was pulled, so it needs about twice its size free: "
        "image bytes x2 > imagefs free. Until there is room, pods are evicted and none is taken"
        + (f"; this one wants {format_bytes(2 * size)}." if size > 5 * GIB else "."),
        fix=(
            "on the node, remove images that nothing uses:\nsudo crictl rmi --prune",
            "or give the file system of the images (imagefs) a larger disk: twice the largest image and its caches",
        ),
        run_on=RunOn.CLUSTER_ADMIN,
    )


@cluster_rule(
    "KX215",
    title="the cache lies on a read-only mount",
    source="https://github.com/llm-d-incubation/llm-d-modelservice/issues/243",
)
def read_only(_: Cluster, pod: Object) -> Iterator[Said]:
    for one in containers(pod):
        match = _READ_ONLY.search(one.last_words)
        if match is None:
            continue
        path = match["path"] or ""
        mounts = [mount for mount in rows(one.spec, "volumeMounts") if mount.get("readOnly")]
        own = [mount for mount in mounts if path.startswith(text(mount, "mountPath"))] or (mounts if not path else [])
        root = bool(part(one.spec, "securityContext").get("readOnlyRootFilesystem")) and not own
        where = text(own[0], "mountPath") if own else path or "its cache"
        yield Seen(
            title=f"{label(pod)} ends: {where} is {'below a read-only root' if root else 'mounted read-only'}, and "
            "the hub's cache layout is written to",
            evidence=cut(match[0]) + (f"; volumeMount {text(own[0], 'name')} readOnly: true" if own else ""),
            why="Layer: container. The hub's cache (models--…/refs, locks) is written even when nothing is "
            "downloaded: a read-only mount works for a plain folder of weights only.",
            fix=(
                f"take readOnly off the mount at {where}"
                if own
                else f"put a volume at {where.rsplit('/', 1)[0] or '/'}, or take readOnlyRootFilesystem away",
                "or point the engine at the plain folder inside (…/snapshots/REVISION) and set HF_HUB_OFFLINE=1",
            ),
        )
        return


@cluster_rule(
    "KX216", title="no space is left where a container writes", source=EVICTION, after=("KX104", "KX210", "KX211")
)
def full(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one in containers(pod):
        match = _FULL.search(one.last_words)
        if match is not None and one.waiting != "ErrImagePull":
            line = next(line for line in one.last_words.splitlines() if _FULL.search(line))
            yield Seen(
                title=f"{label(pod)}: container {one.name} ended because no space is left where it writes",
                evidence=cut(line),
                why="Layer: volume. The claim, the emptyDir (its sizeLimit) or the node's disk is full.",
                fix=(
                    logs(cluster, pod, one.name, "see which path it was"),
                    f"make the claim larger, if its class allows it:\n{cluster.in_(pod)} get pvc",
                ),
            )
            return
