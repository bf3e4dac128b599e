"""Intel: the render node, its by-path names, the right resource, the libraries that an image leaves off its path."""

import re
from collections.abc import Iterator, Mapping

from selfhost.shapes.finding import RunOn, Severity
from selfhost.shapes.host import Host, Known, Partitioning, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility.cluster import Json, allocatable, at, nodes, objects
from selfhost.visibility.engine_size import world_size
from selfhost.visibility.images import engine_version, vendor_of
from selfhost.visibility.nodes import by_other_means, cards, handed_in, has, in_a_container, render_nodes, whole_dri
from selfhost.visibility.paste_options import options
from selfhost.visibility.rule import Found, place, rule

VLLM_XPU = "https://docs.vllm.ai/en/latest/getting_started/installation/gpu.html"
PLUGIN = "https://intel.github.io/intel-device-plugins-for-kubernetes/cmd/gpu_plugin/README.html"
_BY_PATH = "/dev/dri/by-path"
_SYCL_LIBRARIES = "/opt/venv/lib"
_FIXED_AFTER = (0, 25, 1)
"""The last version whose XPU image was seen to leave them off."""


def _is_xpu(workload: Workload) -> bool:
    return vendor_of(workload.image) is Vendor.INTEL


@rule("DV060", Severity.ERROR, source=VLLM_XPU)
def no_render_node(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    if not in_a_container(workload) or not _is_xpu(workload) or by_other_means(workload, Vendor.INTEL):
        return
    if has(workload, "/dev/dxg") or whole_dri(workload) or render_nodes(workload):
        return
    yield Found(
        title=f"{workload.label} runs an XPU image without /dev/dri",
        place=place(workload, "image"),
        evidence=f"devices: {', '.join(path for path, _ in handed_in(workload)) or 'none'}",
        why="An Intel card is used through its render node alone; without it the engine counts zero XPU devices.",
        fix=(f"hand it in:\n{options(workload, ('--device', '/dev/dri'))}",),
    )


@rule("DV060b", Severity.WARNING, source=VLLM_XPU)
def no_names_by_path(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    bound = any(mount.source.rstrip("/") in (_BY_PATH, "/dev/dri", "/dev") for mount in workload.mounts)
    if not in_a_container(workload) or not _is_xpu(workload) or world_size(workload) < 2 or bound:
        return
    if whole_dri(workload) or render_nodes(workload):
        yield Found(
            title=f"{workload.label} spreads over {world_size(workload)} Intel cards without {_BY_PATH}",
            place=place(workload, "devices"),
            evidence=f"no bind of {_BY_PATH}",
            why="oneCCL finds out how the cards are wired by these links. `--device /dev/dri` copies nodes, not links.",
            fix=(f"bind the folder too:\n{options(workload, ('-v', f'{_BY_PATH}:{_BY_PATH}'))}",),
        )


def _offered(host: Host) -> Mapping[str, str]:
    """What the nodes of the cluster can hand out, by name."""
    return {name: count for node in nodes(host) for name, count in allocatable(node).items() if count != "0"}


@rule("DV061", Severity.ERROR, source=PLUGIN)
def resource_of_the_other_driver(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or workload.pod is None:
        return
    offered = _offered(host)
    for asked, other in (("gpu.intel.com/i915", "gpu.intel.com/xe"), ("gpu.intel.com/xe", "gpu.intel.com/i915")):
        if asked in workload.pod.limits and asked not in offered and other in offered:
            yield Found(
                title=f"no node offers {asked}; they offer {other}",
                place=place(workload, f"limits.{asked}"),
                evidence=f"allocatable: {other}: {offered[other]}",
                why="The resource is named after the kernel driver of the card: xe for Battlemage, Lunar Lake and "
                "later, i915 for those before. The pod stays Pending.",
                fix=(
                    f"ask for the one that is there:\nresources: {{limits: {{{other}: {workload.pod.limits[asked]}}}}}",
                ),
            )


@rule("DV062", Severity.WARNING, source="https://github.com/intel/intel-device-plugins-for-kubernetes/issues/2158")
def links_arrive_as_files(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or host.surroundings is None or workload.pod is None:
        return
    if not any(resource.startswith("gpu.intel.com/") for resource in workload.pod.limits):
        return
    for plugin in (thing for thing in objects(host, "DaemonSet") if "intel-gpu-plugin" in str(thing)):
        arguments = " ".join(_arguments(plugin))
        mode = re.search(r"-bypath[ =](\w+)", arguments)
        if (mode[1] if mode else "single") == "single":
            yield Found(
                title="the device plugin hands the by-path links in one by one",
                place=place(workload, next(f"limits.{name}" for name in workload.pod.limits if "intel" in name)),
                evidence=f"-bypath {mode[1] if mode else 'not set, so single'}",
                why="They arrive as files, not as links, and PyTorch cannot ask such a card for its free memory.",
                fix=("let the plugin mount the whole folder, in its DaemonSet:\nargs: [-bypath=all]",),
                run_on=RunOn.CLUSTER_ADMIN,
            )


def _arguments(daemon_set: Json) -> list[str]:
    containers = at(daemon_set, "spec", "template", "spec", "containers")
    return [str(word) for each in _listed(containers) for word in _listed(at(each, "args"))]


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


@rule("DV064", Severity.ERROR, source=PLUGIN)
def monitoring_sees_every_card(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    for resource in workload.pod.limits if workload.pod else ():
        if re.fullmatch(r"gpu\.intel\.com/(\w+_)?monitoring", resource):
            yield Found(
                title=f"{workload.label} asks for {resource}, which is every card of the node",
                place=place(workload, f"limits.{resource}"),
                evidence=f"limits: {resource}: {workload.pod.limits[resource] if workload.pod else ''}",
                why="This resource is for exporters of figures: it hands all cards in, also those that other pods got.",
                fix=("ask for a card:\nresources: {limits: {gpu.intel.com/xe: 1}}",),
            )


@rule("DV065", Severity.ERROR, source=PLUGIN)
def physical_beside_virtual(workload: Workload, host: Host | None) -> Iterator[Found]:
    """With virtual functions set up, the physical one is for the machine, not for a workload."""
    intel = cards(host, Vendor.INTEL)
    virtual = [card for card in intel if card.partitioning is Partitioning.SRIOV_VF]
    if not virtual or not in_a_container(workload):
        return
    slots = {card.pci.rpartition(".")[0] for card in virtual}
    physical = {
        node.path: card
        for card in intel
        if card.partitioning is not Partitioning.SRIOV_VF and card.pci.rpartition(".")[0] in slots
        for node in card.nodes
    }
    for path in render_nodes(workload):
        if path in physical:
            yield Found(
                title=f"{path} is the physical function of a card that is cut into {len(virtual)} virtual ones",
                place=place(workload, next(key for source, key in handed_in(workload) if source == path)),
                evidence=f"{physical[path].name} at {physical[path].pci}",
                why="Its memory belongs to the virtual functions; what is left to the physical one runs a display.",
                fix=(f"hand in a virtual function:\n{virtual[0].nodes[0].path if virtual[0].nodes else '/dev/dri'}",),
            )


@rule("DV066", Severity.WARNING, source="https://github.com/vllm-project/vllm/blob/main/vllm/platforms/__init__.py")
def two_platforms(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    target = workload.env.get("VLLM_TARGET_DEVICE", "").lower()
    vendor = vendor_of(workload.image)
    named = {"cuda": Vendor.NVIDIA, "rocm": Vendor.AMD, "xpu": Vendor.INTEL}.get(target)
    if named and vendor and named is not vendor:
        yield Found(
            title=f"VLLM_TARGET_DEVICE={target} in an image for another platform",
            place=place(workload, "env.VLLM_TARGET_DEVICE"),
            evidence=f"image {workload.image}",
            why="vLLM activates one platform; with two it stops (`Only one platform plugin can be activated`).",
            fix=("take the variable out: the image knows its platform",),
        )


@rule("DV067", Severity.ERROR, source="https://github.com/vllm-project/vllm/issues/48625")
def libraries_off_the_path(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    if not _is_xpu(workload) or "llm-scaler" in workload.image:
        yield from _without_setvars(workload)
        return
    path = workload.env.get("LD_LIBRARY_PATH")
    version = engine_version(workload.image)
    if path is None and (version is None or version > _FIXED_AFTER):
        return
    if path is not None and (_SYCL_LIBRARIES in path.split(":") or "$" in path):
        return
    yield Found(
        title=f"{workload.label} leaves {_SYCL_LIBRARIES} off LD_LIBRARY_PATH",
        place=place(workload, "env.LD_LIBRARY_PATH" if path is not None else "image"),
        evidence=f"LD_LIBRARY_PATH={path}" if path is not None else f"image {workload.image}, LD_LIBRARY_PATH not set",
        why="SYCL's libraries lie there. Without them Level Zero works and PyTorch counts no device: `Failed to infer "
        "device type`.",
        fix=(f"put it first:\n{options(workload, ('-e', f'LD_LIBRARY_PATH={_first(path)}'))}",),
        severity=Severity.ERROR if path is not None else Severity.WARNING,
    )


def _first(path: str | None) -> str:
    return ":".join((_SYCL_LIBRARIES, *((path,) if path else ())))


def _without_setvars(workload: Workload) -> Iterator[Found]:
    replaced = workload.entrypoint is not None or (workload.argv and workload.argv[0] in ("vllm", "python", "python3"))
    if "llm-scaler-vllm" in workload.image and replaced and "setvars.sh" not in " ".join(workload.argv):
        yield Found(
            title=f"{workload.label} starts the engine without oneAPI's setvars.sh",
            place=place(workload, "entrypoint" if workload.entrypoint is not None else "argv"),
            evidence=f"image {workload.image}, command {' '.join(workload.argv[:3])}",
            why="This image sets its libraries up in an interactive shell only; your own command runs without them.",
            fix=("source it first:\nbash -c 'source /opt/intel/oneapi/setvars.sh --force && vllm serve …'",),
            severity=Severity.WARNING,
        )


@rule("DV068", Severity.WARNING, source="https://github.com/vllm-project/vllm/issues/50545")
def ranks_hang_on_battlemage(workload: Workload, host: Host | None) -> Iterator[Found]:
    battlemage = [
        card for card in cards(host, Vendor.INTEL) if isinstance(card.arch, Known) and card.arch.value.startswith("bmg")
    ]
    if not _is_xpu(workload) or world_size(workload) < 2 or not battlemage or workload.env.get("CCL_ALLREDUCE"):
        return
    version = engine_version(workload.image)
    if version is not None and version < (0, 32):
        return
    yield Found(
        title=f"{world_size(workload)} ranks on {battlemage[0].name} may hang in their first all-reduce",
        place=place(workload, "argv"),
        evidence=f"image {workload.image}; oneCCL 2022 comes with torch 2.13 and later",
        why="With oneCCL 2022 the warm-up was seen to never return on Battlemage.",
        fix=(
            f"use the slower ring, until it is mended:\n{options(workload, ('-e', 'CCL_ALLREDUCE=ring'))}",
            "or an image with an older oneCCL",
        ),
    )
