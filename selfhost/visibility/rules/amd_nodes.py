"""AMD: which nodes come into the container, and whether the process may open them."""

from collections.abc import Iterator
from dataclasses import replace

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.workload import ContainerEngine, Form, Workload
from selfhost.visibility.engine_size import world_size
from selfhost.visibility.engines import engine_of_host
from selfhost.visibility.images import engine_of, vendor_of
from selfhost.visibility.nodes import (
    KFD,
    by_other_means,
    cards,
    handed_in,
    has,
    in_a_container,
    key_of,
    render_nodes,
    rootless,
    whole_dri,
)
from selfhost.visibility.paste_options import options
from selfhost.visibility.rule import Found, place, rule

RUN_DOCKER = "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html"
CONTAINER_TOOLKIT = "https://instinct.docs.amd.com/projects/container-toolkit/en/latest/"
_OPEN = (("--security-opt", "seccomp=unconfined"), ("--cap-add", "SYS_PTRACE"))
_ALL_OF_THEM = (("--device", KFD), ("--device", "/dev/dri"), ("-e", "ROCR_VISIBLE_DEVICES=GPU-<unique id>"))
_MASKS = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")


def is_amd(workload: Workload) -> bool:
    """By its image or by what it is handed."""
    return (
        vendor_of(workload.image) is Vendor.AMD
        or has(workload, KFD)
        or workload.runtime == "amd"
        or any(name.kind == "amd.com/gpu" for name in workload.cdi)
    )


@rule("DV040", Severity.ERROR, source=RUN_DOCKER)
def no_kfd(workload: Workload, host: Host | None) -> Iterator[Found]:
    if not in_a_container(workload) or vendor_of(workload.image) is not Vendor.AMD:
        return
    if has(workload, KFD) or has(workload, "/dev/dxg"):
        return
    if by_other_means(workload, Vendor.AMD) and not _asks_in_vain(workload, host):
        return
    yield Found(
        title=f"{workload.label} runs a ROCm image without /dev/kfd",
        place=place(workload, "image"),
        evidence=f"image {workload.image}; devices: {', '.join(path for path, _ in handed_in(workload)) or 'none'}",
        why="ROCm computes through /dev/kfd, which all AMD cards of a machine share. Without it the engine finds no "
        "card (`No HIP GPUs are available`), whatever rocm-smi shows.",
        fix=(f"hand it in, with the card's render node:\n{_nodes_line(workload)}",),
    )


def _asks_in_vain(workload: Workload, host: Host | None) -> bool:
    """By `--gpus` alone, of an engine that was seen to have no way for AMD; DV057 speaks where NVIDIA answers."""
    engine = engine_of_host(workload, host)
    if engine is None or not workload.requests or by_other_means(replace(workload, requests=()), Vendor.AMD):
        return False
    return not cards(host, Vendor.NVIDIA) and not any(way.startswith("amd:") for way in engine.injects)


