"""On which nodes a pod could start now, and why on none. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from selfhost.core.errors import EnvironmentMissing
from selfhost.hosts import cluster
from selfhost.hosts.cluster_facts import ClusterFacts, Group, NodeSeen
from selfhost.hosts.cluster_requests import of_pod
from selfhost.shapes.workload import Toleration

OF_CARDS = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "gpu", "sku")
"""How taints begin that are on a node because of its cards."""
_MOST_SHOWN = 6
_HARD = ("NoSchedule", "NoExecute", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the pod brings along. `only` is a resource, or part of a card's name."""

    tolerations: tuple[Toleration, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    only: str = ""


def startable(facts: ClusterFacts, wish: Wish) -> tuple[Group, ...]:
    """Groups with a free card on a node that takes the pod, cut to such nodes; the smallest cards first.

    Raises EnvironmentMissing where there is none.
    """
    meant = tuple(group for group in facts.groups if _meant(group, wish.only))
    found = []
    for group in meant:
        nodes = tuple(node for node in group.nodes if group.free(node) and not _against(node, wish))
        if nodes:
            found.append(replace(group, nodes=nodes))
    if not found:
        raise _none(facts, meant, wish)
    return tuple(sorted(found, key=lambda group: (group.kind.memory_mib or 1 << 40, group.key)))


def is_for_cards(taint: Toleration) -> bool:
    """`nvidia.com/gpu`, `sku=gpu`, `gpu`: put there because of the card."""
    return taint.key.startswith(OF_CARDS) or taint.key.endswith("/gpu")


def _meant(group: Group, only: str) -> bool:
    return not only or only == group.kind.resource or only.lower() in group.kind.name.lower()


def _against(node: NodeSeen, wish: Wish) -> str:
    """Why the pod cannot go there, in a clause; empty where it can."""
    if not node.ready:
        return "not ready"
    if node.cordoned:
        return "cordoned"
    for taint in node.taints:
        if taint.effect in _HARD and not is_for_cards(taint) and not _tolerated(taint, wish.tolerations):
            return f"taint {taint.key}:{taint.effect}"
    wrong = [f"{key}={value}" for key, value in wish.node_selector.items() if node.labels.get(key) != value]
    return f"label {wrong[0]} is missing" if wrong else ""


def _tolerated(taint: Toleration, tolerations: Sequence[Toleration]) -> bool:
    return any(
        one.key in ("", taint.key)
        and one.effect in ("", taint.effect)
        and (one.operator == "Exists" or one.value == taint.value)
        for one in tolerations
    )


def _none(facts: ClusterFacts, meant: Sequence[Group], wish: Wish) -> EnvironmentMissing:
    if not facts.nodes:
        return EnvironmentMissing(
            "no node of the cluster was seen",
            why="Without nodes nobody knows which cards there are: it has none, or you may not list them.",
            fix=(
                "see whether you may:\nkubectl auth can-i list nodes",
                "or leave the cluster out and write the files:\nselfhost render kubernetes MODEL",
            ),
            id="PL094",
        )
    if not meant:
        return _no_card(facts, wish)
    barred = [f"{node.name}: {why}" for group in meant for node in group.nodes if (why := _against(node, wish))]
    holders = list(_holders(facts, meant))
    if barred and not any(
        group.free(node) == 0 and not _against(node, wish) for group in meant for node in group.nodes
    ):
        return EnvironmentMissing(
            f"no node with {_cards(meant)} takes the pod",
            why="Each is kept for something else, or is away.",
            evidence="\n".join(barred[:_MOST_SHOWN]),
            fix=(
                "if it is for you, say so in selfhost.yaml:\nkubernetes: {tolerations: [{key: KEY, operator: Exists}]}",
                "look at the nodes:\nkubectl get nodes -o wide",
            ),
            id="PL097",
        )
    total = sum(group.total for group in meant)
    return EnvironmentMissing(
        "the only card of the cluster is held" if total == 1 else f"all {total} cards of the cluster are held",
        why="Pods that run have asked for them; a new one would wait until one ends.",
        evidence="\n".join([*holders, *barred][:_MOST_SHOWN]),
        fix=("end one of these pods, or add a node", "or run on the processor:\nselfhost up MODEL --device cpu"),
        id="PL096",
    )


def _cards(groups: Sequence[Group]) -> str:
    return " or ".join(dict.fromkeys(group.kind.name or group.kind.resource for group in groups))


def _no_card(facts: ClusterFacts, wish: Wish) -> EnvironmentMissing:
    if wish.only and facts.groups:
        return EnvironmentMissing(
            f"no node offers `{wish.only}`",
            why=f"There {'is' if len(facts.groups) == 1 else 'are'} {_cards(facts.groups)}.",
            fix=("leave it to selfhost:\nselfhost up MODEL --device auto",),
            id="PL095",
        )
    silent = [line for node in facts.nodes if (line := _silent(node))]
    count = len(facts.nodes)
    return EnvironmentMissing(
        f"{'the one node offers' if count == 1 else f'none of the {count} nodes offers'} "
        f"{'no card' if count == 1 else 'a card'}",
        why="Their cards are known, and nobody offers them to pods: the vendor's device plugin is not running there."
        if silent
        else "A card is offered by the vendor's device plugin, or published for claims by its DRA driver.",
        evidence="\n".join(silent[:_MOST_SHOWN]),
        fix=(
            "see what runs on them:\nkubectl get pods -A -o wide | grep -i -e device-plugin -e gpu-operator",
            "or run on the processor:\nselfhost up MODEL --device cpu",
        ),
        id="PL095",
    )


_SIGNS = ("nvidia.com/gpu.product", "nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present",
          "feature.node.kubernetes.io/pci-0302_10de.present", "feature.node.kubernetes.io/pci-1002.present",
          "amd.com/gpu.product-name", "gpu.intel.com/product")  # fmt: skip


def _silent(node: NodeSeen) -> str:
    """A node whose labels tell of a card that it does not offer."""
    label = next((one for one in _SIGNS if node.labels.get(one) not in (None, "false")), "")
    return f"{node.name}: label {label}={node.labels[label]}" if label else ""


def _holders(facts: ClusterFacts, groups: Sequence[Group]) -> Iterator[str]:
    names = {node.name for group in groups for node in group.nodes}
    resources = {group.kind.resource for group in groups}
    for pod in facts.of("Pod"):
        node = _text(pod, "spec", "nodeName")
        if node in names and _text(pod, "status", "phase") not in ("Succeeded", "Failed"):
            held = {key: int(amount) for key, amount in of_pod(pod).items() if key in resources and amount}
            named = f"{_text(pod, 'metadata', 'namespace') or 'default'}/{cluster.name(pod)}"
            yield from (f"{named} holds {count} {resource} on {node}" for resource, count in held.items())


def _text(one: Mapping[str, Any], *keys: str) -> str:
    value: Any = one
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return str(value or "")
