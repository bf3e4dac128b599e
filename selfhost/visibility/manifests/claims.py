"""Resource claims (DRA): declared, in the form of their API version, one for each pod."""

from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.rollout import replicas_of
from selfhost.visibility.objects import Manifests, label, place
from selfhost.visibility.rule import Found, manifest_rule

DRA = "https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/"
OLD = "https://github.com/Project-HAMi/k8s-dra-driver/issues/5"
FORM = "https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/resource-claim-v1/"
SHARED = "https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/blob/main/demo/specs/quickstart/README.md"
TEMPLATE_FORM: Final = "resourceClaims:\n  - name: {name}\n    resourceClaimTemplateName: {template}"
EXACT: Final = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity")
_NESTED: Final = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2")


def elements(tree: Tree | None, *path: str) -> list[Tree]:
    found = tree.at(*path) if tree is not None else None
    return list(found.elements()) if found is not None else []


@manifest_rule("KX550", Severity.ERROR, source=DRA)
def claim_not_declared(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.containers:
        declared = [one.said("name") for one in elements(pod.spec, "resourceClaims")]
        for claim in elements(container.tree, "resources", "claims"):
            name = claim.said("name")
            if name and name not in declared and container.whole:
                yield Found(
                    title=f"{container.wrapped.label} uses a claim {name} that its pod does not have",
                    place=container.place(claim),
                    evidence=f"claims: {name} · resourceClaims of the pod: {', '.join(declared) or 'none'}",
                    why="The API server refuses the pod: `must be one of the names in pod.spec.resourceClaims`.",
                    fix=(
                        (
                            "declare it in the pod's "
                            f"spec:\n{TEMPLATE_FORM.format(name=name, template=f'{name}-template')}"
                        ),
                    ),
                )


@manifest_rule("KX551", Severity.ERROR, source=OLD)
def claim_of_the_old_form(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        for claim in elements(pod.spec, "resourceClaims"):
            source = claim.at("source")
            if source is None:
                continue
            inner = [(key, value.text) for key, value in source.items()] or [("resourceClaimTemplateName", "NAME")]
            yield Found(
                title=f"a claim of {label(pod.holder)} is written for Kubernetes 1.30 and before",
                place=pod.place(source),
                evidence=f"manifest written for <=1.30: resourceClaims[{claim.said('name')}].source.{inner[0][0]}",
                why="From 1.31 on the names stand beside `name`, without `source`: `must specify one of: "
                "resourceClaimName, resourceClaimTemplateName`.",
                fix=(f"take them out of source:\n- name: {claim.said('name')}\n  {inner[0][0]}: {inner[0][1]}",),
            )


@manifest_rule("KX555", Severity.ERROR, source=DRA)
def claim_of_nothing(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        for claim in elements(pod.spec, "resourceClaims"):
            said = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.said(key)]
            if claim.at("source") is not None or len(said) == 1 or claim.map is None:
                continue
            yield Found(
                title=f"a claim of {label(pod.holder)} names "
                f"{'both a claim and a template' if said else 'neither claim nor template'}",
                place=pod.place(claim),
                evidence=f"resourceClaims[{claim.said('name')}]: {', '.join(said) or 'only a name'}",
                why="The API server refuses the pod: `must specify one of: resourceClaimName, "
                "resourceClaimTemplateName`" + (", and not both." if said else "."),
                fix=(
                    TEMPLATE_FORM.format(name=claim.said("name") or "gpu", template="TEMPLATE").replace(
                        "resourceClaims", "name the template:\nresourceClaims"
                    ),
                ),
            )


def requests(thing: Tree) -> Iterator[Tree]:
    """Requests for devices of a ResourceClaim or a template of one."""
    if thing.said("kind") == "ResourceClaim":
        yield from elements(thing, "spec", "devices", "requests")
    elif thing.said("kind") == "ResourceClaimTemplate":
        yield from elements(thing, "spec", "spec", "devices", "requests")


@manifest_rule("KX552", Severity.ERROR, source=FORM)
def request_of_another_version(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        version = thing.said("apiVersion")
        for request in requests(thing):
            flat = [key for key, _ in request.items() if key in EXACT]
            nested = request.at("exactly")
            several = request.at("firstAvailable")
            if version in _NESTED and flat and nested is None and several is None:
                said, why = f"{', '.join(flat)} beside the name, no exactly", "stand below `exactly`"
                body = "".join(f"\n    {key}: {_shown(request.at(key))}" for key in flat)
                fix = f"put them below exactly:\n- name: {request.said('name')}\n  exactly:{body}"
            elif version in _NESTED and nested is None and several is None:
                said, why = "neither exactly nor firstAvailable", "stand below `exactly`"
                fix = f"say the class:\n- name: {request.said('name')}\n  exactly:\n    deviceClassName: gpu.nvidia.com"
            elif version in _NESTED and flat:
                said, why = f"{', '.join(flat)} beside exactly or firstAvailable", "stand below `exactly`"
                fix = f"move {', '.join(flat)} below it"
            elif version == "resource.k8s.io/v1beta1" and nested is not None:
                said, why = "exactly in v1beta1", "stand beside the name, without `exactly`,"
                fix = "write the version that a cluster of today serves:\napiVersion: resource.k8s.io/v1"
            else:
                continue
            yield Found(
                title=f"a request of {label(thing)} is not in the form of {version}",
                place=place(thing, request),
                evidence=said,
                why=f"In this version class, count and selectors {why}: `field not declared in schema`, or "
                "`exactly one of exactly or firstAvailable is required`.",
                fix=(fix,),
            )


def _shown(tree: Tree | None) -> str:
    return "…" if tree is None or not tree.is_scalar else tree.text


@manifest_rule("KX554", Severity.WARNING, source=SHARED)
def one_claim_for_all_replicas(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        if pod.kind in ("Pod", "Job"):
            continue
        replicas = replicas_of(pod.holder) if pod.kind != "DaemonSet" else None
        classes = {name for each in pod.containers if each.wrapped.pod for name in each.wrapped.pod.claim_classes}
        if classes and not any(word in name for name in classes for word in ("gpu", "mig", "npu", "tpu")):
            continue  # such as a channel between nodes, which is there to be shared
        for claim in elements(pod.spec, "resourceClaims"):
            named = claim.at("resourceClaimName")
            if named is None or named.is_null or any(word in named.text for word in ("imex", "channel", "domain")):
                continue
            yield Found(
                title=f"all pods of {label(pod.holder)} share one claim, and with it the same device",
                place=pod.place(named),
                evidence=f"resourceClaimName: {named.text} · replicas {replicas if replicas is not None else 'many'}",
                why="A ResourceClaim is one allocation: each replica gets the very same card, and a second engine "
                "finds its memory taken. An update has both pods on it too."
                if replicas != 1
                else "A ResourceClaim is one allocation: during an update, and with more replicas, both engines "
                "get the very same card.",
                fix=(
                    "let each pod have a claim of its own:\nresourceClaimTemplateName: NAME-OF-A-ResourceClaimTemplate",
                ),
                severity=Severity.INFO if replicas == 1 else None,
            )


@manifest_rule("KX557", Severity.WARNING, source=DRA)
def card_and_claim_at_once(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.containers:
        named = elements(container.tree, "resources", "claims")
        pod = container.wrapped.pod
        classes = pod.claim_classes if pod else ()
        for name in container.cards if named else ():
            vendor = name.partition("/")[0].removeprefix("gpu.").partition(".")[0]
            if not any(vendor in each for each in classes):
                continue
            yield Found(
                title=f"{container.wrapped.label} asks for its cards twice: by {name} and by a claim",
                place=container.place(named[0]),
                evidence=f"{name}: {container.cards[name]} · claims: {', '.join(one.said('name') for one in named)}",
                why="Device plugin and claim each give a card of their own: twice as many as meant, or none where only "
                "one of the two is installed.",
                fix=("keep one of the two",),
            )


@manifest_rule("KX563", Severity.WARNING, source=DRA)
def claim_that_nobody_uses(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        used = {one.said("name") for each in pod.containers for one in elements(each.tree, "resources", "claims")}
        for claim in elements(pod.spec, "resourceClaims"):
            if pod.whole and claim.said("name") not in used:
                yield Found(
                    title=f"no container of {label(pod.holder)} uses its claim {claim.said('name')}",
                    place=pod.place(claim),
                    evidence=f"claims of its containers: {', '.join(sorted(used)) or 'none'}",
                    why="The devices are allocated to the pod and reach no container: the engine finds no card while "
                    "nobody else gets it.",
                    fix=(f"name it in the container:\nresources:\n  claims:\n    - name: {claim.said('name')}",),
                )
