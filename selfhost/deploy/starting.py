"""What a first selfhost.yaml says on this machine: its cards, and the model that a bare `up` would choose."""

from selfhost.deploy.choose import choose_model
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.detect import detect
from selfhost.models.hub import Hub
from selfhost.shapes.host import Known
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes
from selfhost.stack.starter import starter


def starter_for(work: Workplace) -> str:
    host = detect(work.system, disk_paths=())
    model, reason = choose_model(work, Service(model="", name=""), host, hub=Hub(work.env), here=False)
    cards = []
    for card in host.usable_accelerators:
        total = card.memory_total
        size = f", {format_bytes(total.value)}" if isinstance(total, Known) else ""
        cards.append((card.uuid or card.pci or str(card.index), f"{card.name}{size}"))
    return starter(model=model, reason=reason, cards=cards)
