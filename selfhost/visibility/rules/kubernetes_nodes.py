"""A pod against the cluster that it is for: its runtime class, taints of the nodes, where the driver's files lie."""

from collections.abc import Iterator

from selfhost.hosts.cluster import labels, name
from selfhost.shapes.finding import RunOn, Severity
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility import cluster
from selfhost.visibility.allocation import asks_scheduler
from selfhost.visibility.images import engine_of, engine_version, vendor_of
from selfhost.visibility.rule import Found, place, rule

RUNTIME_CLASS = "https://kubernetes.io/docs/concepts/containers/runtime-class/"
TAINTS = "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/"
REGISTER = "sudo nvidia-ctk runtime configure --runtime=containerd\nsudo systemctl restart containerd"
GKE_LABEL = "cloud.google.com/gke-accelerator"
GKE_LIBRARIES = "/usr/local/nvidia/lib64"
GKE_PATHS = f'''env:
  - name: LD_LIBRARY_PATH
    value: "{GKE_LIBRARIES}:/usr/local/cuda/lib64"
  - name: LIBRARY_PATH
    value: "{GKE_LIBRARIES}"'''
GKE_BROKEN = ((0, 9), (0, 20))
"""vLLM's images on CUDA 12.8 and 12.9 lost the path that the base image used to set."""
_CARDS = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")


@rule("DV031", Severity.ERROR, source="https://github.com/NVIDIA/gpu-operator/issues/730")
def runtime_class_missing(workload: Workload, host: Host | None) -> Iterator[Found]:
    pod = workload.pod
    if pod is None or not pod.runtime_class or not cluster.known(host):
        return
    wanted = pod.runtime_class
    classes = {name(thing): str(thing.get("handler", "")) for thing in cluster.objects(host, "RuntimeClass")}
    if wanted not in classes and wanted not in pod.runtime_classes:
        yield Found(
            title=f"the cluster has no RuntimeClass {wanted}",
            place=place(workload, "runtime_class"),
            evidence=f"classes: {', '.join(sorted(classes)) or 'none'}",
            why=f'The pod is refused: `RuntimeClass "{wanted}" not found`. GPU operators that let cards in by CDI '
            "remove the class, for a pod no longer needs it.",
            fix=("remove runtimeClassName from the pod",),
        )
        return
    handler = classes.get(wanted, wanted)
    known = [(name(node), cluster.handlers(node)) for node in cluster.fitting(workload, host)]
    lacking = [node for node, names in known if names is not None and handler not in names]
    if lacking and len(lacking) == len(known):
        yield _no_handler(workload, handler, f"runtime handlers of {lacking[0]} do not name {handler}")
        return
    for event in cluster.objects(host, "Event"):
        message = str(event.get("message", ""))
        if f'no runtime for "{handler}" is configured' in message:
            yield _no_handler(workload, handler, message[:160])
            return


def _no_handler(workload: Workload, handler: str, seen: str) -> Found:
    return Found(
        title=f"RuntimeClass is there, but containerd on the node has no runtime {handler}",
        place=place(workload, "runtime_class"),
        evidence=seen,
        why=f'The class is only a name for what containerd must know: `no runtime for "{handler}" is configured`.',
        fix=(f"register the runtime on the node and restart containerd:\n{REGISTER}",),
        run_on=RunOn.CLUSTER_ADMIN,
    )


@rule("DV032", Severity.WARNING, source="https://github.com/NVIDIA/k8s-device-plugin/issues/406")
def runtime_class_not_named(workload: Workload, host: Host | None) -> Iterator[Found]:
    pod = workload.pod
    if pod is None or pod.runtime_class or pod.limits.get("nvidia.com/gpu", "0") == "0":
        return
    classes = {name(thing) for thing in cluster.objects(host, "RuntimeClass")}
    if "nvidia" in pod.runtime_classes:
        seen = "this file makes the RuntimeClass nvidia"
    elif "nvidia" in classes and not _injected_otherwise(workload, host):
        seen = "the cluster has the RuntimeClass nvidia, and no operator that makes it the default"
    else:
        return
    yield Found(
        title=f"{workload.label} gets a card, but not NVIDIA's runtime",
        place=place(workload, "limits.nvidia.com/gpu"),
        evidence=f"{seen}; no runtimeClassName",
        why="Where runc is the default, as on k3s and RKE2, only pods of that class get the driver's libraries: "
        "`libnvidia-ml.so.1` or `libcuda.so.1` is not found although the card is there.",
        fix=("add to the pod's spec:\nruntimeClassName: nvidia",),
    )


