"""What is decided only for a container, each line with its reason."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from selfhost.plan.container.choose import CONTAINER_ENGINES
from selfhost.plan.container.injection import way_in
from selfhost.plan.container.model_mount import ModelMount, model_mount
from selfhost.plan.container.reasons import reasons_of
from selfhost.plan.container.requirement import older_driver, without_requirement
from selfhost.plan.container.times import Wait, start_period, stop_grace
from selfhost.plan.container.user import User, user_of
from selfhost.plan.container.way import Way
from selfhost.plan.devices import Devices
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.host import Host, Known, Vendor
from selfhost.shapes.model import Model
from selfhost.shapes.plan import ContainerPlan, Decision, EngineBuild, Evidence, Image
from selfhost.shapes.service import Service
from selfhost.shapes.units import GIB, format_bytes

PORT = 8000
LISTEN = "0.0.0.0"  # noqa: S104 - inside the container; published on loopback
HOME = "/var/tmp"  # noqa: S108 - in every image, writable for every user
_ONE_RANK, _MORE_RANKS = GIB, 16 * GIB
_OWN_MOUNTS = 2
"""The model and the caches."""
_TRIES = "on-failure:3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is settled before. `weights` in bytes."""

    runtime: str
    host: Host
    model: Model
    service: Service
    build: EngineBuild
    image: Image | None
    reference: str
    image_reason: str
    devices: Devices
    ranks: int
    weights: int
    passed: PassedOn

    @property
    def kind(self) -> str:
        return CONTAINER_ENGINES[self.runtime]


def container_plan(case: Case) -> tuple[ContainerPlan, tuple[Decision, ...]]:
    """Raises EnvironmentMissing where the engine was seen and cannot hand the devices in."""
    way = way_in(case.devices, host=case.host, kind=case.kind, service=case.service)
    if older_driver(case.build, case.host):
        way = without_requirement(way)
    mount, user = model_mount(case.model), user_of(case.host, case.image, kind=case.kind)
    loading, ending = start_period(case.model, case.build, weights=case.weights), stop_grace(case.build, case.passed)
    restart = _restart(case)
    plan = ContainerPlan(
        engine=case.kind,
        image=_reference(case),
        injection=way.injection,
        model_source=mount.source,
        model_target=mount.target,
        model_path=mount.path,
        port=PORT,
        home=HOME,
        cache_volume=_volume(case),
        user=user.text,
        shm_bytes=_shared_memory(case),
        start_period_s=loading.seconds,
        stop_grace_s=ending.seconds,
        read_only=_read_only(case),
        restart=restart.first,
        restart_checked=restart.checked,
    )
    decisions = tuple(_decisions(case, plan, way, mount, user, loading, ending, restart))
    return replace(plan, reasons=_reasons(case, plan, way, decisions)), decisions


_KEYS = {
    "model folder": "mounts.0",
    "caches": "mounts.1",
    "user": "user",
    "shared memory": "shm_bytes",
    "loading time": "health",
    "stop time": "stop_grace_s",
    "root file system": "read_only",
    "restart": "restart",
}


def _reasons(case: Case, plan: ContainerPlan, way: Way, decisions: tuple[Decision, ...]) -> dict[str, str]:
    said = {_KEYS[one.field]: one.reason for one in decisions if one.field in _KEYS and one.reason}
    found = reasons_of(case.build, way, offset=_OWN_MOUNTS + plan.read_only)
    if plan.read_only:
        found[f"mounts.{_OWN_MOUNTS}"] = "beside the caches the only place that is written; emptied at each start"
    return {**found, "image": case.image_reason, **said}


def _reference(case: Case) -> str:
    """With its registry where podman runs it: podman asks, or refuses, where a short name belongs."""
    registry, slash, _ = case.reference.partition("/")
    if case.kind != "podman" or (slash and (set(".:") & set(registry) or registry == "localhost")):
        return case.reference
    return f"docker.io/{case.reference if slash else f'library/{case.reference}'}"


def _volume(case: Case) -> str:
    """A name for kernels that were compiled by this image for this card."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", case.reference.partition("@")[0].rpartition("/")[2]).strip("-")
    arch = case.devices.cards[0].arch if case.devices.cards else None
    return f"selfhost-cache-{name}-{arch.value if isinstance(arch, Known) else case.host.cpu.architecture}"


def _shared_memory(case: Case) -> int:
    total = case.host.memory.total
    most = total.value // 2 if isinstance(total, Known) else _MORE_RANKS
    return _ONE_RANK if case.ranks == 1 else max(_ONE_RANK, min(_MORE_RANKS, most))


def _read_only(case: Case) -> bool:
    return not any(card.vendor is Vendor.NVIDIA for card in case.devices.cards)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Restart:
    first: str
    checked: str
    reason: str


def _restart(case: Case) -> _Restart:
    if any(card.unified for card in case.devices.cards):
        why = "card and machine share one memory: an engine that runs out of it again and again takes the machine along"
        return _Restart(first="no", checked="no", reason=why)
    return _Restart(
        first=_TRIES,
        checked="unless-stopped",
        reason="a start that fails stops after three tries; `selfhost up` lets it start by itself after one that "
        "was checked",
    )


def _decisions(
    case: Case, plan: ContainerPlan, way: Way, mount: ModelMount, user: User, loading: Wait, ending: Wait,
    restart: _Restart,
) -> Iterator[Decision]:  # fmt: skip
    yield Decision(
        field="devices enter by",
        value=way.value,
        reason=way.reason,
        source=way.source,
        evidence=way.evidence,
        evidence_note=way.note,
    )
    facts = (
        ("model folder", mount.source, mount.reason),
        ("caches", plan.cache_volume, "a volume for what is compiled at the first start, for this image and card only"),
        ("user", user.text or "the image's own", user.reason or "the image has no user without root"),
        ("shared memory", format_bytes(plan.shm_bytes), _shm_reason(case)),
        ("loading time", f"{plan.start_period_s:.0f} s", loading.reason),
        ("stop time", f"{plan.stop_grace_s:.0f} s", ending.reason),
        ("root file system", "read-only" if plan.read_only else "writable", _root_reason(plan)),
        ("restart", plan.restart, restart.reason),
    )
    for field, value, reason in facts:
        yield Decision(field=field, value=value, reason=reason, source="selfhost", evidence=Evidence.READ_IN_CODE)


def _shm_reason(case: Case) -> str:
    if case.ranks == 1:
        return "processes of one engine hand data over by it; Docker's 64 MiB are too few"
    return f"{case.ranks} ranks hand data over by it (NCCL, RCCL, oneCCL); taken only as far as it is used"


def _root_reason(plan: ContainerPlan) -> str:
    if plan.read_only:
        return "nothing but the caches and /tmp is written"
    return "NVIDIA's toolkit writes the driver's libraries into it at the start"