@rule("DV041", Severity.ERROR, source=RUN_DOCKER)
def kfd_alone(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    if not in_a_container(workload) or not has(workload, KFD) or by_other_means(workload, Vendor.AMD):
        return
    if whole_dri(workload) or any(path.startswith("/dev/dri") for path, _ in handed_in(workload)):
        return
    yield Found(
        title=f"{workload.label} gets /dev/kfd, but no render node",
        place=place(workload, key_of(workload, KFD)),
        evidence="no /dev/dri and no /dev/dri/renderD… among its devices",
        why="/dev/kfd is the door to the driver, not to a card: each card is opened by its own render node.",
        fix=(f"hand in /dev/dri, or the render node of the card:\n{options(workload, ('--device', '/dev/dri'))}",),
    )


def _nodes_line(workload: Workload) -> str:
    return options(workload, ("--device", "/dev/kfd"), ("--device", "/dev/dri"))


@rule("DV044", Severity.ERROR, source=CONTAINER_TOOLKIT)
def amd_runtime_without_root(workload: Workload, host: Host | None) -> Iterator[Found]:
    if (
        workload.runtime == "amd"
        and workload.container_engine is not ContainerEngine.PODMAN
        and rootless(workload, host)
    ):
        yield Found(
            title=f"{workload.label} asks a rootless Docker for the runtime `amd`",
            place=place(workload, "runtime"),
            evidence="runtime amd, rootless daemon",
            why="AMD's container runtime does not work in a rootless daemon; the container stops at its start.",
            fix=(f"hand the nodes in instead:\n{_nodes_line(workload)}",),
        )


@rule("DV045", Severity.ERROR, source=CONTAINER_TOOLKIT)
def desktop_has_no_kfd(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or host.surroundings is None or not in_a_container(workload) or not is_amd(workload):
        return
    docker = [engine for engine in host.surroundings.engines if engine.kind == "docker"]
    if workload.container_engine is ContainerEngine.DOCKER and docker and all(engine.desktop for engine in docker):
        yield Found(
            title=f"{workload.label} asks Docker Desktop for an AMD card",
            place=place(workload, key_of(workload, KFD)),
            evidence=f"the engine is {docker[0].os or 'Docker Desktop'}",
            why="Docker Desktop runs containers in a virtual machine of its own, which has no /dev/kfd: "
            "`error gathering device information while adding custom device`.",
            fix=("use the engine of the machine itself:\ndocker context use default",),
        )


@rule("DV046", Severity.WARNING, source="https://github.com/lemonade-sdk/llamacpp-rocm/issues/96")
def integrated_graphics_come_along(workload: Workload, host: Host | None) -> Iterator[Found]:
    if not in_a_container(workload) or not is_amd(workload) or not whole_dri(workload):
        return
    if any(workload.env.get(mask) for mask in _MASKS) or "exporter" in workload.image:
        return  # an exporter of figures is meant to see every card
    inside = [card for card in cards(host, Vendor.AMD) if card.integrated]
    discrete = [card for card in cards(host, Vendor.AMD) if not card.integrated]
    if not inside or not discrete:
        return
    node = next((node.path for node in discrete[0].nodes if "renderD" in node.path), "/dev/dri/renderD…")
    yield Found(
        title=f"{workload.label} gets the whole of /dev/dri, {inside[0].name} included",
        place=place(workload, key_of(workload, "/dev/dri")),
        evidence=f"{inside[0].name} beside {discrete[0].name}",
        why="HIP counts the processor's own graphics as a device, often as number 0. Engines have no code for it, or "
        "share the model between it and the card, and crash.",
        fix=(
            "hand in the card's own render node instead of the folder (it may move when cards change):\n"
            + options(workload, ("--device", KFD), ("--device", node)),
        ),
    )


@rule("DV050", Severity.WARNING, source="https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html")
def ranks_may_not_reach_each_other(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    if not is_amd(workload) or world_size(workload) < 2 or workload.privileged or not in_a_container(workload):
        return
    said = {option.replace(":", "=") for option in workload.security_opt}
    lacks = [] if "seccomp=unconfined" in said else ["seccomp=unconfined"]
    lacks += [] if not lacks or {"SYS_PTRACE", "CAP_SYS_PTRACE", "ALL"} & set(workload.cap_add) else ["SYS_PTRACE"]
    if lacks:
        yield Found(
            title=f"{workload.label} runs {world_size(workload)} ranks on AMD without {' and '.join(lacks)}",
            place=place(workload, "security_opt"),
            evidence=f"security_opt: {', '.join(workload.security_opt) or 'none'} · "
            f"cap_add: {', '.join(workload.cap_add) or 'none'}",
            why="Ranks of one model read each other's memory (ptrace, process_vm_readv) and move pages between NUMA "
            "nodes; Docker's default profile refuses that. vLLM's own run line for ROCm allows it.",
            fix=(f"allow it as vLLM documents:\n{options(workload, *_OPEN)}",),
        )


@rule("DV054", Severity.ERROR, source="https://github.com/ROCm/k8s-device-plugin/issues/143")
def host_path_instead_of_resource(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    paths = [
        mount for mount in workload.mounts if mount.kind == "hostPath" and mount.source.rstrip("/") in (KFD, "/dev/dri")
    ]
    if workload.form is not Form.POD or workload.pod is None or not paths:
        return
    amd = vendor_of(workload.image) is Vendor.AMD or any(mount.source.rstrip("/") == KFD for mount in paths)
    asked = any(resource.startswith("amd.com/") for resource in workload.pod.limits)
    if any("=" in resource for resource in workload.pod.limits):
        return  # for `podman kube play`, which has no scheduler: `podman.io/device=/dev/kfd: 1`
    if not amd or (workload.pod.kind == "DaemonSet" and engine_of(workload) is None):
        return  # a device plugin or an exporter looks after every card of its node
    yield Found(
        title=f"{workload.label} mounts {paths[0].source} from the node"
        + (" beside the card that the scheduler grants" if asked else " instead of asking the scheduler for a card"),
        place=place(workload, paths[0].key),
        evidence=f"hostPath {', '.join(mount.source for mount in paths)}; "
        f"limits: {', '.join(workload.pod.limits) or 'none'}",
        why="A path from the node is not counted, so two pods get one card; and without `privileged` the device rules "
        "of the container still refuse to open it.",
        fix=("ask for the card, and take the hostPath volumes out:\nresources: {limits: {amd.com/gpu: 1}}",),
        severity=Severity.WARNING if asked or workload.privileged else Severity.ERROR,
    )


@rule("DV057", Severity.ERROR, source="https://github.com/moby/moby/blob/master/daemon/devices_nvidia_linux.go")
def nvidia_takes_the_request(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or not workload.requests or not cards(host, Vendor.NVIDIA) or not cards(host, Vendor.AMD):
        return
    meant = [request for request in workload.requests if request.driver == "amd"]
    if not meant and vendor_of(workload.image) is Vendor.AMD:
        meant = [request for request in workload.requests if request.driver in ("", "amd")]
    for request in meant:
        yield Found(
            title=f"{workload.label} asks Docker for an AMD card on a machine that has NVIDIA cards too",
            place=place(workload, request.key),
            evidence=f"{request.spelling or 'request'}, driver {request.driver or 'not named'}; cards of both here",
            why="Docker registers NVIDIA's driver for such requests and stops there, so AMD's is never asked.",
            fix=(f"hand the AMD nodes in by name:\n{_nodes_line(workload)}",),
        )


@rule("DV058", Severity.ERROR, source="https://github.com/ROCm/ROCm/issues/3144")
def rootless_subset(workload: Workload, host: Host | None) -> Iterator[Found]:
    given = set(render_nodes(workload))
    every = {node.path for card in cards(host, Vendor.AMD) for node in card.nodes if "renderD" in node.path}
    if not in_a_container(workload) or not has(workload, KFD) or whole_dri(workload):
        return
    if not given or not given < every:
        return
    without_root = rootless(workload, host)
    if without_root is False or (without_root is None and workload.container_engine is not ContainerEngine.PODMAN):
        return
    yield Found(
        title=f"{workload.label} gets {len(given)} of {len(every)} AMD cards from a rootless engine",
        place=place(workload, key_of(workload, "/dev/dri/renderD")),
        evidence=f"given {', '.join(sorted(given))}; here {', '.join(sorted(every))}",
        why="Without root there are no device rules, so the driver's topology still lists every card; ROCm opens them "
        "all and gives up at the first one that is missing (hsa_init, 1008).",
        fix=(
            "use a rootful engine for a part of the cards",
            f"or hand in all, and choose in the process:\n{options(workload, *_ALL_OF_THEM)}",
        ),
        severity=None if without_root else Severity.WARNING,
    )