def _injected_otherwise(workload: Workload, host: Host | None) -> bool:
    """An operator that sets the default runtime or uses CDI, or a cloud that mounts the driver itself."""
    if any(True for kind in ("ClusterPolicy", "GPUCluster") for _ in cluster.objects(host, kind)):
        return True
    return any(
        label == GKE_LABEL or label.startswith("nvidia.com/gpu.deploy.")
        for node in cluster.fitting(workload, host)
        for label in labels(node)
    )


@rule("DV034", Severity.ERROR, source=TAINTS)
def taint_not_tolerated(workload: Workload, host: Host | None) -> Iterator[Found]:
    pod = workload.pod
    if pod is None or not asks_scheduler(workload):
        return
    asked = [name for name in (*pod.limits, *pod.requests) if name in _CARDS or "/mig-" in name]
    nodes = cluster.offering(workload, host, asked[0]) if asked else ()
    kept_away = []
    for node in nodes:
        if GKE_LABEL in labels(node):
            return  # GKE adds the toleration itself
        bad = [
            taint
            for taint in cluster.taints(node)
            if not any(cluster.tolerates(toleration, *taint) for toleration in pod.tolerations)
        ]
        if not bad:
            return
        kept_away.append(bad[0])
    if kept_away:
        key, value, effect = kept_away[0]
        yield Found(
            title=f"every node with {asked[0]} keeps this pod away",
            place=place(workload, f"limits.{asked[0]}"),
            evidence=f"taint {key}{f'={value}' if value else ''}:{effect} on {len(kept_away)} "
            f"node{'s' if len(kept_away) > 1 else ''}; no toleration for it",
            why="A taint keeps cards free for pods that say they want them. Without the word the pod stays Pending.",
            fix=(f"add to the pod's spec:\ntolerations:\n  - key: {key}\n    operator: Exists\n    effect: {effect}",),
        )


@rule("DV038", Severity.ERROR, source="https://github.com/vllm-project/vllm/issues/18859")
def driver_not_on_the_path(workload: Workload, host: Host | None) -> Iterator[Found]:
    pod = workload.pod
    if pod is None or pod.limits.get("nvidia.com/gpu", "0") == "0" or not _on_gke(workload, host):
        return
    path = workload.env.get("LD_LIBRARY_PATH")
    if (path is None and "LD_LIBRARY_PATH" in workload.env_sources) or GKE_LIBRARIES in (path or ""):
        return
    is_vllm = engine_of(workload) == "vllm" and vendor_of(workload.image) is Vendor.NVIDIA
    version = engine_version(workload.image) if workload.image else None
    if path is None and (not is_vllm or "nvcr.io/" in workload.image):
        return  # NVIDIA's own images name the folder, as vLLM's did before
    if path is None and version is not None and version < GKE_BROKEN[0]:
        return
    certain = path is not None or (version is not None and GKE_BROKEN[0] <= version < GKE_BROKEN[1])
    yield Found(
        title=f"{workload.label} does not look where GKE puts the driver",
        place=place(workload, "env.LD_LIBRARY_PATH" if path is not None else "image"),
        evidence=f"LD_LIBRARY_PATH={path}"
        if path is not None
        else f"LD_LIBRARY_PATH is not set · image {workload.image}",
        why=f"GKE mounts the driver at {GKE_LIBRARIES}, which no linker knows: `libcuda.so.1` is not found, "
        "and vLLM says `Failed to infer device type`.",
        fix=(f"add to the container:\n{GKE_PATHS}",),
        severity=None if certain else Severity.WARNING,
    )


def _on_gke(workload: Workload, host: Host | None) -> bool:
    if workload.pod is not None and GKE_LABEL in workload.pod.node_selector:
        return True
    nodes = cluster.offering(workload, host, "nvidia.com/gpu")
    return bool(nodes) and all(GKE_LABEL in labels(node) for node in nodes)
