"""Volumes: mounted and declared, one for several pods, room in memory and on the node's disk."""

from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.amounts import amount_of
from selfhost.visibility.manifests.rollout import access_modes, replicas_of
from selfhost.visibility.objects import Manifests, Pod, label, place
from selfhost.visibility.rule import Found, manifest_rule

VOLUMES = "https://kubernetes.io/docs/concepts/storage/volumes/"
MODES = "https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes"
SHARED = "https://github.com/nekomeowww/ollama-operator/issues/5"
MEMORY = "https://kubernetes.io/docs/concepts/storage/volumes/#emptydir"
DISK = "https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/issues/1581"
CLAIMS = "https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/persistent-volume-claim-v1/"
WHOLE_PODS: Final = (
    "Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "PodTemplate", "LeaderWorkerSet",
)  # fmt: skip
"""Other controllers add volumes of their own."""


def volumes(pod: Pod) -> dict[str, Tree]:
    listed = pod.spec.at("volumes")
    return {volume.said("name"): volume for volume in listed.elements()} if listed is not None else {}


def claim_templates(pod: Pod) -> set[str]:
    """Names of volumes that the controller makes for each pod."""
    found = set()
    for path in (("spec", "volumeClaimTemplates"), ("spec", "leaderWorkerTemplate", "volumeClaimTemplates")):
        listed = pod.holder.at(*path)
        found |= {one.said("metadata", "name") for one in listed.elements()} if listed is not None else set()
    return found


