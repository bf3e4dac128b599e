"""The facts of a machine as JSON, for scripts: schema selfhost.host/1."""

import dataclasses
from enum import StrEnum

from selfhost.hosts import cluster
from selfhost.hosts.placement import refusal
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.host import Accelerator, Fact, Host, Known, Support, Unknown
from selfhost.shapes.surroundings import Engine, Surroundings


def to_json(host: Host) -> dict[str, object]:
    """The stable JSON form (schema selfhost.host/1). A fact is {"value", "how"} or {"unknown": reason}.

    Only a wide look at the machine fills `drivers`, `engines`, `cdi`, `toolkits`, `limits`, `kernel`, `links` and
    `cluster`; without it they are null, and `links` is empty. `driver` is the short form of `drivers` for NVIDIA.
    Memory is in bytes. Keys are only ever added.
    """
    around = host.surroundings
    return {
        "schema": "selfhost.host/1",
        "ok": True,
        "machine": _machine(host),
        "driver": {"nvidia": _fact(host.driver)},
        "drivers": plain(around.drivers) if around else None,
        "accelerators": [_accelerator(card) for card in host.accelerators],
        "links": plain(host.links),
        "env": host.env,
        "engines": [_engine(engine) for engine in around.engines] if around else None,
        "cdi": plain(around.cdi) if around else None,
        "toolkits": plain(around.toolkits) if around else None,
        "limits": _limits(around) if around else None,
        "kernel": _kernel(around) if around else None,
        "cluster": _cluster(around) if around else None,
        "disks": [{"path": disk.path, "total_bytes": disk.total, "free_bytes": disk.free} for disk in host.disks],
        "pci": plain(host.pci),
        "findings": [finding.to_json() for finding in findings(host)],
    }


def plain(value: object) -> object:
    """Any shape of a host as JSON has it: facts in their own form, enumerations by value, tuples as lists."""
    if isinstance(value, Known | Unknown):
        return {"unknown": value.reason} if isinstance(value, Unknown) else {"value": value.value, "how": value.how}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def _machine(host: Host) -> dict[str, object]:
    return {
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
        "nesting": plain(host.nesting),
    }


def _engine(engine: Engine) -> dict[str, object]:
    """Containers by name and image alone: the rest of them is long, and holds what people put into environments."""
    fields = {field.name: plain(getattr(engine, field.name)) for field in dataclasses.fields(engine)}
    return {**fields, "containers": [_container(one) for one in engine.containers]}


def _container(seen: dict[str, object]) -> dict[str, object]:
    config = seen.get("Config")
    image = config.get("Image") if isinstance(config, dict) else seen.get("Image")
    return {"name": str(seen.get("Name") or "").lstrip("/"), "image": image}


def _limits(around: Surroundings) -> dict[str, object]:
    return {
        "shm_bytes": _fact(around.shm_bytes),
        "memlock_bytes": _fact(around.memlock_bytes),
        "swap_bytes": _fact(around.swap_bytes),
        "pids": _fact(around.pids_limit),
    }


def _kernel(around: Surroundings) -> dict[str, object]:
    return {
        "arguments": list(around.kernel_arguments),
        "iommu": around.iommu,
        "selinux": around.selinux,
        "apparmor": around.apparmor,
        "user_namespace": around.user_namespace,
        "uid": _fact(around.uid),
        "groups": list(around.groups),
        "dev_char_missing": list(around.dev_char_missing),
        "nvswitches": around.nvswitches,
        "fabric_manager": around.fabric_manager,
    }


def _cluster(around: Surroundings) -> dict[str, object]:
    """Nodes by what a scheduler looks at; every other object by kind and name."""
    return {
        "nodes": [
            {
                "name": cluster.name(node),
                "labels": dict(cluster.labels(node)),
                "taints": [dict(taint) for taint in cluster.taints(node)],
                "devices": dict(cluster.devices(node)),
                "replicas": cluster.replicas(node),
            }
            for node in around.nodes
        ],
        "objects": [{"kind": one.get("kind"), "name": cluster.name(one)} for one in around.objects],
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


def _fact(fact: Fact[str] | Fact[int] | Fact[float] | Fact[bool]) -> object:
    return plain(fact)


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
        "memory_used_bytes": _fact(card.memory_used),
        "kernel_driver": card.kernel_driver,
        "driver_version": card.driver_version,
        "device_id": card.device_id,
        "integrated": card.integrated,
        "partitioning": card.partitioning.value,
        "partition_mode": card.partition_mode,
        "partitions": [
            {"name": part.name, "uuid": part.uuid, "memory_bytes": _fact(part.memory)} for part in card.partitions
        ],
        "tenants": [
            {"pid": tenant.pid, "name": tenant.name, "memory_bytes": _fact(tenant.memory)} for tenant in card.tenants
        ],
        "tool_index": dict(card.tool_index),
        "numa_node": card.numa_node,
        "fabric": card.fabric,
        "link_group": card.link_group,
        "pcie_link": card.pcie_link,
        "licence": card.licence,
        "nodes": [{**dataclasses.asdict(node), "mode": f"{node.mode:04o}"} for node in card.nodes],
    }
