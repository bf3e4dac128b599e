"""What a container was granted, beside what the process inside can use. Pure: from its inspect object and two hosts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from selfhost.shapes.finding import Finding, Place, RunOn, Severity
from selfhost.shapes.host import Accelerator, DeviceNode, Host, Known, Vendor
from selfhost.shapes.workload import DeviceRequest, Workload
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.readers.inspect import read

_GRANTING: Final = {"NVIDIA_VISIBLE_DEVICES": Vendor.NVIDIA, "AMD_VISIBLE_DEVICES": Vendor.AMD}
_MASKS: Final = {
    Vendor.NVIDIA: ("CUDA_VISIBLE_DEVICES",),
    Vendor.AMD: ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    Vendor.INTEL: ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"),
}
_NOTHING: Final = ("", "void", "none")
_UVM: Final = "/dev/nvidia-uvm"
_SOURCE: Final = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One card of the machine. `granted` says by what, empty when it was not."""

    card: str
    name: str
    granted: str
    openable: str
    usable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]

    def to_json(self) -> list[dict[str, str]]:
        return [
            {
                "card": row.card,
                "name": row.name,
                "granted": row.granted,
                "openable": row.openable,
                "usable": row.usable,
            }
            for row in self.rows
        ]


def container_of(inspect: Mapping[str, Any]) -> Workload:
    """Out of a `docker inspect` or `podman inspect` object; what it leaves out was not given."""
    found = read(json.dumps(inspect), path="", files=NO_FILES)
    return found[0] if found else Workload(name=str(inspect.get("Name", "")).lstrip("/"), argv=())


def compare(inspect: Mapping[str, Any], outside: Host, inside: Host) -> Comparison:
    """A row for each card of the machine, and a finding for each gap between what was granted and what works."""
    container = container_of(inspect)
    rows: list[Row] = []
    findings: list[Finding] = []
    for card in outside.accelerators:
        by = granted_by(container, card)
        seen = same_card(card, inside.accelerators)
        rows.append(
            Row(
                card=str(card.index),
                name=card.name,
                granted=by or "no",
                openable=_openable(seen),
                usable=_usable(seen),
            )
        )
        if by:
            findings.extend(_gaps(container, card, seen))
    findings.extend(_masked(inside))
    return Comparison(rows=tuple(rows), findings=tuple({(one.id, one.title): one for one in findings}.values()))


def granted_by(container: Workload, card: Accelerator) -> str:
    """The words of the grant that let this card in; empty for none."""
    if container.privileged:
        return "privileged"
    kind = f"{card.vendor.value}.com/gpu"
    if any(name.kind == kind and _named(name.name, card) for name in container.cdi):
        return "a CDI device"
    if any(_requested(request, card) for request in container.requests):
        return "--gpus"
    for name, vendor in _GRANTING.items():
        value = container.env.get(name)
        # Docker reads the variable only through the vendor's runtime.
        if vendor is card.vendor and value is not None and container.runtime == vendor.value and _named(value, card):
            return f"{name}={value}"
    own = [node.path for node in card.nodes if node.path not in _shared(card)]
    return "--device" if any(_covers(given.source, path) for given in container.devices for path in own) else ""


def _shared(card: Accelerator) -> tuple[str, ...]:
    """Nodes that every card of the vendor is used through: one of them alone grants no card."""
    return tuple(
        node.path
        for node in card.nodes
        if node.path in ("/dev/nvidiactl", _UVM, "/dev/nvidia-uvm-tools", "/dev/kfd", "/dev/nvidia-modeset")
    )


def _covers(given: str, path: str) -> bool:
    return path == given or path.startswith(given.rstrip("/") + "/")


def _requested(request: DeviceRequest, card: Accelerator) -> bool:
    if request.driver == "cdi" or card.vendor is not Vendor.NVIDIA:
        return False
    if request.ids:
        return any(_named(one, card) for one in request.ids)
    count = request.count or 0
    return count < 0 or count > _number(card)


def _number(card: Accelerator) -> int:
    """As the vendor's tool counts; ours where it gave none."""
    return card.tool_index.get("nvidia-smi", card.index) if card.vendor is Vendor.NVIDIA else card.index


def _named(value: str, card: Accelerator) -> bool:
    words = [word.strip() for word in value.split(",")]
    if words[0] in _NOTHING:
        return False
    return "all" in words or str(_number(card)) in words or bool(card.uuid and card.uuid in words)


