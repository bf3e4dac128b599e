"""Devices that the container engine is told to inject and does not know."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.mend import patch
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.rules.allocation import node_of, said
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, cut, label, text
from selfhost.shapes.finding import RunOn

_CDI: Final = re.compile(r"unresolvable CDI devices?|failed to inject CDI devices|CDI device injection failed")
_CDI_NAMES: Final = re.compile(r"unresolvable CDI devices?:?\s+(?P<devices>[^\s:\"]+)")
_MANAGEMENT: Final = re.compile(r"management\.nvidia\.com/gpu")
_BY_CLAIM: Final = re.compile(r"k8s\.(?:[\w-]+\.)?(?:nvidia|amd|intel)\.com/\w+=|k8s\.gpu\.[\w.]+/")


def _cdi(cluster: Cluster, pod: Object, kind: str) -> tuple[str, str] | None:
    """Device names and words of a CDI failure of one kind."""
    found = said(cluster, pod, _CDI)
    if found is None:
        return None
    _, message = found
    named = _CDI_NAMES.search(message)
    own = "management" if _MANAGEMENT.search(message) else "claim" if _BY_CLAIM.search(message) else "device"
    return (named["devices"] if named else "", message) if own == kind else None


@cluster_rule(
    "KX506",
    title="a workload is given the operator's own CDI device",
    source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/1239",
)
def management(cluster: Cluster, pod: Object) -> Iterator[Said]:
    found = _cdi(cluster, pod, "management")
    if found is not None:
        klass = text(pod, "spec", "runtimeClassName")
        yield Seen(
            title=f"{label(pod)} is given {found[0] or 'management.nvidia.com/gpu'}: management.* is operator-only",
            evidence=f"{cut(found[1], 300)}; runtimeClassName {klass or 'none'}",
            why="Layer: CDI. That kind is for the operator's own containers and has other device names than a "
            "workload is given" + (f"; the runtime class {klass} turns them into it." if klass else "."),
            fix=(patch(cluster, pod, "leave the runtime class out, or use nvidia", {"runtimeClassName": None}),),
        )


@cluster_rule(
    "KX507",
    title="the CDI file of a DRA driver is not read by the container engine",
    source="https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/736",
)
def not_read(cluster: Cluster, pod: Object) -> Iterator[Said]:
    found = _cdi(cluster, pod, "claim")
    if found is not None:
        yield Seen(
            title=f"{label(pod)}: allocation worked, injection failed: {node_of(pod)} does not know "
            f"{found[0] or 'the device'}",
            evidence=cut(found[1], 300),
            why="Layer: container engine, node-level. The scheduler allocated the device and the driver wrote its "
            "CDI file; the container engine of the node does not read the folder where it lies (Talos and others use "
            "another).",
            fix=(
                (
                    "on the node, name the folder in containerd's configuration and restart it:\n"
                    'grep -A3 cdi_spec_dirs /etc/containerd/config.toml  # ["/etc/cdi", "/var/run/cdi"]'
                ),
                "or set the driver's CDI root to a folder that is read",
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )


@cluster_rule(
    "KX505",
    title="the container engine does not know the CDI device it is told to inject",
    source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html",
    after=("KX508",),
)
def unresolved(cluster: Cluster, pod: Object) -> Iterator[Said]:
    found = _cdi(cluster, pod, "device")
    if found is not None:
        yield Seen(
            title=f"{label(pod)}: {node_of(pod)} has no CDI device {found[0] or 'of that name'}",
            evidence=cut(found[1], 300),
            why="Layer: container engine. Its CDI file is missing, or older than the cards are now: a MIG change, a "
            "new driver or a swapped card gives other names.",
            fix=(
                (
                    "on the node, see which names there are, and write the file anew:\n"
                    "nvidia-ctk cdi list\nsudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
                ),
                (
                    f"with the GPU operator, restart its toolkit there:\n{cluster.kubectl} get pods -A -o wide | grep "
                    "-i toolkit"
                ),
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )
