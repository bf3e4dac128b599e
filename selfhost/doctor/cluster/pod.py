"""What a pod asks for, and what the kubelet reports of its containers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, at, condition, holds, number, part, rows, text
from selfhost.hosts.cluster_quantity import quantity
from selfhost.hosts.cluster_requests import of_pod

CARDS: Final = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "habana.ai/", "intel.com/gpu", "google.com/tpu",
                "aws.amazon.com/neuron", "huawei.com/", "iluvatar.ai/", "metax-tech.com/", "mthreads.com/",
                "cambricon.com/", "enflame.com/", "hygon.com/")  # fmt: skip
SHARES: Final = ("nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/priority")
"""HAMi's parts of a card: its own scheduler counts them, and no node advertises them."""
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container as it is specified and as the kubelet reports it."""

    name: str
    spec: Object = field(repr=False)
    status: Object = field(repr=False)
    init: bool = False

    @property
    def image(self) -> str:
        return text(self.spec, "image") or text(self.status, "image")

    @property
    def waiting(self) -> str:
        return text(self.status, "state", "waiting", "reason")

    @property
    def waits_for(self) -> str:
        return text(self.status, "state", "waiting", "message")

    @property
    def running(self) -> bool:
        return at(self.status, "state", "running") is not None

    @property
    def ended(self) -> Object:
        """The newest end that is known, of this run or of the one before."""
        return part(self.status, "state", "terminated") or part(self.status, "lastState", "terminated")

    @property
    def restarts(self) -> int:
        return number(self.status, "restartCount")

    @property
    def ready(self) -> bool:
        return bool(at(self.status, "ready"))

    @property
    def last_words(self) -> str:
        """What it said when it ended (terminationMessagePolicy: FallbackToLogsOnError)."""
        return text(self.ended, "message")

    def env(self, key: str) -> str | None:
        for one in rows(self.spec, "env"):
            if one.get("name") == key:
                return text(one, "value") if "value" in one else ""
        return None


def containers(pod: Object) -> tuple[Container, ...]:
    """Init containers first, in the order in which they start."""
    return (*_paired(pod, "initContainers", init=True), *_paired(pod, "containers", init=False))


def _paired(pod: Object, key: str, *, init: bool) -> Iterator[Container]:
    reported = {
        text(one, "name"): one for one in rows(pod, "status", "initContainerStatuses" if init else "containerStatuses")
    }
    specs = {text(one, "name"): one for one in rows(pod, "spec", key)}
    for called in dict.fromkeys((*specs, *reported)):
        yield Container(name=called, spec=specs.get(called, {}), status=reported.get(called, {}), init=init)


def engine(pod: Object) -> Container | None:
    """The container that has the cards, else the first that is none of a mesh."""
    own = [one for one in containers(pod) if not one.init]
    carded = [one for one in own if any(is_card(name) for name in asked_by(one.spec))]
    return next(iter((*carded, *own)), None)


def is_card(resource: str) -> bool:
    return resource.startswith(CARDS) and not resource.startswith(SHARES)


def asked_by(container: Object) -> dict[str, Decimal]:
    """Devices by resource, of one container."""
    resources = part(container, "resources")
    found = {**part(resources, "limits"), **part(resources, "requests")}
    return {str(key): amount for key, value in found.items() if (amount := quantity(value)) is not None}


def asked(pod: Object) -> dict[str, Decimal]:
    """As the scheduler counts it; nothing of what is 0."""
    return {resource: amount for resource, amount in of_pod(pod).items() if amount}


def asked_cards(pod: Object) -> dict[str, int]:
    return {resource: int(amount) for resource, amount in asked(pod).items() if is_card(resource)}


def phase(pod: Object) -> str:
    return text(pod, "status", "phase")


def ended(pod: Object) -> bool:
    return phase(pod) in _ENDED


def bound(pod: Object) -> bool:
    return bool(text(pod, "spec", "nodeName"))


def going(pod: Object) -> bool:
    """It was asked to end and has not."""
    return bool(text(pod, "metadata", "deletionTimestamp"))


def healthy(pod: Object) -> bool:
    return phase(pod) == "Succeeded" or (phase(pod) == "Running" and holds(pod, "Ready") and not going(pod))


def unscheduled(pod: Object) -> bool:
    return phase(pod) in ("Pending", "") and not bound(pod) and not going(pod)


def scheduler_says(cluster: Cluster, pod: Object) -> str:
    """The condition outlives the event, which the API server forgets after an hour."""
    said = condition(pod, "PodScheduled")
    if said.get("status") == "False" and said.get("reason") != "SchedulingGated" and text(said, "message"):
        return text(said, "message")
    return next((one.message for one in cluster.events(pod) if one.reason == "FailedScheduling"), "")


def messages(cluster: Cluster, pod: Object, reasons: Sequence[str] = ()) -> Iterator[str]:
    """Everything that was said of a pod: its own state, its containers' states, its events."""
    yield text(pod, "status", "message")
    for one in containers(pod):
        yield one.waits_for
        yield text(one.status, "state", "terminated", "message")
        yield text(one.status, "lastState", "terminated", "message")
    yield from (event.message for event in cluster.events(pod) if not reasons or event.reason in reasons)
