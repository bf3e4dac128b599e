"""Quantities: written so that the API reads what was meant."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from selfhost.core.tree import Tree, as_written
from selfhost.hosts.cluster_quantity import quantity
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.objects import Container, Manifests, Pod, label, place
from selfhost.visibility.rule import Found, manifest_rule

SUFFIXES = "https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"
UNITS = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#meaning-of-memory"
OVERCOMMIT = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#requests-and-limits"
UNITS_CPU = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#meaning-of-cpu"
MANY_CORES: Final = 500
_HELD = re.compile(r"\$[({\w]|\{\{|<")
_WORDS = re.compile(r"\s*([\d.]+)\s*([kKMGTP]?)(i?)[bB]?(?:ytes?)?\s*\Z")
_SPACED = re.compile(r"\s*([\d.]+)\s*(?:cores?|cpus?|vcpus?)\s*\Z", re.IGNORECASE)
SIZED: Final = ("memory", "ephemeral-storage", "storage")
FEW_BYTES: Final = 1024**2
"""A container that may use less than this cannot start at all."""


def amounts(manifests: Manifests) -> Iterator[tuple[Tree, str, Tree, Container | None]]:
    """(object, resource's name, amount, container) of everything that is a quantity."""
    for pod, container in manifests.containers:
        for kind in ("limits", "requests"):
            found = container.tree.at("resources", kind)
            for name, value in found.items() if found is not None else ():
                yield pod.holder, name, value, container
    for pod in manifests.pods:
        yield from _of_pod(pod)
    for thing in manifests.objects:
        for claim in _claim_specs(thing):
            for kind in ("limits", "requests"):
                found = claim.at("resources", kind)
                for name, value in found.items() if found is not None else ():
                    yield thing, name, value, None


def _of_pod(pod: Pod) -> Iterator[tuple[Tree, str, Tree, Container | None]]:
    listed = pod.spec.at("volumes")
    for volume in listed.elements() if listed is not None else ():
        size = volume.at("emptyDir", "sizeLimit")
        if size is not None:
            yield pod.holder, "sizeLimit", size, None
    for kind in ("limits", "requests"):
        found = pod.spec.at("resources", kind)
        for name, value in found.items() if found is not None else ():
            yield pod.holder, name, value, None


def _claim_specs(thing: Tree) -> Iterator[Tree]:
    if thing.said("kind") == "PersistentVolumeClaim" and (spec := thing.at("spec")) is not None:
        yield spec
    for path in (("spec",), ("spec", "leaderWorkerTemplate")):
        templates = thing.at(*path, "volumeClaimTemplates")
        for template in templates.elements() if templates is not None else ():
            if (spec := template.at("spec")) is not None:
                yield spec


def amount_of(value: Tree) -> Decimal | None:
    """None for what is no quantity."""
    return quantity(as_written(value) if not value.quoted else value.text) if value.is_scalar else None


@manifest_rule("KX070", Severity.ERROR, source=SUFFIXES)
def no_quantity(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing, name, value, container in amounts(manifests):
        if not value.is_scalar or value.is_null or _HELD.search(value.text) or amount_of(value) is not None:
            continue
        better = _better(name, value.text)
        yield Found(
            title=f"{name} of {container.wrapped.label if container else label(thing)} is no quantity",
            place=container.place(value) if container else place(thing, value),
            evidence=f"{name}: {value.text}",
            why="The API knows the suffixes m, k, M, G, T and Ki, Mi, Gi, Ti, without B, blanks or words: "
            "`quantities must match the regular expression …`, and the object is refused.",
            fix=(f"write it as a number and a suffix:\n{name}: {better}",),
        )


def _better(name: str, text: str) -> str:
    if name == "cpu":
        found = _SPACED.match(text) or re.match(r"\s*([\d.]+)", text)
        return f'"{found[1]}"' if found else '"2"'
    if name not in (*SIZED, "sizeLimit") and not name.startswith("hugepages-"):
        return "1"
    found = _WORDS.match(text)
    return f"{found[1]}{found[2].upper() or 'G'}i" if found else "16Gi"


@manifest_rule("KX071", Severity.ERROR, source=UNITS)
def amount_without_its_unit(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing, name, value, container in amounts(manifests):
        number = amount_of(value)
        if (name not in SIZED and name != "sizeLimit") or number is None or not 0 < number < FEW_BYTES:
            continue
        milli = value.text.rstrip().endswith("m")
        meant = f"{value.text.rstrip().rstrip('m')}{'Mi' if milli or number >= 1024 else 'Gi'}"
        yield Found(
            title=f"{name} of {container.wrapped.label if container else label(thing)} is {number.normalize():f} bytes",
            place=container.place(value) if container else place(thing, value),
            evidence=f"{name}: {value.text}",
            why="A number without a suffix counts bytes"
            + (", and `m` is a thousandth of one" if milli else "")
            + ". The API server takes it, and the container can't start with so little: `Cannot allocate memory`, "
            "OOMKilled or, for a disk, evicted at once.",
            fix=(f"say the unit:\n{name}: {meant}",),
        )


@manifest_rule("KX073", Severity.WARNING, source=UNITS_CPU)
def cores_by_the_thousand(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing, name, value, container in amounts(manifests):
        number = amount_of(value)
        if name != "cpu" or number is None or number < MANY_CORES:
            continue
        yield Found(
            title=f"cpu of {container.wrapped.label if container else label(thing)} is {number.normalize():f} "
            "whole cores",
            place=container.place(value) if container else place(thing, value),
            evidence=f"cpu: {value.text}",
            why="A number without a suffix counts cores. No node has as many, and the pod stays Pending.",
            fix=(f"say thousandths of a core:\ncpu: {value.text}m",),
        )


@manifest_rule("KX072", Severity.ERROR, source=OVERCOMMIT)
def request_above_limit(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    """Of cpu, memory and disk; cards must be equal, which DV033 says."""
    del host
    for _, container in manifests.containers:
        requests, limits = (container.tree.at("resources", kind) for kind in ("requests", "limits"))
        for name, value in requests.items() if requests is not None else ():
            limit = limits.at(name) if limits is not None else None
            asked, most = amount_of(value), amount_of(limit) if limit is not None else None
            if "/" in name or asked is None or most is None or asked <= most or limit is None:
                continue
            yield Found(
                title=f"{container.wrapped.label} requests more {name} than its own limit",
                place=container.place(value),
                evidence=f"requests: {value.text} · limits: {limit.text}",
                why="The API server refuses the pod: `must be less than or equal to memory limit`.",
                fix=(f"raise the limit, or request no more than it:\nlimits:\n  {name}: {value.text}",),
            )
