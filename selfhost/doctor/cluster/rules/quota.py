"""Pods that were never made, for what they ask for: quotas and bounds of the namespace."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.refused import MAKERS, refused
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import (
    Object,
    cut,
    name,
    number,
    text,
)
from selfhost.shapes.finding import RunOn

QUOTAS: Final = "https://kubernetes.io/docs/concepts/policy/resource-quotas/"


@cluster_rule("KX402", title="a quota of the namespace is used up", kinds=MAKERS, source=QUOTAS)
def over_quota(cluster: Cluster, one: Object) -> Iterator[Said]:
    for root, called, said in refused(cluster, one, "KX402"):
        match = re.search(
            r"exceeded quota: (?P<quota>[^,]+), requested: (?P<asked>.+?), used: (?P<used>.+?), limited: (?P<most>.+)",
            said,
        )
        facts = f"{match['asked']} asked, {match['used']} used, {match['most']} allowed" if match else cut(said, 120)
        quota = match["quota"] if match else ""
        yield Seen(
            title=f"{called}: no pod is made, quota {quota or 'of the namespace'} is used up: {facts}",
            evidence=cut(said, 400),
            why="Layer: admission. What pods of the namespace ask for is counted, running or not. After the quota "
            "was raised the controller tries again at growing intervals, of minutes.",
            fix=(
                f"see what uses it:\n{cluster.in_(root)} describe resourcequota {quota}\n{cluster.in_(root)} get pods",
                (
                    "have it raised, then let it be tried at once:\n"
                    f"{cluster.in_(root)} scale {text(root, 'kind').lower()} {name(root)} --replicas 0 && "
                    f"{cluster.in_(root)} scale {text(root, 'kind').lower()} {name(root)} --replicas "
                    f"{max(1, number(root, 'spec', 'replicas', default=1))}"
                ),
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )


@cluster_rule("KX403", title="a quota wants a request or limit that the pod does not name", kinds=MAKERS, source=QUOTAS)
def quota_wants(cluster: Cluster, one: Object) -> Iterator[Said]:
    for root, called, said in refused(cluster, one, "KX403"):
        match = re.search(r"failed quota: (?P<quota>[\w.-]+): must specify (?P<what>.+)", said)
        what = match["what"].strip() if match else "requests"
        yield Seen(
            title=f"{called}: no pod is made, quota {match['quota'] if match else ''} wants it to specify {what}",
            evidence=cut(said, 400),
            why="Layer: admission. Where a quota counts a resource, every container must say how much of it it asks "
            "for.",
            fix=(
                (
                    f"name it in each container, the helpers too:\n{cluster.in_(root)} set resources "
                    f"{text(root, 'kind').lower()} {name(root)} --requests=cpu=2,memory=12Gi --limits=memory=12Gi"
                ),
            ),
        )


@cluster_rule("KX407", title="a LimitRange of the namespace refuses the pod", kinds=MAKERS,
              source="https://kubernetes.io/docs/concepts/policy/limit-range/")  # fmt: skip
def out_of_range(cluster: Cluster, one: Object) -> Iterator[Said]:
    for root, called, said in refused(cluster, one, "KX407"):
        match = re.search(r"(?:maximum|minimum) .+", said)
        yield Seen(
            title=f"{called}: no pod is made, a LimitRange forbids its size: {cut(match[0] if match else said, 120)}",
            evidence=cut(said, 300),
            why="Layer: admission. The namespace bounds what one container or pod may ask for.",
            fix=(f"see the bounds, then ask for less or have them changed:\n{cluster.in_(root)} describe limitrange",),
        )
