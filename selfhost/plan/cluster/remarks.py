"""What a reader of the files should know beside the values: by the chart's paths, and of what was not seen."""

import re

from selfhost.plan.cluster.allocation import RESOURCES
from selfhost.plan.cluster.arch import arch_of
from selfhost.plan.cluster.case import Case
from selfhost.plan.cluster.names import revision_of, with_registry
from selfhost.shapes.host import Known, Vendor

UNSEEN = "nodes"
"""No value of the chart: what nobody could say without a look at the cluster."""
_PRODUCTS = {
    Vendor.NVIDIA: "nvidia.com/gpu.product", Vendor.AMD: "amd.com/gpu.product-name",
    Vendor.INTEL: "gpu.intel.com/product",
}  # fmt: skip
"""Labels of the vendors' own discovery, where it is installed."""


def remarks_of(case: Case) -> dict[str, str]:
    found = {"nodeSelector": _arch_words(case), "model": _branch_words(case), UNSEEN: _unseen_words(case)}
    return {path: words for path, words in found.items() if words}


def _arch_words(case: Case) -> str:
    arch = arch_of(case.image, with_registry(case.reference))
    return f"the image is for {arch} only" if arch else ""


def _branch_words(case: Case) -> str:
    if isinstance(case.model.revision, Known):
        return ""
    return (
        f"{revision_of(case.model)} is a branch: the commit that it names on the day is fetched, and the job's log "
        "says which; `selfhost lock` and `render --locked` hold it"
    )


def _unseen_words(case: Case) -> str:
    if case.facts is not None or not case.devices.cards:
        return ""
    vendor, label, name = case.devices.cards[0].vendor, _PRODUCTS[case.devices.cards[0].vendor], case.devices.name
    nvidia = vendor is Vendor.NVIDIA
    handler = "k3s, RKE2 and k0s need `runtimeClassName: nvidia`; " if nvidia else ""
    product = re.sub(r"[^A-Za-z0-9_.-]+", "-", name) if nvidia else "NAME"
    return (
        f"the cluster was not looked at: {handler}any node with {RESOURCES[vendor]} is taken, and this was planned for "
        f"{name}; to hold it there: `nodeSelector: {{{label}: {product}}}`, as `kubectl get nodes -L {label}` shows it"
    )
