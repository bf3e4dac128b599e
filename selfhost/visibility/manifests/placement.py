"""Where a pod may run: affinity that no node can meet, the scheduler passed by, tolerations."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.objects import Manifests, Pod, label
from selfhost.visibility.rule import Found, manifest_rule

AFFINITY = "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#operators"
NODE_NAME = "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename"
GFD = "https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md"
TAINTS = "https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS: Final = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATES: Final = ("", "Equal", "Exists", "Lt", "Gt")
_UNITS: Final = {"Gi": 1024, "G": 1000, "Mi": 1, "M": 1, "GiB": 1024, "GB": 1000, "Ti": 1024 * 1024}


_LETTERED: Final = ("amd.com/gpu.vram", "gpu.intel.com/memory.max")
"""Labels whose values are texts such as 192G."""
_MEMORY: Final = re.compile(r"nvidia\.com/(?:gpu|mig-[\w.]+)\.memory\Z")
SMALLEST_MIB: Final = 1000


def node_terms(pod: Pod) -> Iterator[Tree]:
    """Every expression over labels of nodes."""
    affinity = pod.spec.at("affinity", "nodeAffinity")
    if affinity is None:
        return
    listed = [affinity.at("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")]
    preferred = affinity.at("preferredDuringSchedulingIgnoredDuringExecution")
    terms = [term for terms in listed if terms is not None for term in terms.elements()]
    terms += [
        inner for each in (preferred.elements() if preferred is not None else ()) if (inner := each.at("preference"))
    ]
    for term in terms:
        expressions = term.at("matchExpressions")
        yield from expressions.elements() if expressions is not None else ()


@manifest_rule("KX050", Severity.ERROR, source=AFFINITY)
def compared_with_no_number(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        for term in node_terms(pod):
            operator, values = term.said("operator"), term.at("values")
            listed = list(values.elements()) if values is not None else []
            if operator not in ("Gt", "Lt") or any("$" in value.text or "{{" in value.text for value in listed):
                continue
            lettered = term.said("key") in _LETTERED
            if len(listed) == 1 and re.fullmatch(r"-?\d+", listed[0].text) and not lettered:
                continue
            key, text = term.said("key"), listed[0].text if listed else ""
            yield Found(
                title=f"{label(pod.holder)} compares {key} with what is no whole number",
                place=pod.place(listed[0] if listed else term),
                evidence=f"{key} {operator} {', '.join(value.text for value in listed) or 'nothing'}",
                why=f"{operator} reads both sides as whole numbers. The API server takes a text like 16Gi without "
                "a word, and then no node matches, ever: the pod stays Pending."
                if len(listed) == 1 and not lettered
                else f"The label's own value has letters (192G), which {operator} cannot read: no node matches, ever."
                if lettered
                else f"{operator} takes exactly one value; the API server refuses the pod.",
                fix=(
                    "choose by a label that is compared as a text, such as amd.com/gpu.product-name with In"
                    if lettered
                    else (
                        "write a whole number, in the unit of the label (nvidia.com/gpu.memory counts MiB):\n"
                        f'values: ["{_mib(text)}"]'
                    ),
                ),
            )


def _mib(text: str) -> str:
    found = re.match(r"([\d.]+)\s*([A-Za-z]*)\Z", text)
    if found is None or found[1].count(".") > 1 or found[1] == ".":
        return "15000"
    return str(int(float(found[1]) * _UNITS.get(found[2], 1)))


@manifest_rule("KX062", Severity.WARNING, source=NODE_NAME)
def scheduler_passed_by(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        named = pod.spec.at("nodeName")
        cards = pod.cards()
        if named is None or named.is_null or not (cards or pod.claims):
            continue
        yield Found(
            title=f"{label(pod.holder)} names its node, so nobody counts the cards",
            place=pod.place(named),
            evidence=f"nodeName: {named.text} · {next(iter(cards), 'a resource claim')}",
            why="nodeName passes the scheduler by. Where the cards are taken the kubelet turns the pod away for good "
            "(`UnexpectedAdmissionError`, `OutOfnvidia.com/gpu`), and a claim is never allocated.",
            fix=(f"let the scheduler put it there:\nnodeSelector:\n  kubernetes.io/hostname: {named.text}",),
        )


@manifest_rule("KX063", Severity.ERROR, source=TAINTS)
def toleration_refused(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        listed = pod.spec.at("tolerations")
        for each in listed.elements() if listed is not None else ():
            operator, effect = each.said("operator"), each.said("effect")
            fault = ""
            if "{{" in operator + effect or "$" in operator + effect:
                continue
            if operator == "Exists" and each.said("value"):
                fault = f"operator Exists with the value {each.said('value')}"
            elif operator not in _TOLERATES:
                fault = f"operator {operator}"
            elif effect not in _EFFECTS:
                fault = f"effect {effect}"
            elif not each.said("key") and operator in ("", "Equal"):
                fault = "no key, and operator Equal"
            elif each.at("tolerationSeconds") is not None and effect != "NoExecute":
                fault = f"tolerationSeconds with the effect {effect or 'of any kind'}"
            if fault:
                key = each.said("key") or "nvidia.com/gpu"
                yield Found(
                    title=f"a toleration of {label(pod.holder)} is none that the API takes",
                    place=pod.place(each),
                    evidence=fault,
                    why="The API server refuses the pod. Exists asks for the key only, whatever its value.",
                    fix=(f"write it like this:\n- key: {key}\n  operator: Exists\n  effect: NoSchedule",),
                )


@manifest_rule("KX066", Severity.ERROR, source=AFFINITY)
def expression_refused(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        for term in node_terms(pod):
            operator, values = term.said("operator"), term.at("values")
            count = len(values.list or ()) if values is not None else 0
            if "{{" in operator or "$" in operator:
                continue
            fault = ""
            if operator not in _OPERATORS:
                fault = f"operator {operator or 'absent'}"
            elif operator in ("In", "NotIn") and not count:
                fault = f"operator {operator} without values"
            elif operator in ("Exists", "DoesNotExist") and count:
                fault = f"operator {operator} with values"
            if fault:
                yield Found(
                    title=f"an expression of {label(pod.holder)} over node labels is none that the API takes",
                    place=pod.place(term),
                    evidence=f"{term.said('key')}: {fault}",
                    why="The API server refuses the pod. In and NotIn need values, Exists and DoesNotExist take none.",
                    fix=("use one of In, NotIn, Exists, DoesNotExist, Gt, Lt",),
                )


@manifest_rule("KX067", Severity.WARNING, source=GFD)
def memory_of_a_card_misread(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        chosen = pod.spec.at("nodeSelector")
        equal = [(key, "=", value) for key, value in chosen.items()] if chosen is not None else []
        for term in node_terms(pod):
            values = term.at("values")
            equal += [
                (term.said("key"), term.said("operator"), value) for value in (values.elements() if values else ())
            ]
        for key, operator, value in equal:
            if not _MEMORY.match(key) or not value.text.isdecimal():
                continue
            small = operator in ("Gt", "Lt") and int(value.text) < SMALLEST_MIB
            if operator not in ("=", "In") and not small:
                continue
            yield Found(
                title=f"{label(pod.holder)} "
                + (f"takes {value.text} MiB for the memory of a card" if small else "asks for one exact memory size"),
                place=pod.place(value),
                evidence=f"{key} {operator} {value.text}",
                why="The label counts MiB, so that any card has more."
                if small
                else "The same card says 81559 with one driver and 81920 with another: an equal sign matches on "
                "some nodes and after an update on none.",
                fix=(
                    f'write MiB:\nvalues: ["{int(value.text) * 1024 - 1000}"]'
                    if small
                    else f"ask for more than a little less:\n- key: {key}\n  operator: Gt\n  "
                    f'values: ["{int(value.text) * 9 // 10}"]',
                ),
            )


@manifest_rule("KX068", Severity.INFO, source=TAINTS)
def toleration_of_one_value(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        listed = pod.spec.at("tolerations")
        for each in listed.elements() if listed is not None else ():
            key, value = each.said("key"), each.said("value")
            if key not in ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915") or not value:
                continue
            if each.said("operator") in ("", "Equal"):
                yield Found(
                    title=f"{label(pod.holder)} tolerates {key} only with the value {value}",
                    place=pod.place(each),
                    evidence=f"{key}={value}",
                    why="Clouds and operators put different values there (present, true). With another one the "
                    "pod stays Pending: `node(s) had untolerated taint`.",
                    fix=(f"tolerate whatever its value:\n- key: {key}\n  operator: Exists\n  effect: NoSchedule",),
                )
