"""The facts of a machine as JSON, for scripts: schema selfhost.host/1."""

import dataclasses

from selfhost.hosts.placement import refusal
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.host import Accelerator, Fact, Host, Support, Unknown


def to_json(host: Host) -> dict[str, object]:
    """The stable JSON form (schema selfhost.host/1). A fact is {"value", "how"} or {"unknown": reason}."""
    return {
        "schema": "selfhost.host/1",
        "ok": True,
        "machine": {
            "os": host.os,
            "kernel": host.kernel,
            "python": host.python,
            "cpu": {
                "model": host.cpu.model,
                "architecture": host.cpu.architecture,
                "features": list(host.cpu.features),
                "cores_online": host.cpu.cores_online,
                "numa_nodes": host.cpu.numa_nodes,
            },
            "cores": _fact(host.cpu.cores),
            "memory_bytes": _fact(host.memory.total),
            "memory_available_bytes": _fact(host.memory.available),
            "memory_limit_bytes": _fact(host.memory.limit),
            "nesting": [dataclasses.asdict(layer) for layer in host.nesting],
        },
        "driver": {"nvidia": _fact(host.driver)},
        "accelerators": [_accelerator(card) for card in host.accelerators],
        "disks": [{"path": disk.path, "total_bytes": disk.total, "free_bytes": disk.free} for disk in host.disks],
        "pci": [dataclasses.asdict(device) for device in host.pci],
        "findings": [finding.to_json() for finding in findings(host)],
    }


def findings(host: Host) -> tuple[Finding, ...]:
    """One for each card that no engine is started on; for information where no engine has code for the card at all."""
    return tuple(
        Finding(
            id=refused.id,
            severity=Severity.INFO if card.support is Support.UNSUPPORTED else Severity.WARNING,
            title=refused.what,
            place=Place(path=next((node.path for node in card.nodes if node.opened != "ok"), ""), object=card.name),
            evidence=refused.evidence,
            why=refused.why,
            fix=refused.fix,
        )
        for card in host.accelerators
        if (refused := refusal(host, card)) is not None
    )


def _fact(fact: Fact[str] | Fact[int] | Fact[float] | Fact[bool]) -> dict[str, object]:
    return {"unknown": fact.reason} if isinstance(fact, Unknown) else {"value": fact.value, "how": fact.how}


def _accelerator(card: Accelerator) -> dict[str, object]:
    return {
        "index": card.index,
        "vendor": card.vendor.value,
        "name": card.name,
        "uuid": card.uuid,
        "pci": card.pci,
        "arch": _fact(card.arch),
        "memory_total_bytes": _fact(card.memory_total),
        "memory_free_bytes": _fact(card.memory_free),
        "unified_memory": card.unified,
        "support": card.support.value,
        "support_reason": card.support_reason,
        "present": _fact(card.present),
        "openable": _fact(card.openable),
        "usable": _fact(card.usable),
        "kernel_driver": card.kernel_driver,
        "nodes": [{**dataclasses.asdict(node), "mode": f"{node.mode:04o}"} for node in card.nodes],
    }
