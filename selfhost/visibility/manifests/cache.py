"""Caches of an engine: on the volume that is meant for them, writable, no larger than what holds them."""

from collections.abc import Iterator
from typing import Final

from selfhost.hosts.cluster_quantity import quantity
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.shapes.workload import Mount
from selfhost.visibility import cluster
from selfhost.visibility.engine_size import TENSOR, size, world_size
from selfhost.visibility.manifests.amounts import amount_of
from selfhost.visibility.manifests.models import (
    LASTING,
    gigabytes,
    hub_cache,
    is_hub_id,
    model_of,
    mount_over,
    offline,
    usual_cache,
)
from selfhost.visibility.manifests.rollout import access_modes
from selfhost.visibility.manifests.storage import volumes
from selfhost.visibility.objects import Container, Manifests, Pod
from selfhost.visibility.rule import Found, manifest_rule
from selfhost.visibility.rule import place as spot

ELSEWHERE = "https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/issues/1581"
READ_ONLY = "https://github.com/llm-d-incubation/llm-d-modelservice/issues/243"
AGAIN = "https://github.com/vllm-project/aibrix/issues/1054"
LMCACHE_DISK = "https://github.com/LMCache/LMCache/issues/1399"
LMCACHE_MEMORY = "https://github.com/LMCache/LMCache/issues/792"
_OTHER_CACHES: Final = (
    "VLLM_CACHE_ROOT",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "LMCACHE_LOCAL_DISK",
    "FLASHINFER_WORKSPACE_BASE",
)
BASELINE_BYTES: Final = 133 * 2**30
"""What an engine of eight cards wrote besides its cache, by the report."""


def _downloads(container: Container) -> bool:
    return is_hub_id(model_of(container)) and not offline(container)


