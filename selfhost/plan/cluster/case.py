"""What is settled before the questions that only a cluster asks."""

from dataclasses import dataclass

from selfhost.hosts.cluster_facts import ClusterFacts, Group, facts_of
from selfhost.plan.devices import Devices
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.host import Host
from selfhost.shapes.model import Model
from selfhost.shapes.plan import EngineBuild, Image, MemoryPlan
from selfhost.shapes.service import Service

LISTEN = "0.0.0.0"  # noqa: S104 - inside the pod; the Service and the NetworkPolicy say who reaches it
PORT = 8000
MODEL_PATH = "/model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`facts` is None where no cluster was seen; `group` where the card is not one of its nodes."""

    host: Host
    model: Model
    service: Service
    build: EngineBuild
    image: Image | None
    reference: str
    image_reason: str
    devices: Devices
    ranks: int
    memory: MemoryPlan
    passed: PassedOn
    ask: ClusterAsk
    facts: ClusterFacts | None
    group: Group | None


def seen_in(host: Host) -> ClusterFacts | None:
    """The cluster that a host stands for; None where its objects hold no node."""
    around = host.surroundings
    if around is None or not around.nodes:
        return None
    return facts_of((*around.nodes, *around.objects))


def group_in(facts: ClusterFacts | None, devices: Devices) -> Group | None:
    if facts is None or not devices.cards:
        return None
    return facts.group(devices.cards[0].pci.rpartition("/")[0])
