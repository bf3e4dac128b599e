"""Resource claims (DRA) and what else the objects of one text tell about each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from selfhost.core.tree import Tree


@dataclass(slots=True)
class Known:
    """Objects of the text that pods name: by namespace and name, or by name where the cluster has only one."""

    claims: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Device classes of a ResourceClaim."""
    templates: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    config: dict[tuple[str, str], Tree] = field(default_factory=dict)
    """`data` of a ConfigMap."""
    runtime_classes: tuple[str, ...] = ()


def known(objects: Sequence[Tree]) -> Known:
    found = Known()
    for thing in objects:
        name = (thing.said("metadata", "namespace"), thing.said("metadata", "name"))
        kind = thing.said("kind")
        if kind == "ResourceClaim":
            found.claims[name] = tuple(_classes(thing.at("spec")))
        elif kind == "ResourceClaimTemplate":
            found.templates[name] = tuple(_classes(thing.at("spec", "spec")))
        elif kind == "ConfigMap" and (data := thing.at("data")) is not None:
            found.config[name] = data
        elif kind == "RuntimeClass" and name[1]:
            found.runtime_classes = (*found.runtime_classes, name[1])
    return found


def _classes(spec: Tree | None) -> Iterator[str]:
    """Of every request: plainly, below `exactly`, or as one of several to choose from."""
    requests = spec.at("devices", "requests") if spec is not None else None
    for request in requests.elements() if requests is not None else ():
        several = request.at("firstAvailable")
        for said in (request, request.at("exactly"), *(several.elements() if several is not None else ())):
            if said is not None and (name := said.said("deviceClassName")):
                yield name


def used(container: Tree, spec: Tree, namespace: str, found: Known) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the claims that a container uses, and their device classes as far as the text has them."""
    claims = container.at("resources", "claims")
    names = tuple(claim.said("name") for claim in claims.elements()) if claims is not None else ()
    listed = spec.at("resourceClaims")
    of_pod = {claim.said("name"): claim for claim in listed.elements()} if listed is not None else {}
    classes: list[str] = []
    for name in names:
        claim = of_pod.get(name)
        if claim is not None:
            classes += found.claims.get((namespace, claim.said("resourceClaimName")), ())
            classes += found.templates.get((namespace, claim.said("resourceClaimTemplateName")), ())
    return tuple(name for name in names if name), tuple(dict.fromkeys(classes))
