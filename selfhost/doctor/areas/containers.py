"""Container engines: whether they answer, and whether they can hand in the cards of this machine."""

from collections.abc import Iterator
from typing import Final

from selfhost.doctor.area import CONTAINERS, Seen, area
from selfhost.shapes.finding import Finding, Place, RunOn, Severity
from selfhost.shapes.host import Known, Unknown, Vendor
from selfhost.shapes.surroundings import CdiSpec, Engine

_NVIDIA_PAGE: Final = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
_START: Final = {
    "docker": (
        "start it, if containers are wanted:\nsudo systemctl start docker",
        "or let a role start it, now and with the machine:\nselfhost prepare --only docker",
    )
}
_ROLE: Final = "or let a role do it:\nselfhost prepare --only nvidia_container_toolkit"
_WAYS: Final = {
    "docker": "sudo nvidia-ctk runtime configure --runtime=docker\nsudo systemctl restart docker",
    "podman": "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
}


_NO_SOCKET = "Layer: container engine. Its socket belongs to a group that this process is not in."
_NO_DAEMON = "Layer: container engine. Podman has no daemon: it is this user, here, who may not start containers."


@area("containers", order=30)
def containers(seen: Seen) -> None:
    around = seen.host.surroundings
    if around is None:
        seen.unknowns.append("container engines were not looked at")
        return
    for engine in around.engines:
        seen.findings.extend(_silent(engine))
        seen.findings.extend(_cannot_inject(seen, engine))
        seen.findings.extend(_desktop(seen, engine))
    for spec in around.cdi:
        seen.findings.extend(_cdi(spec))
    said = [_said(engine) for engine in around.engines if _answers(engine)]
    seen.calm = "; ".join(said) or ("" if around.engines else "no engine here; a process serves without one")
    seen.unknowns.extend(
        f"{engine.kind}: {engine.answers.reason}"
        for engine in around.engines
        if isinstance(engine.answers, Unknown) and "permission" not in engine.answers.reason.lower()
    )


def _answers(engine: Engine) -> bool:
    return isinstance(engine.answers, Known) and engine.answers.value


def _said(engine: Engine) -> str:
    kind = " rootless" if isinstance(engine.rootless, Known) and engine.rootless.value else ""
    can = f", hands in {', '.join(engine.injects)}" if engine.injects else ""
    return f"{engine.kind} {engine.version}{kind}{can}"


def _silent(engine: Engine) -> Iterator[Finding]:
    if _answers(engine):
        return
    reason = engine.answers.reason if isinstance(engine.answers, Unknown) else engine.answers.how
    if "permission" in reason.lower() or "may not open its socket" in reason:
        yield Finding(
            id="HX102",
            severity=Severity.WARNING,
            title=f"{engine.kind} does not let this user in",
            place=Place(object=engine.kind),
            evidence=reason.partition(";")[0],
            why=_NO_SOCKET if engine.kind == "docker" else _NO_DAEMON,
            fix=(
                'join its group (it may do all that root may), log in again:\nsudo usermod -aG docker "$USER"'
                if engine.kind == "docker"
                else "see what it lacks for this user (subordinate ids, a runtime folder, nesting):\npodman info",
                f"or let a role do it:\nselfhost prepare --only {engine.kind}",
            ),
            source="https://docs.docker.com/engine/install/linux-postinstall/",
        )
    elif isinstance(engine.answers, Known):
        yield Finding(
            id="HX101",
            severity=Severity.INFO,
            title=f"{engine.kind} is installed and does not answer",
            place=Place(object=engine.kind),
            evidence=reason.partition(";")[0],
            why="Layer: container engine. Nothing of it can be used until it runs.",
            fix=_START.get(engine.kind, ()),
            source="https://docs.docker.com/engine/daemon/start/",
        )


def _cannot_inject(seen: Seen, engine: Engine) -> Iterator[Finding]:
    """Only of a card that works here: one that does not has its own finding."""
    works = any(card.vendor is Vendor.NVIDIA for card in seen.host.usable_accelerators)
    inside = any(label in CONTAINERS or label == "pod" for label in seen.labels)
    ways = [way for way in engine.injects if way.startswith("nvidia:")]
    if not works or inside or ways or engine.remote or engine.desktop or not _answers(engine):
        return
    yield Finding(
        id="HX103",
        severity=Severity.WARNING,
        title=f"{engine.kind} cannot hand NVIDIA cards into containers",
        place=Place(object=engine.kind),
        evidence=f"runtimes: {', '.join(engine.runtimes) or 'none'}; CDI: {', '.join(engine.cdi_devices) or 'none'}",
        why="Layer: container engine. The card works on this machine; the engine knows no runtime and no CDI device "
        "of NVIDIA, so a container gets nodes at best, and no driver libraries.",
        fix=(
            f"install nvidia-container-toolkit, then:\n{_WAYS.get(engine.kind, _WAYS['docker'])}",
            _ROLE,
        ),
        run_on=RunOn.CONTAINER_HOST if engine.sibling else RunOn.HERE,
        source=_NVIDIA_PAGE,
    )


def _desktop(seen: Seen, engine: Engine) -> Iterator[Finding]:
    if not engine.desktop or "wsl2" in seen.labels or not seen.host.usable_accelerators:
        return
    yield Finding(
        id="HX104",
        severity=Severity.WARNING,
        title="Docker Desktop on Linux cannot hand cards in",
        place=Place(object=engine.kind),
        evidence=f"{engine.kind} {engine.version}: {engine.os or 'Docker Desktop'}",
        why="Layer: container engine. Its containers run in a virtual machine that the cards of this one do not reach.",
        fix=("use Docker Engine, which stands beside it:\ndocker context use default",),
        source="https://docs.docker.com/desktop/features/gpu/",
    )


def _cdi(spec: CdiSpec) -> Iterator[Finding]:
    if not spec.fault:
        return
    yield Finding(
        id="HX105",
        severity=Severity.WARNING,
        title=f"{spec.file} cannot be read",
        place=Place(path=spec.file),
        evidence=spec.fault,
        why="Layer: container engine. Its CDI devices do not exist for any engine until it can be read.",
        fix=(
            f"write it anew:\nsudo nvidia-ctk cdi generate --output={spec.file}",
            *((_ROLE,) if spec.file == "/etc/cdi/nvidia.yaml" else ()),
        ),
        source="https://github.com/cncf-tags/container-device-interface",
    )
