"""What a container was granted, beside what the process inside can use. Pure: from its inspect object and two hosts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from selfhost.shapes.finding import Finding, Place, RunOn, Severity
from selfhost.shapes.host import Accelerator, DeviceNode, Host, Known, Vendor

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What the engine was told to hand in."""

    name: str
    privileged: bool
    nodes: tuple[str, ...]
    requests: tuple[Mapping[str, Any], ...]
    runtime: str
    env: Mapping[str, str]

    @classmethod
    def of(cls, inspect: Mapping[str, Any]) -> "Grant":
        """Out of a `docker inspect` or `podman inspect` object; what it leaves out was not given."""
        host = inspect.get("HostConfig") or {}
        env = (inspect.get("Config") or {}).get("Env") or ()
        devices = host.get("Devices") or ()
        return cls(
            name=str(inspect.get("Name", "")).lstrip("/"),
            privileged=bool(host.get("Privileged")),
            nodes=tuple(str(one.get("PathOnHost") or one.get("PathInContainer") or "") for one in devices),
            requests=tuple(host.get("DeviceRequests") or ()),
            runtime=str(host.get("Runtime") or inspect.get("OCIRuntime") or ""),
            env=dict(str(line).split("=", 1) for line in env if "=" in str(line)),
        )


def compare(inspect: Mapping[str, Any], outside: Host, inside: Host) -> Comparison:
    """A row for each card of the machine, and a finding for each gap between what was granted and what works."""
    grant = Grant.of(inspect)
    rows: list[Row] = []
    findings: list[Finding] = []
    for card in outside.accelerators:
        by = granted_by(grant, card)
        seen = _same(card, inside.accelerators)
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
            findings.extend(_gaps(grant, card, seen))
    findings.extend(_masked(inside))
    return Comparison(rows=tuple(rows), findings=tuple({(one.id, one.title): one for one in findings}.values()))


def granted_by(grant: Grant, card: Accelerator) -> str:
    """The words of the grant that let this card in; empty for none."""
    if grant.privileged:
        return "privileged"
    for request in grant.requests:
        if _requested(request, card):
            return "a CDI device" if request.get("Driver") == "cdi" else "--gpus"
    for name, vendor in _GRANTING.items():
        value = grant.env.get(name)
        # Docker reads the variable only through the vendor's runtime.
        if vendor is card.vendor and value is not None and grant.runtime == vendor.value and _named(value, card):
            return f"{name}={value}"
    own = [node.path for node in card.nodes if node.path not in _shared(card)]
    return "--device" if any(_covers(given, path) for given in grant.nodes for path in own) else ""


def _shared(card: Accelerator) -> tuple[str, ...]:
    """Nodes that every card of the vendor is used through: one of them alone grants no card."""
    return tuple(
        node.path
        for node in card.nodes
        if node.path in ("/dev/nvidiactl", _UVM, "/dev/nvidia-uvm-tools", "/dev/kfd", "/dev/nvidia-modeset")
    )


def _covers(given: str, path: str) -> bool:
    return path == given or path.startswith(given.rstrip("/") + "/")


def _requested(request: Mapping[str, Any], card: Accelerator) -> bool:
    ids = [str(one) for one in request.get("DeviceIDs") or ()]
    if request.get("Driver") == "cdi":
        kind = f"{card.vendor.value}.com/gpu="
        return any(one.startswith(kind) and _named(one.removeprefix(kind), card) for one in ids)
    if card.vendor is not Vendor.NVIDIA:
        return False
    if ids:
        return any(_named(one, card) for one in ids)
    count = int(request.get("Count") or 0)
    return count < 0 or count > _number(card)


def _number(card: Accelerator) -> int:
    """As the vendor's tool counts; ours where it gave none."""
    return card.tool_index.get("nvidia-smi", card.index) if card.vendor is Vendor.NVIDIA else card.index


def _named(value: str, card: Accelerator) -> bool:
    words = [word.strip() for word in value.split(",")]
    if words[0] in _NOTHING:
        return False
    return "all" in words or str(_number(card)) in words or bool(card.uuid and card.uuid in words)


def _same(card: Accelerator, others: Sequence[Accelerator]) -> Accelerator | None:
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


def _gaps(grant: Grant, card: Accelerator, seen: Accelerator | None) -> Iterator[Finding]:
    refused = [node for node in seen.nodes if node.opened != "ok"] if seen else []
    for node in refused[:1]:
        yield _gap(grant, card, node)
    if seen and not refused and isinstance(seen.usable, Known) and not seen.usable.value:
        yield _finding(
            "HX308",
            f"{card.name} was granted and opens inside, but does not answer",
            grant,
            evidence=seen.usable.how,
            why="Layer: container. Nodes alone are not enough: the driver's libraries have to come in with them.",
            fix="start the container again by the vendor's runtime or CDI, which bring the libraries:\n"
            "docker run --gpus all …",
        )


def _gap(grant: Grant, card: Accelerator, node: DeviceNode) -> Finding:
    """By what opening said: lost again, by mode, or never there."""
    evidence = f"{node.path}: {node.opened}"
    if node.opened == "EPERM":
        return _finding(
            "HX305",
            f"{card.name} was granted and is refused again inside",
            grant,
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
            grant,
            evidence=f"{evidence}, mode {node.mode:04o}, group {node.gid}",
            why="Layer: file mode. The process inside is not in the group with this number; a name means another "
            "number inside.",
            fix=f"give the group by number:\ndocker run --group-add {node.gid} …",
        )
    return _finding(
        "HX307",
        f"{card.name} was granted without {node.path}",
        grant,
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


def _finding(id: str, title: str, grant: Grant, *, evidence: str, why: str, fix: str) -> Finding:
    return Finding(
        id=id,
        severity=Severity.ERROR,
        title=title,
        place=Place(object=f"container {grant.name}".strip()),
        evidence=evidence,
        why=why,
        fix=(fix,),
        run_on=RunOn.CONTAINER_HOST,
        source=_SOURCE,
    )
