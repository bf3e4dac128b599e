"""What Flux and Argo CD were told when they applied a release: the same refusals that helm and kubectl print."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, cut, label, rows, text

_ROWS: Final = (
    (
        r"spec\.selector.*field is immutable|selector.*immutable",
        "the selector of a Deployment was changed, and it is immutable",
        ("Layer: API server. What selects the pods is fixed when the Deployment is made; a chart that puts versions "
        "or user's labels "
        "into it cannot be upgraded."),
        ("compare the selectors, then keep the old one, or delete the Deployment (its volume stays) and apply "
        "again:\n{kubectl} get "
        "deployment -o jsonpath='{{range .items[*]}}{{.metadata.name}} "
        "{{.spec.selector.matchLabels}}{{\"\\n\"}}{{end}}'"),
    ),
    (
        r"ResourceClaimTemplate.*immutable",
        "a ResourceClaimTemplate was changed, and it is immutable",
        "Layer: API server. Another number of cards needs a template of another name.",
        ("let the name hold a hash of its content, and delete the old one afterwards:\n{kubectl} get "
        "resourceclaimtemplates"),
    ),
    (
        r"may not be specified when strategy type is 'Recreate'",
        "the strategy was changed to Recreate while rollingUpdate is still set",
        "Layer: API server. Server-side apply keeps the default that it does not own.",
        "stay with RollingUpdate, maxSurge 0 and maxUnavailable 1, which has the same effect",
    ),
    (
        r'conflict with "(?P<who>[^"]+)".*\.spec\.replicas',
        "somebody else owns spec.replicas",
        ("Layer: API server. An autoscaler or `kubectl scale` set it; Helm 4 applies on the server and refuses to take "
        "it over."),
        "leave replicas out of the chart's values where something else scales it",
    ),
    (
        r"conflict with \"|Apply failed with \d+ conflict",
        "a field is owned by somebody else",
        "Layer: API server. It was changed by hand or by another controller.",
        "see who owns which field:\n{kubectl} get deployment NAME --show-managed-fields -o yaml",
    ),
    (
        r"field is immutable|immutable after creation|Forbidden: spec is immutable",
        "a field was changed that cannot be changed",
        ("Layer: API server. A volume claim's class and mode, a Service's address and the like are fixed when they are "
        "made."),
        ("read which field it is, and make the object anew if it may be lost:\n{kubectl} get events --field-selector "
        "type=Warning"),
    ),
)  # fmt: skip


@cluster_rule(
    "KX413",
    title="a release cannot be applied: a field is immutable or owned by somebody else",
    kinds=("HelmRelease", "Kustomization", "Application"),
    source="https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts",
)
def not_applied(cluster: Cluster, one: Object) -> Iterator[Said]:
    said = [text(each, "message") for each in rows(one, "status", "conditions")]
    said.append(text(one, "status", "operationState", "message"))
    for message in said:
        for pattern, what, why, fix in _ROWS:
            if re.search(pattern, message, re.DOTALL):
                yield Seen(
                    title=f"{label(one)} is not applied: {what}",
                    evidence=cut(message, 400),
                    why=why,
                    fix=(fix.format(kubectl=cluster.in_(one)),),
                )
                return
