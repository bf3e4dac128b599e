"""Cards in a pod: asked for rightly, and let in by the scheduler alone."""

import re
from collections.abc import Iterator, Sequence

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.workload import Form, Workload
from selfhost.visibility.allocation import NOTHING, asks_scheduler, resources
from selfhost.visibility.images import engine_of, known
from selfhost.visibility.rule import Found, place, project_rule, rule

PLUGIN = "https://github.com/NVIDIA/k8s-device-plugin#running-gpu-jobs"
EXTENDED = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#consuming-extended-resources"
_CARD = re.compile(r"(?:nvidia\.com/|amd\.com/|gpu\.intel\.com/)")
_DEVICE = re.compile(r"(?!(?:[\w-]+\.)*kubernetes\.io/)(?:[\w-]+\.)+[\w-]+/|rdma/")
"""Any extended resource, of whatever maker."""
_NUMBER = re.compile(r"(?P<whole>\d+)(?P<part>\.\d+)?(?P<milli>m?)\Z")
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"


@rule("DV003", Severity.ERROR, source="https://github.com/NVIDIA/k8s-device-plugin/issues/1376")
def visible_devices_in_a_pod(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    if workload.pod is None or (_VISIBLE not in workload.env and _VISIBLE not in workload.env_sources):
        return
    value = workload.env.get(_VISIBLE)
    asks = bool(workload.pod.claims) or bool(resources(workload, Vendor.NVIDIA))
    if not asks and (value is None or value.strip() in NOTHING or workload.pod.kind == "DaemonSet"):
        return
    said = f"{_VISIBLE}={value}" if value is not None else f"{_VISIBLE} out of another object"
    why = (
        "The device plugin hands over the UUIDs of the cards in this very variable. The pod's own value replaces "
        "them, so the container sees other cards than those that are accounted to it; or it is not read at all."
        if asks
        else "The runtime lets the cards in because the variable says so; the scheduler knows nothing of it, gives the "
        "same cards to others, and may start the pod on a node where the driver is not ready or there is no card."
    )
    yield Found(
        title=f"{workload.label} sets {_VISIBLE} itself" + ("" if asks else ", and asks the scheduler for no card"),
        place=place(workload, f"env.{_VISIBLE}"),
        evidence=said,
        why=why,
        fix=(
            f"remove {_VISIBLE}",
            *(() if asks else ("ask for the cards:\nresources:\n  limits:\n    nvidia.com/gpu: 1",)),
        ),
        severity=None if asks else Severity.WARNING,
    )


@project_rule("DV010", Severity.WARNING, source=PLUGIN)
def cards_leak_beside(workloads: Sequence[Workload], host: Host | None) -> Iterator[Found]:
    del host
    with_cards = {_pod(workload) for workload in workloads if asks_scheduler(workload)}
    for workload in workloads:
        image = known(workload.image) if workload.image else None
        said = _VISIBLE in workload.env or _VISIBLE in workload.env_sources
        if workload.pod is None or image is None or not image.grants_all or said:
            continue
        if asks_scheduler(workload) or _pod(workload) not in with_cards:
            continue
        yield Found(
            title=f"{workload.label} asks for no card and may yet get all of them",
            place=place(workload, "image"),
            evidence=f"image {workload.image} carries {_VISIBLE}=all; no card among its resources",
            why="Where `nvidia` is the node's default runtime, the variable in the image is enough: every card of the "
            "node comes in, those of other pods too.",
            fix=(f'shut it out:\nenv:\n  - name: {_VISIBLE}\n    value: "void"',),
        )


def _pod(workload: Workload) -> tuple[str, str, str, str] | None:
    pod = workload.pod
    return (workload.path, pod.kind, pod.namespace, pod.name) if pod else None


def _whole(text: str) -> float | None:
    """A quantity of cards; None for what is no plain number (a template's place-holder)."""
    match = _NUMBER.match(text.strip())
    if match is None:
        return None
    number = float(match["whole"] + (match["part"] or ""))
    return number / 1000 if match["milli"] else number


@rule("DV033", Severity.ERROR, source=EXTENDED)
def cards_asked_wrongly(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    if workload.pod is None:
        return
    limits, requests = workload.pod.limits, workload.pod.requests
    for name in dict.fromkeys(name for name in (*limits, *requests) if _DEVICE.match(name)):
        fault = _fault(limits.get(name), requests.get(name))
        if fault:
            where = "limits" if name in limits else "requests"
            yield Found(
                title=f"{workload.label} asks for {name} in a way that the cluster refuses",
                place=place(workload, f"{where}.{name}"),
                evidence=fault,
                why="Devices are whole numbers, and what is requested is what is the limit. The API server turns the "
                "pod away; a chart that rounds to 0 asks for no card at all.",
                fix=(f"give a whole number as the limit, and no request of another size:\nlimits:\n  {name}: 1",),
            )


def _fault(limit: str | None, request: str | None) -> str:
    amounts = [(text, _whole(text)) for text in (limit, request) if text is not None]
    broken = [text for text, amount in amounts if amount is not None and amount != int(amount)]
    if broken:
        return f"{broken[0]} is no whole number"
    if limit is None:
        return f"requests: {request}, and no limit"
    if request is not None and None not in (_whole(limit), _whole(request)) and _whole(limit) != _whole(request):
        return f"limits: {limit}, requests: {request}"
    return ""


@rule("DV033b", Severity.ERROR, source="https://github.com/intel/intel-device-plugins-for-kubernetes/issues/2305")
def cards_at_the_pods_level(workload: Workload, host: Host | None) -> Iterator[Found]:
    del host
    for name in workload.pod.pod_resources if workload.pod else ():
        if _DEVICE.match(name):
            yield Found(
                title=f"{name} stands at the pod's own level, where only cpu, memory and hugepages may",
                place=place(workload, f"pod_resources.{name}"),
                evidence=f"{name} under spec.resources",
                why="`Unsupported value … supported values: cpu, hugepages-, memory`: devices belong to a container.",
                fix=(f"move it into the container:\nresources:\n  limits:\n    {name}: 1",),
            )


@rule("DV033c", Severity.WARNING, source="https://github.com/vllm-project/production-stack/issues/1047")
def engine_without_a_card(workload: Workload, host: Host | None) -> Iterator[Found]:
    """Only for an image that serves by itself, or a command that does."""
    del host
    pod = workload.pod
    image = known(workload.image) if workload.image else None
    if pod is None or pod.init or image is None or image.vendor is None or workload.privileged:
        return
    if asks_scheduler(workload) or pod.pod_resources or pod.kind in _ASKED_ELSEWHERE or not _serves(workload):
        return
    if any(_CARD.match(name) for name in (*pod.limits, *pod.requests)) and not _all_zero(workload):
        return
    if _VISIBLE in workload.env or _VISIBLE in workload.env_sources or "cpu" in _device(workload):
        return
    if any(mount.source.startswith("/dev") for mount in workload.mounts):
        return
    yield Found(
        title=f"{workload.label} starts an engine for {image.vendor.value.upper()} cards and asks for none",
        place=place(workload, "image"),
        evidence=f"image {workload.image}; no card among its resources, no claim",
        why="The scheduler puts it anywhere. Where `nvidia` is the default runtime it takes every card of the node, "
        "those of other pods too; elsewhere it finds none. A chart that is given 0.5 cards renders just this.",
        fix=(f"ask for a card:\nresources:\n  limits:\n    {_RESOURCE[image.vendor]}: 1",),
    )


_ASKED_ELSEWHERE = ("DaemonSet", "ServingRuntime", "ClusterServingRuntime")
"""One for each node; and half a pod, for the InferenceService that uses it says how many cards."""
_RESOURCE = {Vendor.NVIDIA: "nvidia.com/gpu", Vendor.AMD: "amd.com/gpu", Vendor.INTEL: "gpu.intel.com/xe"}


def _all_zero(workload: Workload) -> bool:
    pod = workload.pod
    return pod is not None and all(
        amount == "0" for name, amount in {**pod.limits, **pod.requests}.items() if _CARD.match(name)
    )


def _device(workload: Workload) -> str:
    words = " ".join(workload.argv).replace("=", " ")
    return words.partition("--device ")[2][:4] + workload.env.get("VLLM_TARGET_DEVICE", "")


def _serves(workload: Workload) -> bool:
    """By its own command, or by that of an engine's image."""
    words = [word.rpartition("/")[2] for word in workload.argv[:6]]
    named = "serve" in words or any(word.endswith(("api_server", "launch_server")) for word in words)
    image = known(workload.image) if workload.image else None
    shell = image is not None and image.base
    by_image = not shell and workload.entrypoint is None and (not workload.argv or workload.argv[0].startswith("--"))
    return workload.form is Form.POD and engine_of(workload) is not None and (named or by_image)