def same_card(card: Accelerator, others: Sequence[Accelerator]) -> Accelerator | None:
    """The card as another place shows it: by uuid, else by its address on the bus."""
    for one in others:
        if one.vendor is card.vendor and ((card.uuid and one.uuid == card.uuid) or (card.pci and one.pci == card.pci)):
            return one
    return None


def _openable(seen: Accelerator | None) -> str:
    if seen is None:
        return "not seen"
    refused = next((node for node in seen.nodes if node.opened != "ok"), None)
    return f"{refused.path}: {refused.opened}" if refused else "yes"


def _usable(seen: Accelerator | None) -> str:
    if seen is None:
        return "no"
    if isinstance(seen.usable, Known):
        return "yes" if seen.usable.value else f"no: {seen.usable.how}"
    return f"unknown: {seen.usable.reason}"


def _gaps(container: Workload, card: Accelerator, seen: Accelerator | None) -> Iterator[Finding]:
    refused = [node for node in seen.nodes if node.opened != "ok"] if seen else []
    for node in refused[:1]:
        yield _gap(container, card, node)
    if seen and not refused and isinstance(seen.usable, Known) and not seen.usable.value:
        yield _finding(
            "HX308",
            f"{card.name} was granted and opens inside, but does not answer",
            container,
            evidence=seen.usable.how,
            why="Layer: container. Nodes alone are not enough: the driver's libraries have to come in with them.",
            fix="start the container again by the vendor's runtime or CDI, which bring the libraries:\n"
            "docker run --gpus all …",
        )


def _gap(container: Workload, card: Accelerator, node: DeviceNode) -> Finding:
    """By what opening said: lost again, by mode, or never there."""
    evidence = f"{node.path}: {node.opened}"
    if node.opened == "EPERM":
        return _finding(
            "HX305",
            f"{card.name} was granted and is refused again inside",
            container,
            evidence=evidence,
            why="Layer: device cgroup. The node is there and its rule is gone: `systemctl daemon-reload` or an "
            "update of the container makes systemd write the rules that it knows; those of NVIDIA's hook are not among "
            "them.",
            fix="start the container again; with CDI it does not come back:\ndocker run --device nvidia.com/gpu=all …",
        )
    if node.opened == "EACCES":
        return _finding(
            "HX306",
            f"{card.name} was granted, and its group was not",
            container,
            evidence=f"{evidence}, mode {node.mode:04o}, group {node.gid}",
            why="Layer: file mode. The process inside is not in the group with this number; a name means another "
            "number inside.",
            fix=f"give the group by number:\ndocker run --group-add {node.gid} …",
        )
    return _finding(
        "HX307",
        f"{card.name} was granted without {node.path}",
        container,
        evidence=evidence,
        why="Layer: container. This node is needed to compute"
        + (", and CUDA then fails with error 999." if node.path == _UVM else "."),
        fix=f"hand it in too (on the host it is made by `nvidia-modprobe -u -c=0`):\ndocker run --device {node.path} …"
        if card.vendor is Vendor.NVIDIA
        else f"hand it in too:\ndocker run --device {node.path} …",
    )


def _masked(inside: Host) -> Iterator[Finding]:
    """A selection inside that leaves nothing of what was let in."""
    for card in inside.accelerators[:1]:
        for name in _MASKS.get(card.vendor, ()):
            value = inside.env.get(name)
            if value is not None and value.strip() in ("", "-1", "none", "NoDevFiles"):
                yield Finding(
                    id="HX309",
                    severity=Severity.ERROR,
                    title=f"{name} hides every card inside",
                    place=Place(object=name),
                    evidence=f"{name}={value}",
                    why="Layer: process. The cards are let in, and this variable selects none of them.",
                    fix=(f"leave the variable out where the container is started:\nunset {name}",),
                    run_on=RunOn.CONTAINER_HOST,
                    source="https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html",
                )


def _finding(id: str, title: str, container: Workload, *, evidence: str, why: str, fix: str) -> Finding:
    return Finding(
        id=id,
        severity=Severity.ERROR,
        title=title,
        place=Place(object=f"container {container.name}".strip()),
        evidence=evidence,
        why=why,
        fix=(fix,),
        run_on=RunOn.CONTAINER_HOST,
        source=_SOURCE,
    )
