"""How a new version takes the place of the old: deadlocks on the only card or volume, refused strategies."""

import math
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility import cluster
from selfhost.visibility.objects import Manifests, Pod, label, place
from selfhost.visibility.rule import Found, manifest_rule

STRATEGY = "https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#strategy"
ONE_CARD = "https://github.com/defilantech/LLMKube/issues/192"
ONE_VOLUME = "https://github.com/mattermost/mattermost-helm/issues/283"
NO_SURGE: Final = "strategy:\n  type: RollingUpdate\n  rollingUpdate:\n    maxSurge: 0\n    maxUnavailable: 1"
_CONTROLLERS: Final = ("Deployment", "Rollout")


def replicas_of(thing: Tree) -> int | None:
    """As many as the text says; 1 when it says nothing; None for what is no number."""
    value = thing.at("spec", "replicas")
    if value is None or value.is_null:
        return 1
    return int(value.scalar) if isinstance(value.scalar, int) and not isinstance(value.scalar, bool) else None


def part(value: Tree | None, replicas: int, *, up: bool, unsaid: str = "25%") -> int | None:
    """A number or a percentage of the replicas; the API rounds surge up and unavailable down."""
    text = unsaid if value is None or value.is_null else value.text.strip()
    if text.endswith("%") and text[:-1].isdecimal():
        share = replicas * int(text[:-1]) / 100
        return math.ceil(share) if up else math.floor(share)
    return int(text) if text.isdecimal() else None


def surge(thing: Tree) -> tuple[int, int] | None:
    """Pods above and below the wanted number during a roll-out; None for Recreate and where it is not known."""
    strategy = thing.at("spec", "strategy")
    if strategy is not None and strategy.said("type") not in ("", "RollingUpdate"):
        return None
    replicas = replicas_of(thing)
    rolling = strategy.at("rollingUpdate") if strategy is not None else None
    if replicas is None:
        return None
    more = part(rolling.at("maxSurge") if rolling is not None else None, replicas, up=True)
    less = part(rolling.at("maxUnavailable") if rolling is not None else None, replicas, up=False)
    if more == 0 and less == 0 and replicas:
        less = 1  # the API does so where percentages round to nothing
    return (more, less) if more is not None and less is not None else None


def surging(manifests: Manifests) -> Iterator[tuple[Pod, int]]:
    """Deployments that start a new pod before any old one goes, and their replicas."""
    for pod in manifests.pods:
        if pod.kind not in _CONTROLLERS or not pod.whole or not (replicas := replicas_of(pod.holder) or 0):
            continue
        found = surge(pod.holder)
        if found is not None and found[0] > 0 and found[1] == 0:
            yield pod, replicas


def _said(thing: Tree) -> str:
    rolling = thing.at("spec", "strategy", "rollingUpdate")
    if rolling is None:
        return "no strategy is said, so maxSurge 25% and maxUnavailable 25%: one more pod, none less"
    return f"maxSurge {rolling.said('maxSurge') or '25%'}, maxUnavailable {rolling.said('maxUnavailable') or '25%'}"


