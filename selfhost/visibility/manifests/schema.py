"""Fields that the API does not know, values of another type, fields that must not be missing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from selfhost.core.tree import Tree, as_written
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.fields import RETIRED, fields, kinds, nearest, type_of
from selfhost.visibility.manifests.typed import PLAIN_PODS
from selfhost.visibility.objects import Manifests, label, place
from selfhost.visibility.readers.kubernetes_objects import pods
from selfhost.visibility.rule import Found, manifest_rule

REFERENCE = "https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/"
VALIDATION = "https://kubernetes.io/blog/2023/04/24/openapi-v3-field-validation-ga/"
RETIREMENT = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"
CHECK = "see what the API server says of it:\nkubectl apply --server-side --dry-run=server -f FILE"
_OWN_RULE: Final = {("core.v1.PodResourceClaim", "source"), ("core.v1.SecretReference", "")}
_PATCHED: Final = ("spec", "selector", "template", "containers")
"""Often left out of a patch that Kustomize or Helm lays over a whole object."""
_FOREIGN: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "LeaderWorkerSet": {
        "spec": ("replicas", "leaderWorkerTemplate", "rolloutStrategy", "startupPolicy", "networkConfig"),
        "spec.leaderWorkerTemplate": (
            "leaderTemplate", "workerTemplate", "size", "restartPolicy", "subGroupPolicy", "volumeClaimTemplates",
            "persistentVolumeClaimRetentionPolicy", "resizePolicy",
        ),
    },
    "ScaledObject": {
        "spec": (
            "scaleTargetRef", "pollingInterval", "cooldownPeriod", "initialCooldownPeriod", "idleReplicaCount",
            "minReplicaCount", "maxReplicaCount", "fallback", "advanced", "triggers",
        ),
    },
    "InferencePool": {"spec": ("selector", "targetPorts", "targetPortNumber", "extensionRef", "endpointPickerRef")},
}  # fmt: skip
_RUNS_PODS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


@dataclass(frozen=True, slots=True)
class _Slip:
    kind: str
    """`unknown`, `type` or `missing`."""
    tree: Tree
    path: str
    said: str
    near: str = ""
    certain: bool = True


def _slips(thing: Tree) -> Iterator[_Slip]:
    name = type_of(thing.said("apiVersion"), thing.said("kind"))
    if name:
        yield from _walk(thing, name, "")
    for place_, known in _FOREIGN.get(thing.said("kind"), {}).items():
        tree = thing.at(*place_.split("."))
        for key, value in tree.items() if tree is not None else ():
            if key not in known and (near := nearest(key, known)):
                yield _Slip("unknown", _at_key(tree, key, value), f"{place_}.{key}", key, near)
    if not name and thing.said("kind") in PLAIN_PODS:
        for pod in pods(thing):
            yield from _walk(pod.spec, "core.v1.PodSpec", "spec")


def _walk(tree: Tree, name: str, path: str) -> Iterator[_Slip]:
    known = fields(name)
    if tree.map is None:
        return
    for key, value in tree.items():
        where = f"{path}.{key}" if path else key
        if key in known:
            yield from _value(value, known[key].kind, where)
        elif (
            not key.startswith("$")
            and (name, key) not in _OWN_RULE
            and not (name.startswith("resource.") and key in _CLAIM_FIELDS)
        ):
            near = nearest(key, tuple(one for one in known if one not in (tree.map or {})))
            yield _Slip("unknown", _at_key(tree, key, value), where, key, near)
    for key, field in known.items():
        said = tree.at(key)
        misspelt = any(other not in known and nearest(other, [key]) for other in tree.map)
        if field.required and (said is None or said.is_null) and not misspelt:
            yield _Slip("missing", tree, path, key, certain=key not in _PATCHED)


_CLAIM_FIELDS: Final = ("deviceClassName", "selectors", "allocationMode", "count", "exactly", "adminAccess")
"""Where they stand differs by version; KX552 says it."""


def _value(value: Tree, kind: str, path: str) -> Iterator[_Slip]:
    if value.is_null or kind == "*":
        return
    wanted = _wanted(kind)
    if not _fits(value, kind):
        yield _Slip("type", value, path, wanted)
    elif kind[0] == "[":
        for number, element in enumerate(value.elements()):
            yield from _value(element, kind[1:], f"{path}[{number}]")
    elif kind[0] == "{":
        for key, element in value.items():
            yield from _value(element, kind[1:], f"{path}[{key}]")
    elif len(kind) > 1:
        yield from _walk(value, kind, path)


def _wanted(kind: str) -> str:
    return _WORDS.get(kind) or ("a list" if kind[0] == "[" else "a map")


_WORDS: Final = {
    "s": "a text", "i": "a whole number", "n": "a number", "b": "true or false", "q": "a quantity",
    "x": "a whole number or a text",
}  # fmt: skip


def _fits(value: Tree, kind: str) -> bool:
    if kind[0] == "[":
        return value.list is not None
    if len(kind) > 1:
        return value.map is not None
    if not value.is_scalar:
        return False
    scalar = value.scalar
    is_number = isinstance(scalar, int | float) and not isinstance(scalar, bool)
    whole = is_number and float(scalar or 0).is_integer()
    return {
        "s": isinstance(scalar, str),
        "i": whole,
        "n": is_number,
        "b": isinstance(scalar, bool) or (not value.quoted and value.text in ("yes", "no", "on", "off")),
        "q": is_number or isinstance(scalar, str),
        "x": whole or isinstance(scalar, str),
    }[kind]


def _at_key(tree: Tree | None, key: str, value: Tree) -> Tree:
    """The key itself, for that is what is wrong."""
    spot = tree.key_spot(key) if tree is not None else value.spot
    return Tree(line=spot.line, column=spot.column, path=spot.path or value.path)


def _holding(thing: Tree) -> bool:
    """Whether nothing waits to be filled in (`${NAME}` of envsubst, `<name>`)."""
    return not thing.said("kind").startswith(("$", "<"))


@manifest_rule("KX455", Severity.ERROR, source=REFERENCE)
def value_of_another_type(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        for slip in _slips(thing):
            if slip.kind != "type":
                continue
            text = slip.tree.text if slip.tree.is_scalar else ""
            if text.startswith(("${", "<", "$(")) or "{{" in text:
                continue
            shown = as_written(slip.tree) if slip.tree.is_scalar else "a list or a map"
            is_text = slip.said == "a text"
            yield Found(
                title=f"{slip.path} must be {slip.said}",
                place=place(thing, slip.tree),
                evidence=f"{slip.path}: {_hidden(slip.path, shown)}",
                why="The API server takes no other type here and refuses the whole object"
                + (": YAML reads a bare number or true/false as such, not as a text." if is_text else "."),
                fix=(f'quote it:\n{slip.path.rpartition(".")[2]}: "{_hidden(slip.path, shown)}"',)
                if is_text and slip.tree.is_scalar
                else (f"write {slip.said} without quotes" if slip.tree.is_scalar else f"write {slip.said}", CHECK),
            )


def _hidden(path: str, shown: str) -> str:
    return "…" if re.search(r"stringData|data\[", path) else shown[:60]


@manifest_rule("KX456", Severity.ERROR, source=VALIDATION)
def unknown_field(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        for slip in _slips(thing):
            if slip.kind == "unknown":
                yield Found(
                    title=f"{label(thing)} has no field {slip.path}"
                    + (f": did you mean {slip.near}?" if slip.near else ""),
                    place=place(thing, slip.tree),
                    evidence=f"{slip.path} is not declared in {thing.said('apiVersion')} {thing.said('kind')}",
                    why="A server that validates strictly refuses the object (`field not declared in schema`); one "
                    "that does not drops the field without a word, and what it should have set is not set.",
                    fix=(
                        f"write {slip.near} instead of {slip.said}"
                        if slip.near
                        else f"remove {slip.said}, or move it to where it belongs",
                        CHECK,
                    ),
                )


@manifest_rule("KX457", Severity.ERROR, source=REFERENCE)
def missing_field(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        slips = [slip for slip in _slips(thing) if slip.kind == "missing" and not _is_patch(thing)]
        named = bool(thing.said("metadata", "name") or thing.said("metadata", "generateName"))
        if not named and type_of(thing.said("apiVersion"), thing.said("kind")) and "metadata" in (thing.map or {}):
            yield _missing(thing, "metadata", "name", thing.at("metadata") or thing, None)
        for slip in slips:
            sure = (slip.certain and not _in_patch(thing, slip.path)) or (
                slip.said == "selector" and _has_labels(thing)
            )
            yield _missing(thing, slip.path, slip.said, slip.tree, None if sure else Severity.WARNING)


def _is_patch(thing: Tree) -> bool:
    """What is laid over a whole object: it has no image, and does not say whose pods they are."""
    if thing.said("kind") == "Pod" or not any(True for _ in pods(thing)):
        return thing.said("kind") in _RUNS_PODS and thing.at("spec", "selector") is None
    images = [one.at("image") for pod in pods(thing) for one in (pod.spec.at("containers") or Tree(0, 0)).elements()]
    return thing.at("spec", "selector") is None and not any(images)


def _in_patch(thing: Tree, path: str) -> bool:
    """Whether a path leads into a container that has no image, so that it is laid over another."""
    found = re.match(r"(.*[cC]ontainers)\[(\d+)\]", path)
    container = thing.at(*found[1].split("."), int(found[2])) if found and "[" not in found[1] else None
    return container is not None and container.at("image") is None


def _has_labels(thing: Tree) -> bool:
    """Who labels the pods writes a whole object, not a patch of one."""
    return thing.at("spec", "template", "metadata", "labels") is not None


def _missing(thing: Tree, path: str, key: str, tree: Tree, severity: Severity | None) -> Found:
    where = f"{path}.{key}" if path else key
    return Found(
        title=f"{label(thing)} lacks {where}",
        place=place(thing, tree),
        evidence=f"{key} is required in {path or thing.said('kind')}",
        why="The API server refuses the object: `Required value`."
        + (" A patch that is laid over a whole object may leave it out." if severity else ""),
        fix=(f"add {where}", CHECK),
        severity=severity,
    )


@manifest_rule("KX460", Severity.ERROR, source=RETIREMENT)
def retired_version(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.objects:
        version, kind = thing.said("apiVersion"), thing.said("kind")
        after = RETIRED.get((version, kind)) or RETIRED.get((version, ""))
        if after is None and _holding(thing):
            yield from _of_no_kind(thing, version, kind)
        if after is None or not _holding(thing):
            continue
        yield Found(
            title=f"no cluster of today serves {kind} as {version}",
            place=place(thing, thing.at("apiVersion")),
            evidence=f"apiVersion: {version}",
            why=f'The API server answers `no matches for kind "{kind}" in version "{version}"`.',
            fix=(f"write the version that came after it, and look whether its fields differ:\napiVersion: {after}",),
        )


def _of_no_kind(thing: Tree, version: str, kind: str) -> Iterator[Found]:
    """A kind in another group than its own, or one that its group does not have."""
    group = version.rpartition("/")[0]
    known = kinds()
    own = [one for one, names in known.items() if kind in names]
    groups = {one.rpartition("/")[0] for one in known}
    if (
        not kind
        or not version
        or kind in known.get(version, ())
        or kind.endswith("List")
        or ("." in group and group not in groups)
    ):
        return
    if own and group not in {one.rpartition("/")[0] for one in own}:
        better = f"apiVersion: {next((one for one in own if 'alpha' not in one and 'beta' not in one), own[0])}"
    elif not own and version in known and (near := nearest(kind, known[version])):
        better = f"kind: {near}"
    else:
        return
    yield Found(
        title=f"there is no {kind} in {version}",
        place=place(thing, thing.at("apiVersion" if own else "kind")),
        evidence=f"apiVersion: {version} · kind: {kind}",
        why=f'The API server answers `no matches for kind "{kind}" in version "{version}"`.',
        fix=(f"write:\n{better}",),
    )
