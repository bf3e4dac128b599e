"""What may not change of an object that lives in the cluster: seen before an apply fails half-way."""

from collections.abc import Iterator
from typing import cast

from selfhost.core.tree import Tree
from selfhost.hosts.cluster_quantity import quantity
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility import cluster
from selfhost.visibility.objects import Manifests, label, place
from selfhost.visibility.rule import Found, manifest_rule

VOLUMES = "https://kubernetes.io/docs/concepts/storage/persistent-volumes/#expanding-persistent-volumes-claims"
_TEMPLATES = "ResourceClaimTemplate"


def _live(host: Host | None, thing: Tree) -> cluster.Json | None:
    name, namespace = thing.said("metadata", "name"), thing.said("metadata", "namespace")
    for one in cluster.objects(host, thing.said("kind")):
        same = cluster.at(one, "metadata", "name") == name
        if same and namespace and cluster.at(one, "metadata", "namespace") == namespace:
            return one
    return None


def _of_claim(thing: Tree, live: cluster.Json) -> Iterator[tuple[Tree, str]]:
    spec = thing.at("spec")
    for key in ("storageClassName", "volumeName", "volumeMode"):
        value, old = spec.at(key) if spec else None, cluster.at(live, "spec", key)
        if value is not None and value.text and old and value.text != old:
            yield value, f"{key}: {old} → {value.text}"
    modes, old = spec.at("accessModes") if spec else None, cluster.at(live, "spec", "accessModes")
    if modes is not None and isinstance(old, list) and modes.data != old:
        shown = ", ".join(str(one) for one in cast("list[object]", modes.data))
        yield modes, f"accessModes: {', '.join(map(str, old))} → {shown}"
    size = thing.at("spec", "resources", "requests", "storage")
    before, now = (
        quantity(cluster.at(live, "spec", "resources", "requests", "storage")),
        quantity(size.text if size else None),
    )
    if size is not None and before is not None and now is not None and now < before:
        yield size, f"storage: smaller than the {before / 2**30:.0f} GiB that there are"


@manifest_rule("KX461", Severity.ERROR, source=VOLUMES)
def change_is_refused(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    for thing in manifests.kind("PersistentVolumeClaim", _TEMPLATES):
        live = _live(host, thing)
        if live is None:
            continue
        found = list(_of_claim(thing, live)) if thing.said("kind") != _TEMPLATES else []
        spec = thing.at("spec", "spec")
        if (
            thing.said("kind") == _TEMPLATES
            and spec is not None
            and not _covers(cluster.at(live, "spec", "spec"), spec.data)
        ):
            found.append((spec, "spec differs from that in the cluster"))
        for tree, said in found:
            template = thing.said("kind") == _TEMPLATES
            yield Found(
                title=f"{label(thing)} is changed where it may not be",
                place=place(thing, tree),
                evidence=said,
                why="The API server refuses the apply: `field is immutable`"
                + ("." if template else "; of a claim only the size may grow."),
                fix=(
                    "give the new template a name of its own, such as one with a hash of its content"
                    if template
                    else "keep the claim as it is, or make a new one under another name and copy the files",
                ),
            )


def _covers(live: object, wanted: object) -> bool:
    """Whether `live` says all that is wanted; what the API has filled in besides is no change."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(_covers(live.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        pairs = zip(live, wanted, strict=True) if isinstance(live, list) and len(live) == len(wanted) else None
        return pairs is not None and all(_covers(one, other) for one, other in pairs)
    return live == wanted or str(live) == str(wanted)