def mounts(pod: Pod) -> Iterator[tuple[Tree, str]]:
    """(element, name of its volume) of every mount, block devices too."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        listed = pod.spec.at(key)
        for container in listed.elements() if listed is not None else ():
            for kind in ("volumeMounts", "volumeDevices"):
                found = container.at(kind)
                for element in found.elements() if found is not None else ():
                    yield element, element.said("name")
    model = pod.spec.at("model", "volumeMounts")
    for element in model.elements() if model is not None else ():
        yield element, element.said("name")


@manifest_rule("KX252", Severity.ERROR, source=VOLUMES)
def mount_without_volume(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        if not pod.whole or pod.kind not in WHOLE_PODS:
            continue
        declared = {*volumes(pod), *claim_templates(pod)}
        for element, name in mounts(pod):
            if name and name not in declared and "$" not in name and "{{" not in name:
                yield Found(
                    title=f"{label(pod.holder)} mounts a volume {name} that it does not have",
                    place=pod.place(element),
                    evidence=f"mountPath {element.said('mountPath') or element.said('devicePath')} · volumes: "
                    f"{', '.join(sorted(declared)) or 'none'}",
                    why=f'The API server refuses the pod: `volumeMounts[…].name: Not found: "{name}"`.',
                    fix=(f"declare it in the pod's spec:\nvolumes:\n  - name: {name}\n    {_volume(element)}",),
                )


def _volume(element: Tree) -> str:
    if element.said("mountPath").rstrip("/") == "/dev/shm":  # noqa: S108 - the place, not a file of ours
        return "emptyDir:\n      medium: Memory\n      sizeLimit: 2Gi"
    return "emptyDir: {}"


@manifest_rule("KX253", Severity.INFO, source=VOLUMES)
def volume_without_mount(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        if not pod.whole or pod.kind not in WHOLE_PODS:
            continue
        used = {name for _, name in mounts(pod)}
        for name, volume in volumes(pod).items():
            if name and name not in used:
                yield Found(
                    title=f"no container of {label(pod.holder)} mounts its volume {name}",
                    place=pod.place(volume),
                    evidence=f"volume {name}; mounted: {', '.join(sorted(used)) or 'none'}",
                    why="The pod waits for the volume all the same, and what should lie there lies in the container.",
                    fix=("mount it, or remove it",),
                )


@manifest_rule("KX251", Severity.WARNING, source=MODES)
def one_volume_for_many(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    """`ReadWriteOnce` is for one node, so on one node it works, and then one node joins."""
    del host
    users: dict[int, list[tuple[Pod, Tree]]] = {}
    for pod in manifests.pods:
        for volume in volumes(pod).values():
            named = volume.at("persistentVolumeClaim", "claimName")
            claim = manifests.named("PersistentVolumeClaim", named.text, pod.namespace) if named is not None else None
            modes = access_modes(claim)
            if claim is None or named is None or not modes or modes - {"ReadWriteOnce", "ReadWriteOncePod"}:
                continue
            users.setdefault(id(claim), []).append((pod, named))
            replicas = replicas_of(pod.holder) if pod.kind not in ("Pod", "Job", "CronJob") else 1
            alone = "ReadWriteOncePod" in modes
            if pod.kind != "DaemonSet" and (replicas is None or replicas < 2):
                continue
            yield Found(
                title=f"{replicas or 'all'} pods of {label(pod.holder)} share a volume that is for one "
                + ("pod" if alone else "node"),
                place=pod.place(named),
                evidence=f"claim {named.text}: {', '.join(sorted(modes))} · "
                + ("one pod a node" if pod.kind == "DaemonSet" else f"replicas {replicas}"),
                why="Only one pod gets the volume, the others stay Pending."
                if alone
                else "On a second node the pod hangs in ContainerCreating: `Multi-Attach error for volume … Volume is "
                "already used by pod(s)`. On a single node it works, which hides it.",
                fix=(
                    (
                        "take a class that offers ReadWriteMany, or one volume a replica (a StatefulSet's "
                        "volumeClaimTemplates), or an emptyDir with an ephemeral-storage request"
                    ),
                ),
                severity=Severity.ERROR if alone else None,
            )
    for shared in users.values():
        holders = {id(pod.holder): pod for pod, _ in shared}
        lasting = [pod for pod in holders.values() if pod.kind not in ("Job", "CronJob", "Pod")]
        if len(lasting) > 1:
            pod, named = shared[-1]
            yield Found(
                title=f"{' and '.join(label(one.holder) for one in lasting)} share a volume that is for one node",
                place=pod.place(named),
                evidence=f"claim {named.text}: ReadWriteOnce",
                why="When they land on two nodes the second hangs in ContainerCreating: `Multi-Attach error`.",
                fix=("give each its own claim, or take a class that offers ReadWriteMany",),
            )


@manifest_rule("KX260", Severity.WARNING, source=MEMORY)
def memory_volume_fills_the_limit(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.containers:
        limit = container.tree.at("resources", "limits", "memory")
        most = amount_of(limit) if limit is not None else None
        found = container.tree.at("volumeMounts")
        for element in found.elements() if found is not None else ():
            volume = volumes(pod).get(element.said("name"))
            size = volume.at("emptyDir", "sizeLimit") if volume is not None else None
            if volume is None or size is None or volume.said("emptyDir", "medium") != "Memory" or limit is None:
                continue
            room = amount_of(size)
            if room is not None and most is not None and room >= most:
                yield Found(
                    title=f"the memory volume {element.said('name')} of {container.wrapped.label} may take all of "
                    "its memory",
                    place=pod.place(size),
                    evidence=f"sizeLimit {size.text} · memory limit {limit.text}",
                    why="What lies in an emptyDir of medium Memory counts against the container's own limit: it is "
                    "OOMKilled before the volume is full.",
                    fix=("lower sizeLimit, or raise the memory limit by as much",),
                )


@manifest_rule("KX256", Severity.INFO, source=DISK)
def disk_not_asked_for(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.engines:
        resources = container.tree.at("resources")
        said = [resources.at(kind, "ephemeral-storage") for kind in ("requests", "limits")] if resources else []
        if not any(said) and container.whole:
            yield Found(
                title=f"{container.wrapped.label} asks for no disk of its node",
                place=container.place(resources),
                evidence="no ephemeral-storage among its requests",
                why="Logs, /tmp and caches lie on the node's disk. When that runs low, a pod whose request is 0 is "
                "evicted first: `Container … using …, request is 0`.",
                fix=("request what it writes:\nresources:\n  requests:\n    ephemeral-storage: 4Gi",),
            )


@manifest_rule("KX263", Severity.ERROR, source=CLAIMS)
def claim_is_incomplete(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for claim in manifests.kind("PersistentVolumeClaim"):
        spec = claim.at("spec")
        if spec is None:
            continue
        lacking = [
            words
            for path, words in ((("accessModes",), "accessModes"), (("resources", "requests", "storage"), "a size"))
            if (found := spec.at(*path)) is None or (found.is_scalar and found.is_null)
        ]
        if len(lacking) == 1:
            yield Found(
                title=f"{label(claim)} lacks {lacking[0]}",
                place=place(claim, spec),
                evidence=f"spec without {lacking[0]}",
                why="The API server refuses it: `Required value`.",
                fix=("say both:\naccessModes: [ReadWriteOnce]\nresources:\n  requests:\n    storage: 24Gi",),
            )
