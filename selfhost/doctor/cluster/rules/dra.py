"""Devices by claims: a class that is missing, a template that is missing, no device that meets what is wanted."""

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from selfhost.doctor.cluster.cel import Lack
from selfhost.doctor.cluster.devices import Device, devices
from selfhost.doctor.cluster.pod import scheduler_says, unscheduled
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, counted, cut, label, name, namespace, rows, text
from selfhost.doctor.cluster.wishes import Wish, unmet, wishes
from selfhost.hosts.cluster_quantity import quantity
from selfhost.shapes.finding import RunOn

DRA: Final = "https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/"
_NO_CLASS: Final = re.compile(r"device class (?P<name>[\w.-]+) does not exist")
_NO_DEVICE: Final = re.compile(r"cannot allocate all claims")
_DRIVERS: Final = {
    "gpu.nvidia.com": "https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu",
    "mig.nvidia.com": "https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu",
    "gpu.amd.com": "https://github.com/ROCm/k8s-gpu-dra-driver",
    "gpu.intel.com": "https://github.com/intel/intel-resource-drivers-for-kubernetes",
}


@cluster_rule("KX502", title="the claim or its template does not exist", source=DRA)
def no_template(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if not unscheduled(pod):
        return
    said = next((one.message for one in cluster.events(pod) if one.reason == "FailedResourceClaimCreation"), "")
    said = said or scheduler_says(cluster, pod)
    match = re.search(r'(?P<kind>resourceclaimtemplate|resourceclaim)\S* "(?P<name>[^"]+)" not found', said)
    found = (match["kind"], match["name"]) if match else _unnamed(cluster, pod)
    if found is None:
        return
    kind = "ResourceClaimTemplate" if found[0].endswith("template") else "ResourceClaim"
    elsewhere = [namespace(one) for one in cluster.of(kind) if name(one) == found[1]]
    here = [name(one) for one in cluster.of(kind, namespace(pod))]
    yield Seen(
        title=f"{label(pod)} names the {kind} {found[1]}, which is not in namespace {namespace(pod)}",
        evidence=f"{cut(said, 240) or 'no such object'}; here: {', '.join(here) or 'none'}"
        + (f"; there is one in {elsewhere[0]}" if elsewhere else ""),
        why="Layer: claim controller. The claim is made from the template before the scheduler looks at the pod, so "
        "it says nothing.",
        fix=(
            (
                f"apply the template into the same namespace, or name one that is there:\n{cluster.in_(pod)} get "
                "resourceclaimtemplates,resourceclaims"
            ),
        ),
    )


def _unnamed(cluster: Cluster, pod: Object) -> tuple[str, str] | None:
    for reference in rows(pod, "spec", "resourceClaims"):
        for key, kind in (
            ("resourceClaimTemplateName", "ResourceClaimTemplate"),
            ("resourceClaimName", "ResourceClaim"),
        ):
            called = text(reference, key)
            if called and cluster.knows(kind) and cluster.get(kind, namespace(pod), called) is None:
                return kind.lower(), called
    return None


@cluster_rule("KX501", title="the device class of a claim does not exist", source=DRA)
def no_class(cluster: Cluster, pod: Object) -> Iterator[Said]:
    said = scheduler_says(cluster, pod) if unscheduled(pod) else ""
    match = _NO_CLASS.search(said)
    classes = [name(one) for one in cluster.of("DeviceClass")]
    wanted = [one.device_class for one in wishes(cluster, pod)] if unscheduled(pod) else []
    absent = match["name"] if match else next((one for one in wanted if classes and one not in classes), "")
    if not absent:
        return
    yield Seen(
        title=f"{label(pod)} claims devices of class {absent}, which the cluster does not have",
        evidence=f"{cut(said, 240) or 'Pending'}; classes: {', '.join(classes) or 'none'}",
        why="Layer: DRA driver. Its chart makes the class; it is not installed, or made it in an API version that "
        "this cluster no longer serves (v1beta1 is gone in 1.36).",
        fix=(
            f"see what is there:\n{cluster.kubectl} get deviceclasses,resourceslices",
            f"install the driver: {_DRIVERS.get(absent, 'of the vendor')}",
        ),
        run_on=RunOn.CLUSTER_ADMIN,
    )


@cluster_rule("KX503", title="no node has devices that meet the claim", source=DRA, after=("KX501", "KX502"))
def no_device(cluster: Cluster, pod: Object) -> Iterator[Said]:
    yield from _short(cluster, pod, held=False)


@cluster_rule(
    "KX515",
    title="the devices that would meet the claim are allocated",
    source=DRA,
    after=("KX501", "KX502", "KX503", "KX016"),
)
def devices_held(cluster: Cluster, pod: Object) -> Iterator[Said]:
    yield from _short(cluster, pod, held=True)


def _short(cluster: Cluster, pod: Object, *, held: bool) -> Iterator[Said]:
    said = scheduler_says(cluster, pod) if unscheduled(pod) else ""
    if not unscheduled(pod) or (said and not _NO_DEVICE.search(said)):
        return
    every = list(devices(cluster))
    for wish in wishes(cluster, pod):
        classes = {name(one) for one in cluster.of("DeviceClass")}
        if wish.open or (wish.device_class not in classes and (classes or not every)):
            continue
        judged = [(device, tuple(unmet(wish, device))) for device in every]
        if any(lack.unknown for _, found in judged for lack in found) and not said:
            continue
        meets = [device for device, found in judged if not found]
        most, node = _most(meets)
        free, _ = _most([device for device in meets if device.holder is None])
        if free >= wish.count and not said:
            continue
        if held and most >= wish.count and free < wish.count:
            yield _are_held(cluster, pod, wish, meets, said)
            return
        if not held and most < wish.count:
            yield _none_meets(cluster, pod, wish, judged, most, node, said)
            return


def _most(found: list[Device]) -> tuple[int, str]:
    """How many one node has; a device without a node is reached from each."""
    counts = Counter(device.node for device in found)
    node, count = max(counts.items(), key=lambda pair: pair[1], default=("", 0))
    return count, node


def _none_meets(
    cluster: Cluster,
    pod: Object,
    wish: Wish,
    judged: list[tuple[Device, tuple[Lack, ...]]],
    most: int,
    node: str,
    said: str,
) -> Seen:
    own = [pair for pair in judged if pair[1] and not any(lack.term.startswith("driver ") for lack in pair[1])]
    nearest = min(own, key=_distance, default=None)
    shown = " and ".join(_readable(one) for one in wish.expressions if "device.driver" not in one) or "any"
    wanted = f"{counted(wish.count, 'device')} of {wish.device_class}" + (f" with {shown}" if shown != "any" else "")
    if most:
        what = f"the most that one node has is {most} ({node})"
    elif nearest is not None:
        what = f"the nearest, {nearest[0].shown}, {'; '.join(str(one) for one in nearest[1])}"
    else:
        what = "no resource slice lists any device of it"
    lines = [f"{device.name} ({device.shown}): {'; '.join(str(one) for one in found)}" for device, found in own[:4]]
    fix = [f"see what there is:\n{cluster.kubectl} get resourceslices -o yaml"]
    if most:
        fix.insert(0, f"claim {most}, and let the engine spread over as many (--tensor-parallel-size {most})")
    elif nearest is not None:
        fix.insert(
            0, f"want no more than a device has: {'; '.join(f'{one.term} → {one.actual}' for one in nearest[1])}"
        )
    return Seen(
        title=f"{label(pod)} claims {wanted}; {what}",
        evidence="\n".join([*lines, *([f"scheduler: {cut(said, 240)}"] if said else [])]) or "no device",
        why="Layer: scheduler. All devices of a claim come from one node, and each must meet every expression.",
        fix=tuple(fix),
    )


def _distance(pair: tuple[Device, tuple[Lack, ...]]) -> tuple[int, Decimal]:
    """Fewer terms first; of the same number the device that has the most."""
    device, found = pair
    return len(found), -(quantity(device.capacity.get("memory")) or Decimal(0))


def _readable(expression: str) -> str:
    short = re.sub(r"""device\.(?:attributes|capacity)\[\s*["'][^"']+["']\s*\]\.""", "", expression)
    short = re.sub(
        r"""\.compareTo\(\s*(?:quantity|semver)\(\s*["']([^"']+)["'][^)]*\)\s*\)\s*([<>]=?|==|!=)\s*0""",
        r" \2 \1",
        short,
    )
    return cut(short, 120)


def _are_held(cluster: Cluster, pod: Object, wish: Wish, meets: list[Device], said: str) -> Seen:
    lines = []
    for device in meets[:4]:
        users = (
            ", ".join(text(one, "name") for one in rows(device.holder, "status", "reservedFor"))
            if device.holder
            else ""
        )
        holder = f"{namespace(device.holder)}/{name(device.holder)}" if device.holder else ""
        lines.append(f"{device.shown}: {f'claim {holder}' if holder else 'free'}{f' of pod {users}' if users else ''}")
    return Seen(
        title=f"{label(pod)} waits for {counted(wish.count, 'device')} of {wish.device_class}: all that would do are "
        "allocated",
        evidence="\n".join([*lines, *([f"scheduler: {cut(said, 240)}"] if said else [])]),
        why="Layer: scheduler. A device belongs to one claim as long as a pod uses it; there is no preemption for "
        "claims.",
        fix=(f"see which claims hold them:\n{cluster.kubectl} get resourceclaims -A",),
    )
