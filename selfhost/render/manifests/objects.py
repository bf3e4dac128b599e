"""The objects that the chart makes of the same values, without Helm: what any apply takes."""

from collections.abc import Iterator, Mapping
from typing import Any

from selfhost.render.manifests import access, network, scaling, storage
from selfhost.render.manifests.around import Object, Release
from selfhost.render.manifests.chart import merged
from selfhost.render.manifests.deployment import deployment
from selfhost.render.manifests.devices import claim_template

ONLY_HELM = (
    "label helm.sh/chart",
    "label app.kubernetes.io/managed-by",
    "annotation helm.sh/resource-policy",
    "the pod of `helm test`",
    "NOTES.txt",
    "extraObjects that are text: a template of Helm",
)
"""What Helm's release has and these objects have not."""


def objects(values: Mapping[str, Any], *, release: str, namespace: str = "") -> tuple[Object, ...]:
    """In the order in which they are made. `values` as for the chart; without a namespace kubectl's own counts."""
    return tuple(_bare(one) for one in _objects(Release(name=release, values=merged(values), namespace=namespace)))


def _objects(release: Release) -> Iterator[Object]:
    yield from access.account(release)
    yield from network.policies(release)
    if not release.values["weights"]["existingClaim"]:
        yield storage.claim(release)
    if release.uses_claim:
        yield claim_template(release)
    yield access.service(release)
    yield deployment(release)
    if release.values["fetch"]["enabled"]:
        yield storage.fetch(release)
    yield from scaling.budget(release)
    yield from scaling.autoscaler(release)
    yield from access.ingress(release)
    yield from access.route(release)
    yield from scaling.monitors(release)
    yield from (one for one in release.values["extraObjects"] if isinstance(one, dict))


def _bare(one: Object) -> Object:
    """Without what only Helm reads."""
    metadata = dict(one["metadata"])
    noted = {key: value for key, value in metadata.pop("annotations", {}).items() if not key.startswith("helm.sh/")}
    return {**one, "metadata": {**metadata, **({"annotations": noted} if noted else {})}}
