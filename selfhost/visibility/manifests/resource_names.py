"""Names of resources that no device plugin offers: slips, and cards asked for by zero."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.fields import nearest
from selfhost.visibility.objects import Container, Manifests
from selfhost.visibility.rule import Found, manifest_rule

EXTENDED = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources"
SHARES = "https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus"
ZERO = "https://github.com/zilliztech/milvus-operator/issues/340"
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_HELD: Final = ("$", "{{", "=")
"""Not filled in yet; `nvidia.com/gpu=all` is Podman's own spelling."""
_CARDS: Final = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "amd.com/gpu",
    "gpu.intel.com/xe",
    "gpu.intel.com/i915",
    "habana.ai/gaudi",
)
_KNOWN = re.compile(
    r"(?:nvidia\.com/(?:gpu(?:\.shared)?|mig-[\w.]+|gpumem(?:-percentage)?|gpucores|pgpu|vgpu|[A-Z0-9_-]+(?:_[A-Z0-9-]+)*|"
    r"roce[\w-]*|hostdev|rdma[\w-]*|.*ib.*|.*nic.*)|amd\.com/(?:gpu|[cdqs]px_nps\d|gpumem|gpucores)|"
    r"gpu\.intel\.com/(?:xe|i915)(?:_monitoring)?|gpu\.intel\.com/(?:memory\.max|millicores|tiles))\Z"
)  # fmt: skip


def _amounts(container: Container) -> Iterator[tuple[str, Tree, str]]:
    for kind in ("limits", "requests"):
        found = container.tree.at("resources", kind)
        for name, value in found.items() if found is not None else ():
            yield name, value, kind


def _near(name: str) -> str:
    """A slip in the domain or in what stands behind it, not in both."""
    domain, _, word = name.partition("/")
    words: dict[str, list[str]] = {known.partition("/")[0]: [] for known in _CARDS}
    for known in _CARDS:
        words[known.partition("/")[0]].append(known.partition("/")[2])
    if domain in words:
        found = nearest(word, words[domain])
        return f"{domain}/{found}" if found else ""
    close = nearest(domain, list(words))
    return f"{close}/{word}" if close and word in words[close] else ""


@manifest_rule("KX562", Severity.ERROR, source=EXTENDED)
def resource_that_nobody_offers(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.containers:
        seen: set[str] = set()
        for name, value, _ in _amounts(container):
            if name in _NATIVE or name.startswith("hugepages-") or name in seen or any(held in name for held in _HELD):
                continue
            seen.add(name)
            bare = "/" not in name
            near = nearest(name, (*_NATIVE, *_CARDS)) if bare else _near(name)
            gpu = re.fullmatch(r"(?:nvidia|amd|intel)?[._-]?gpus?", name.lower()) if bare else None
            own = name.startswith(("nvidia.com/", "amd.com/", "gpu.intel.com/", "habana.ai/"))
            if not bare and (not near or name in _CARDS or (own and _KNOWN.match(name))):
                continue
            better = near or ("nvidia.com/gpu" if gpu else "")
            yield Found(
                title=f"{container.wrapped.label} asks for {name}, which is no resource"
                + (f": did you mean {better}?" if better else ""),
                place=container.place(value),
                evidence=f"{name}: {value.text}",
                why="Without a domain in front only cpu, memory, ephemeral-storage and hugepages-… are known, and "
                "the API server refuses the pod: `must be a standard resource for containers`."
                if bare
                else "The API server takes any name with a domain. No node ever offers this one, and the pod "
                    "stays Pending.",
                fix=(f"write {better}: {value.text}" if better else "use the name that the node's allocatable has:\n"
                     "kubectl get nodes -o jsonpath='{.items[*].status.allocatable}'",),
            )  # fmt: skip


@manifest_rule("KX556", Severity.INFO, source=ZERO)
def zero_cards(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.engines:
        for name, value, kind in _amounts(container):
            if name in _CARDS and value.text.strip() == "0" and kind == "limits":
                yield Found(
                    title=f"{container.wrapped.label} asks for 0 of {name}",
                    place=container.place(value),
                    evidence=f"{kind}: {name}: {value.text}",
                    why="An amount of 0 still binds the pod to the resource's name in quotas and in the eyes of some "
                    "schedulers, and lets the engine start without a card.",
                    fix=(f"remove {name}, or ask for a card:\n{name}: 1",),
                )


@manifest_rule("KX564", Severity.WARNING, source=SHARES)
def several_shares_for_one_engine(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    """Tensor parallelism over them is an error of its own (DV019, DV021)."""
    del host
    for _, container in manifests.engines:
        for name, value, kind in _amounts(container):
            share = name == "nvidia.com/gpu.shared"
            if kind != "limits" or not (share or name.startswith("nvidia.com/mig-")) or not value.text.isdecimal():
                continue
            if int(value.text) > 1:
                yield Found(
                    title=f"{container.wrapped.label} asks for {value.text} {'shares' if share else 'slices'} and "
                    "can use one",
                    place=container.place(value),
                    evidence=f"{name}: {value.text}",
                    why="Two shares are two accesses to cards, perhaps to the same one, and no more memory; the "
                    "plugin may refuse more than one (`maximum request size for shared resources is 1`)."
                    if share
                    else "A process sees one MIG slice; the others stay idle, and nobody else gets them.",
                    fix=(f"ask for one, or for a larger {'card' if share else 'slice'}:\n{name}: 1",),
                )