@manifest_rule("KX051", Severity.WARNING, source=ONE_CARD)
def surge_needs_spare_cards(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    for pod, replicas in surging(manifests):
        cards = pod.cards()
        name, count = next(iter(cards.items()), ("", 0))
        if not cards and not (pod.claims and any(container.engine for container in pod.containers)):
            continue
        spare = _spare(pod, host, name, count, replicas) if name else None
        if spare:
            continue
        held = f"{count} {name}" if name else "the devices of its claim"
        whole = _largest(pod, host, name) if name else 0
        share = f"{count}/{whole} {name}" if whole else held
        strategy = pod.holder.at("spec", "strategy")
        yield Found(
            title=f"an update of {label(pod.holder)} waits for cards that the old pod holds",
            place=place(pod.holder, strategy),
            evidence=f"{_said(pod.holder)} · replicas {replicas} · the old pod holds {share}, the new one needs "
            f"{count if name else 'as many'} more",
            why="The new pod starts first and stays Pending (`Insufficient`), for the old one gives its cards "
            "back only when the new one is ready: neither ever moves, until someone frees cards by hand.",
            fix=(
                f"let the old pod go first:\n{NO_SURGE}",
                "or keep the surge where as many cards are always free",
            ),
            severity=Severity.ERROR if spare is False else None,
        )


def _largest(pod: Pod, host: Host | None, name: str) -> int:
    fitting = cluster.fitting(pod.containers[0].wrapped, host)
    return max((cluster.amount(node, name) for node in fitting), default=0)


def _spare(pod: Pod, host: Host | None, name: str, count: int, replicas: int) -> bool | None:
    """Whether the nodes have room for one pod more; None where no cluster is known."""
    nodes = [cluster.amount(node, name) for node in cluster.fitting(pod.containers[0].wrapped, host)]
    if not any(nodes):
        return None
    return sum(amount // count for amount in nodes) > replicas


@manifest_rule("KX250", Severity.WARNING, source=ONE_VOLUME)
def surge_needs_the_volume(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, replicas in surging(manifests):
        listed = pod.spec.at("volumes")
        for volume in listed.elements() if listed is not None else ():
            claim = manifests.named(
                "PersistentVolumeClaim", volume.said("persistentVolumeClaim", "claimName"), pod.namespace
            )
            modes = access_modes(claim)
            if claim is None or not modes or modes - {"ReadWriteOnce", "ReadWriteOncePod"}:
                continue
            alone = "ReadWriteOncePod" in modes
            yield Found(
                title=f"an update of {label(pod.holder)} waits for a volume that the old pod holds",
                place=place(pod.holder, pod.holder.at("spec", "strategy")),
                evidence=f"{'RWOP' if alone else 'RWO'} claim {claim.said('metadata', 'name')} + surge: "
                f"{_said(pod.holder)} · replicas {replicas}",
                why=(
                    "A ReadWriteOncePod volume is for one pod. "
                    if alone
                    else "A ReadWriteOnce volume is for one node. "
                )
                + "The new pod waits for it"
                + ("" if alone else " when it lands on another node (`Multi-Attach error`)")
                + ", the old one is kept until the new one is ready: neither moves.",
                fix=(f"let the old pod go first (or use type Recreate on a new object):\n{NO_SURGE}",),
            )


def access_modes(claim: Tree | None) -> set[str]:
    listed = claim.at("spec", "accessModes") if claim is not None else None
    return {mode.text for mode in listed.elements()} if listed is not None else set()


@manifest_rule("KX053", Severity.ERROR, source=STRATEGY)
def recreate_with_rolling_update(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        for key, other in (("strategy", "Recreate"), ("updateStrategy", "OnDelete")):
            strategy = thing.at("spec", key)
            rolling = strategy.at("rollingUpdate") if strategy is not None else None
            if strategy is None or rolling is None or rolling.is_null or strategy.said("type") != other:
                continue
            yield Found(
                title=f"{label(thing)} has the strategy {other} and settings for another",
                place=place(thing, rolling),
                evidence=f"type: {other} · rollingUpdate is set",
                why="The API server refuses it: `spec.strategy.rollingUpdate: Forbidden: may not be specified when "
                f"strategy type is '{other}'`. On a Deployment that is live the values of RollingUpdate stay "
                "behind, so a change to Recreate fails by the same words.",
                fix=(
                    "remove rollingUpdate",
                    f"or stay with RollingUpdate, which does the same for one replica:\n{NO_SURGE}",
                ),
            )


@manifest_rule("KX054", Severity.ERROR, source=STRATEGY)
def nothing_may_move(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        rolling = thing.at("spec", "strategy", "rollingUpdate") or thing.at("spec", "updateStrategy", "rollingUpdate")
        if rolling is None or thing.said("kind") not in (*_CONTROLLERS, "DaemonSet"):
            continue
        texts = [rolling.said(key).strip().rstrip("%") for key in ("maxSurge", "maxUnavailable")]
        if thing.said("kind") == "DaemonSet" and not texts[0]:
            texts[0] = "0"
        if texts == ["0", "0"]:
            yield Found(
                title=f"{label(thing)} allows neither a pod more nor a pod less",
                place=place(thing, rolling.at("maxUnavailable")),
                evidence="maxSurge 0 and maxUnavailable 0",
                why="No pod could ever be replaced, so the API server refuses it: `maxUnavailable: Invalid value: "
                "0: may not be 0 when maxSurge is 0`.",
                fix=(f"let one pod go first:\n{NO_SURGE}",),
            )