@manifest_rule("KX254", Severity.WARNING, source=ELSEWHERE)
def cache_beside_the_volume(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.engines:
        where = hub_cache(container)
        if where is None or not _downloads(container):
            continue
        over = mount_over(container, where[0])
        if over is not None and over.kind in LASTING:
            continue
        idle = [mount for mount in container.wrapped.mounts if _is_idle(container, mount)]
        if not idle:
            continue
        mount = idle[0]
        said = f"{where[1]} puts it into {where[0]}" if where[1] else f"no variable says where, so {where[0]}"
        yield Found(
            title=f"{container.wrapped.label} downloads its model beside the volume that is mounted",
            place=spot(container.wrapped, f"env.{where[1]}" if where[1] in container.workload.env else mount.key),
            evidence=f"volume mounted at {mount.target}, but the cache variable points elsewhere: {said}",
            why="The download fills the node's disk, where the pod is evicted for it (`low on resource: "
            "ephemeral-storage`), is lost with the container, and the volume stays empty.",
            fix=(f"put the cache on the volume:\nenv:\n  - name: HF_HOME\n    value: {mount.target.rstrip('/')}",),
        )


def _is_idle(container: Container, mount: Mount) -> bool:
    """A lasting volume that is not another cache's own."""
    if (
        mount.kind not in LASTING
        or mount.read_only
        or mount.target.startswith(("/dev", "/etc", "/sys", "/var/run", "/usr"))
    ):
        return False
    taken = {container.workload.env.get(name, "").removeprefix("file://").rstrip("/") for name in _OTHER_CACHES}
    return mount.target.rstrip("/") not in taken


@manifest_rule("KX259", Severity.INFO, source=AGAIN)
def downloaded_at_every_start(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.engines:
        where = hub_cache(container)
        if where is None or not _downloads(container) or not container.whole:
            continue
        over = mount_over(container, where[0])
        lasting = [mount for mount in container.wrapped.mounts if mount.kind in LASTING]
        if (
            (over is not None and over.kind in LASTING)
            or lasting
            or pod.kind not in ("Deployment", "StatefulSet", "LeaderWorkerSet")
        ):
            continue
        yield Found(
            title=f"{container.wrapped.label} downloads its model anew at every restart",
            place=container.place(),
            evidence=f"{model_of(container)} → {where[0]}, which is on no lasting volume",
            why="What a container writes ends with it, and an emptyDir ends with its pod.",
            fix=("keep it on a PersistentVolumeClaim, and point HF_HOME into it",),
        )


@manifest_rule("KX255", Severity.ERROR, source=READ_ONLY)
def cache_is_read_only(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.engines:
        model, where = model_of(container), hub_cache(container)
        folders = [where[0]] if where and where[1] else []
        folders += [model] if "/models--" in model else []
        if where is None or not where[1]:
            folders += [usual] if (usual := usual_cache(container)) and is_hub_id(model) else []
        if offline(container):
            continue
        for folder in folders:
            mount = mount_over(container, folder)
            said = _read_only(manifests, pod, container, mount) if mount is not None else ""
            if mount is None or not said or mount.kind in ("configMap", "secret", "projected", "image"):
                continue
            yield Found(
                title=f"{container.wrapped.label} keeps its model cache on a read-only mount",
                place=spot(container.wrapped, mount.key),
                evidence=f"read-only mount with cache layout: {folder} in {mount.target} · {said}",
                why="The hub's library writes locks and references beside the files even when all of them are there: "
                "`OSError: [Errno 30] Read-only file system`.",
                fix=(
                    "mount it writable:\nreadOnly: false",
                    (
                        "or give a plain folder as the model and say that nothing is to be fetched:\n"
                        'env:\n  - name: HF_HUB_OFFLINE\n    value: "1"'
                    ),
                ),
            )
            break


def _read_only(manifests: Manifests, pod: Pod, container: Container, mount: Mount) -> str:
    """What says that the mount cannot be written to."""
    if mount.read_only:
        return "readOnly: true on the mount"
    listed = container.tree.at("volumeMounts")
    names = (
        [each.said("name") for each in listed.elements() if each.said("mountPath") == mount.target] if listed else []
    )
    volume = volumes(pod).get(names[0]) if names else None
    if volume is None:
        return ""
    for kind in ("persistentVolumeClaim", "nfs", "csi"):
        if volume.yes(kind, "readOnly"):
            return f"readOnly: true on the volume {names[0]}"
    claim = manifests.named("PersistentVolumeClaim", volume.said("persistentVolumeClaim", "claimName"), pod.namespace)
    return "its claim is ReadOnlyMany" if access_modes(claim) == {"ReadOnlyMany"} else ""


def _workers(container: Container) -> int:
    tensor = size(container.workload.argv, TENSOR) or 1
    return max(tensor, world_size(container.workload))


@manifest_rule("KX257", Severity.WARNING, source=LMCACHE_DISK)
def disk_cache_of_each_worker(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    for _, container in manifests.containers:
        text = container.workload.env.get("LMCACHE_MAX_LOCAL_DISK_SIZE", "")
        each, workers = gigabytes(text), _workers(container)
        if not each or workers < 2:
            continue
        total = each * 1e9 * workers
        room, by = _room(container, host)
        if room is not None and total + BASELINE_BYTES <= room * 0.9:
            continue
        yield Found(
            title=f"the disk cache of {container.wrapped.label} is {workers} times what its setting says",
            place=spot(container.wrapped, "env.LMCACHE_MAX_LOCAL_DISK_SIZE"),
            evidence=f"multiply by TP: {text} × {workers} workers = {total / 1e9:.0f} GB, and some 140 GB besides"
            + (f" · {by}: {room / 1e9:.0f} GB" if room is not None else ""),
            why="Each worker has a cache of this size of its own. What the node's disk cannot hold ends in an "
            "eviction: `The node was low on resource: ephemeral-storage`.",
            fix=(
                "let size × workers and 133Gi stay below nine tenths of the node's disk, or put the cache on a volume",
            ),
            severity=None if room is not None else Severity.INFO,
        )


def _room(container: Container, host: Host | None) -> tuple[float | None, str]:
    """What the cache may take, and by what; None where nothing says it."""
    folder = container.workload.env.get("LMCACHE_LOCAL_DISK", "").removeprefix("file://")
    mount = mount_over(container, folder) if folder.startswith("/") else None
    if mount is not None and mount.kind in LASTING:
        return float("inf"), mount.target  # a volume of its own, whose size only its class knows
    rooms: list[tuple[float, str]] = []
    if mount is not None and mount.size_bytes:
        rooms.append((float(mount.size_bytes), f"sizeLimit of {mount.target}"))
    limit = container.tree.at("resources", "limits", "ephemeral-storage")
    most = amount_of(limit) if limit is not None else None
    if most is not None:
        rooms.append((float(most), "ephemeral-storage limit"))
    for node in cluster.fitting(container.wrapped, host):
        here = quantity(cluster.allocatable(node).get("ephemeral-storage"))
        if here:
            rooms.append((float(here), "allocatable ephemeral-storage of the node"))
    return min(rooms) if rooms else (None, "")


@manifest_rule("KX258", Severity.ERROR, source=LMCACHE_MEMORY)
def host_buffers_over_the_limit(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.containers:
        limit = container.tree.at("resources", "limits", "memory")
        most = amount_of(limit) if limit is not None else None
        for key, text, shown in _buffers(container):
            each, workers = gigabytes(text), _workers(container)
            if not each or most is None or limit is None or each * 1e9 * workers <= most:
                continue
            yield Found(
                title=f"the buffers of {container.wrapped.label} are larger than its memory limit",
                place=spot(container.wrapped, key),
                evidence=f"{shown} {text} GB × TP {workers} = {each * workers:.0f} GB > memory limit {limit.text}",
                why="Each worker pins a buffer of this size at its start, and pinned memory counts against the "
                "container's limit: the process is killed at `Creating LMCacheEngine instance`.",
                fix=(
                    f"keep size × workers below the limit:\n{float(most) / 1e9 / workers * 0.5:.0f} GB for each worker",
                ),
            )


def _buffers(container: Container) -> Iterator[tuple[str, str, str]]:
    env = container.workload.env
    if "LMCACHE_MAX_LOCAL_CPU_SIZE" in env and env.get("LMCACHE_LOCAL_CPU", "true").lower() not in ("false", "0"):
        yield "env.LMCACHE_MAX_LOCAL_CPU_SIZE", env["LMCACHE_MAX_LOCAL_CPU_SIZE"], "LMCACHE_MAX_LOCAL_CPU_SIZE"
    swap = container.flag("--swap-space", "--cpu-offload-gb")
    if swap is not None:
        yield "argv", swap, "--swap-space or --cpu-offload-gb"
