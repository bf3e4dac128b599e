"""The runtime class of a pod with cards: asked for, or found among those that the cluster has."""

from dataclasses import dataclass

from selfhost.core.errors import InputError
from selfhost.plan.cluster.case import Case
from selfhost.shapes.host import Vendor

HANDLER = "nvidia"
_OPERATORS_ONLY = "nvidia-cdi"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClass:
    """`name` is empty where none is set."""

    name: str
    reason: str


def runtime_class_of(case: Case) -> RuntimeClass:
    """Raises InputError for a name that the cluster has not, and for one that is no workload's."""
    asked = case.ask.runtime_class
    seen = _seen(case)
    if asked == "none":
        return RuntimeClass(name="", reason="asked for")
    if asked != "auto":
        _refuse(asked, seen)
        return RuntimeClass(name=asked, reason="asked for")
    if not case.devices.cards or case.devices.cards[0].vendor is not Vendor.NVIDIA:
        return RuntimeClass(name="", reason="only NVIDIA's toolkit has one")
    if seen is None:
        return RuntimeClass(
            name="",
            reason="none: the cluster was not looked at; k3s, RKE2 and k0s need `nvidia`, and elsewhere a class that "
            "does not exist keeps the pod from being made",
        )
    if HANDLER in seen:
        return RuntimeClass(
            name=HANDLER,
            reason="this cluster has it: without it the card's libraries stay outside where it is not the default, "
            "and where it is the default it changes nothing",
        )
    return RuntimeClass(name="", reason="this cluster has none called nvidia: its runtime hands cards in by itself")


def _seen(case: Case) -> tuple[str, ...] | None:
    """None where nobody read them."""
    if case.facts is None:
        return None
    return case.facts.named("RuntimeClass")


def _refuse(asked: str, seen: tuple[str, ...] | None) -> None:
    if asked == _OPERATORS_ONLY:
        raise InputError(
            f"runtime class `{asked}` is for the operator's own pods",
            why="It asks for devices `management.nvidia.com/gpu=GPU-…`, which no node has.",
            fix=(
                "leave it to selfhost:\nkubernetes: {runtime_class: auto}",
                "or take nvidia:\nkubernetes: {runtime_class: nvidia}",
            ),
            evidence="https://github.com/NVIDIA/nvidia-container-toolkit/issues/1239",
            id="PL092",
        )
    if seen is not None and asked not in seen:
        raise InputError(
            f"this cluster has no runtime class `{asked}`",
            why="The API server refuses each pod that names one which is not there; "
            + (f"there are {', '.join(seen)}." if seen else "there is none."),
            fix=("leave it to selfhost:\nkubernetes: {runtime_class: auto}",),
            id="PL092",
        )
