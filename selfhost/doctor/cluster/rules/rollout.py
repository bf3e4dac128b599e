"""Updates that stand still: the old pod and the new one wait for each other, or for longer than is allowed."""

import math
import re
from collections.abc import Iterator

from selfhost.doctor.cluster.fit import fits
from selfhost.doctor.cluster.holders import holders
from selfhost.doctor.cluster.mend import no_surge
from selfhost.doctor.cluster.pod import asked_cards, bound, ended, going, healthy, unscheduled
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, at, condition, counted, cut, label, name, number, rows, text
from selfhost.doctor.cluster.volumes import modes
from selfhost.shapes.finding import Severity

DEPLOYMENT = "https://kubernetes.io/docs/concepts/workloads/controllers/deployment/"


def resolved(value: object, replicas: int, *, up: bool) -> int:
    """`25%` of the replicas, or the number itself; as the API server writes the default where there is none."""
    match = re.fullmatch(r"(\d+)(%?)", "25%" if value is None else str(value))
    if match is None:
        return 0
    part = replicas * int(match[1]) / 100
    return int(match[1]) if not match[2] else math.ceil(part) if up else math.floor(part)


def rolling(deployment: Object) -> tuple[int, int]:
    """MaxSurge and maxUnavailable; (0, 1) where the strategy is another."""
    if (text(deployment, "spec", "strategy", "type") or "RollingUpdate") != "RollingUpdate":
        return 0, 1
    replicas = number(deployment, "spec", "replicas", default=1)
    how = at(deployment, "spec", "strategy", "rollingUpdate")
    surge = resolved(at(how, "maxSurge"), replicas, up=True)
    missing = resolved(at(how, "maxUnavailable"), replicas, up=False)
    return surge, missing if surge or missing else 1


def _parted(cluster: Cluster, deployment: Object) -> tuple[list[Object], list[Object]]:
    """Pods of the deployment that run, and those that wait; of another template than these."""
    pods = [pod for pod in cluster.pods_of(deployment) if not ended(pod)]
    placed = [pod for pod in pods if bound(pod) and not going(pod)]
    old = [pod for pod in placed if healthy(pod)] or placed
    new = [pod for pod in pods if not healthy(pod) and not going(pod)]
    made = {name(one): _template_of(one) for one in pods}
    others = {made[name(pod)] for pod in old}
    return old, [pod for pod in new if made[name(pod)] not in others]


def _template_of(pod: Object) -> str:
    """The ReplicaSet's name, also where that was not saved."""
    owners = [
        text(one, "name") for one in rows(pod, "metadata", "ownerReferences") if text(one, "kind") == "ReplicaSet"
    ]
    return owners[0] if owners else name(pod).rpartition("-")[0]


@cluster_rule(
    "KX016",
    title="the old pod holds the cards that the new one waits for",
    kinds=("Deployment",),
    source="https://github.com/defilantech/LLMKube/issues/196",
)
def deadlock(cluster: Cluster, one: Object) -> Iterator[Said]:
    surge, missing = rolling(one)
    old, new = _parted(cluster, one)
    for pod in new if surge else ():
        if not unscheduled(pod):
            continue
        for resource, count in asked_cards(pod).items():
            for fit in fits(cluster, pod):
                if not any(miss.kind == "held" and miss.key == resource for miss in fit.misses):
                    continue
                held = holders(cluster, fit.name, resource)
                own = [holder for holder in held if label(holder.pod) in {label(each) for each in old}]
                if own and missing == 0:
                    has = next(miss.has for miss in fit.misses if miss.key == resource)
                    yield _deadlock(cluster, one, resource, f"{own[0].count}/{has}", count, own[0].pod, pod)
                    return


def _deadlock(cluster: Cluster, one: Object, resource: str, holds: str, count: int, old: Object, new: Object) -> Seen:
    progress = condition(one, "Progressing")
    said = f"; Progressing {text(progress, 'status')}, {text(progress, 'reason')}" if progress else ""
    surge, missing = rolling(one)
    return Seen(
        title=f"{label(one)} stands still: the old pod holds {holds} {resource} of {text(old, 'spec', 'nodeName')}, "
        f"the new one needs {count}",
        evidence=f"{name(old)} runs, {name(new)} is Pending; maxSurge {surge}, maxUnavailable {missing}{said}",
        why="Layer: rollout. The update wants the new pod ready before it ends the old one, and the new one cannot "
        "start before the old one's cards are free. Neither will ever move; the old one goes on serving.",
        fix=(
            no_surge(cluster, one),
            f"or go back to what ran:\n{cluster.in_(one)} rollout undo deployment {name(one)}",
        ),
    )


@cluster_rule(
    "KX212",
    title="a volume for one node and a surging update wait for each other",
    kinds=("Deployment",),
    source="https://github.com/mattermost/mattermost-helm/issues/283",
    after=("KX016",),
)
def volume_deadlock(cluster: Cluster, one: Object) -> Iterator[Said]:
    surge, missing = rolling(one)
    old, new = _parted(cluster, one)
    if not surge or missing or not old:
        return
    for pod in new:
        for called, claim in cluster.claims_of(pod):
            shared = claim is not None and any(called == other for other, _ in cluster.claims_of(old[0]))
            single = claim is not None and "ReadWriteOnce" in modes(claim) and "ReadWriteMany" not in modes(claim)
            here = text(pod, "spec", "nodeName")
            there = text(old[0], "spec", "nodeName")
            waits = any("Multi-Attach" in event.message for event in cluster.events(pod)) or not here
            elsewhere = here != there
            if shared and single and waits and elsewhere and not _other_cause(cluster, pod):
                yield Seen(
                    title=f"{label(one)} stands still: the ReadWriteOnce claim {called} is on {there} with the old pod",
                    evidence=f"{name(old[0])} runs on {there}; {name(pod)} waits{f' on {here}' if here else ''}; "
                    f"maxSurge {surge}, maxUnavailable {missing}",
                    why="Layer: rollout. A ReadWriteOnce volume is on one node at a time. With a surge the new pod "
                    "must be ready before the old one ends, and it gets the volume only after that.",
                    fix=(no_surge(cluster, one), "or use a class whose volumes can be ReadWriteMany"),
                )
                return


def _other_cause(cluster: Cluster, pod: Object) -> bool:
    """A pod that no node takes for another reason does not wait for the volume."""
    found = fits(cluster, pod) if unscheduled(pod) else ()
    return bool(found) and not any(miss.kind == "volume" for miss in found[0].misses)


@cluster_rule(
    "KX022",
    title="a rollout went past its deadline",
    kinds=("Deployment",),
    source=f"{DEPLOYMENT}#failed-deployment",
    severity=Severity.WARNING,
    after=("KX", "EF"),
)
def past_deadline(cluster: Cluster, one: Object) -> Iterator[Said]:
    progress = condition(one, "Progressing")
    if text(progress, "reason") != "ProgressDeadlineExceeded":
        return
    deadline = number(one, "spec", "progressDeadlineSeconds", default=600)
    pods = [pod for pod in cluster.pods_of(one) if not ended(pod)]
    waiting = [pod for pod in pods if not healthy(pod)]
    came = pods and not waiting
    yield Seen(
        title=f"{label(one)} went past its progress deadline of {deadline} s"
        + (": its pods were ready later" if came else ""),
        evidence=f"{cut(text(progress, 'message'), 200)}; {counted(len(waiting), 'pod')} not ready of {len(pods)}",
        why="Layer: rollout. The deadline only reports; it stops nothing. But `helm --wait` takes it for a failure "
        "and rolls back. 600 s is the default, and pulling an image and loading a model take longer.",
        fix=(
            (
                "give it the time of the pull and the load:\n"
                f"{cluster.in_(one)} patch deployment {name(one)} --type merge -p "
                f'\'{{"spec":{{"progressDeadlineSeconds":{max(2100, deadline * 3)}}}}}\''
            ),
        ),
        severity=Severity.INFO if came else None,
    )


@cluster_rule(
    "KX021",
    title="a disruption budget allows no eviction",
    kinds=("PodDisruptionBudget",),
    source="https://kubernetes.io/docs/tasks/run-application/configure-pdb/",
    severity=Severity.WARNING,
)
def undrainable(cluster: Cluster, one: Object) -> Iterator[Said]:
    status = one.get("status") if isinstance(one.get("status"), dict) else {}
    expected = number(status, "expectedPods")
    if not expected or number(status, "disruptionsAllowed") or number(status, "currentHealthy") < expected:
        return  # not all of its pods are healthy: then it is right to allow none
    least = at(one, "spec", "minAvailable")
    most = at(one, "spec", "maxUnavailable")
    asked = f"minAvailable {least}" if least is not None else f"maxUnavailable {most}"
    yield Seen(
        title=f"{label(one)} allows no eviction: a drain of the node waits for ever",
        evidence=f"{asked}; {counted(expected, 'pod')}, {number(status, 'currentHealthy')} healthy, "
        "disruptionsAllowed 0",
        why="Layer: eviction. All its pods are healthy and none may go: `Cannot evict pod as it would violate the "
        "pod's disruption budget.` One replica cannot be moved without being down.",
        fix=(
            (
                "let one go at a time:\n"
                f"{cluster.in_(one)} patch pdb {name(one)} --type merge -p "
                '\'{"spec":{"minAvailable":null,"maxUnavailable":1}}\''
            ),
        ),
    )
