"""Which roles of the play this machine needs, each with its reason; and how many steps a role has."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from selfhost.core.resources import resource
from selfhost.hosts import layers
from selfhost.shapes.host import Host, Known, Vendor
from selfhost.shapes.surroundings import Engine

ROLES: Final = ("docker", "podman", "nvidia_container_toolkit", "amd_access")
_INSTALLING: Final = ("docker", "podman", "nvidia_container_toolkit")
_NAME: Final = re.compile(r'^- name: "?(.+?)"?$', re.MULTILINE)
# A task that opens with one of these looks or speaks and changes nothing; every other one is a step.
_NO_STEP: Final = ("Look ", "Refuse ", "Say ", "Validating ", "Gathering ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One role, whether it is run, and why."""

    role: str
    run: bool
    reason: str


def choose(host: Host, only: Sequence[str] = ()) -> tuple[Choice, ...]:
    """Every role. `only` names those to run whatever the machine says."""
    if only:
        return tuple(
            Choice(role=role, run=role in only, reason="asked for" if role in only else "not asked for")
            for role in ROLES
        )
    around = next((layer.label for layer in host.nesting if layer.label in (*layers.CONTAINERS, "pod")), "")
    if around:
        reason = f"this is inside {around}: prepare the machine around it"
        return tuple(Choice(role=role, run=False, reason=reason) for role in ROLES)
    return tuple(Choice(role=role, run=run, reason=reason) for role in ROLES for run, reason in (_NEEDED[role](host),))


def is_step(task: str) -> bool:
    return not task.startswith(_NO_STEP)


def all_roles(chosen: Sequence[Choice]) -> tuple[str, ...]:
    """The roles that the play runs for these, in its order."""
    wanted = tuple(one.role for one in chosen if one.run)
    return ("packages", *wanted) if any(role in _INSTALLING for role in wanted) else wanted


def steps_of(role: str) -> int:
    folder = resource("playbooks", f"roles/{role}/tasks")
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yml")))
    return sum(is_step(name) for text in texts for name in _NAME.findall(text))


def _engine(host: Host, kind: str) -> Engine | None:
    around = host.surroundings
    return next((one for one in around.engines if one.kind == kind), None) if around else None


def _docker(host: Host) -> tuple[bool, str]:
    docker, podman = _engine(host, "docker"), _engine(host, "podman")
    if docker is not None and docker.desktop:
        return False, "Docker Desktop looks after itself"
    if docker is not None and docker.remote:
        return False, f"the Docker in use is on another machine, {docker.remote}"
    if docker is not None:
        return True, f"docker {docker.version} is here".replace("  ", " ")
    return (False, "Podman is here, one engine is enough") if podman else (True, "no container engine is here")


def _podman(host: Host) -> tuple[bool, str]:
    podman = _engine(host, "podman")
    return (True, f"podman {podman.version} is here") if podman else (False, "Docker is the usual engine")


def _nvidia(host: Host) -> tuple[bool, str]:
    if not any(card.vendor is Vendor.NVIDIA for card in host.accelerators):
        return False, "no NVIDIA card is here"
    if isinstance(host.driver, Known):
        return True, f"NVIDIA driver {host.driver.value} answers"
    return False, "an NVIDIA card, and no driver that answers: install that first (`selfhost doctor` says how)"


def _amd(host: Host) -> tuple[bool, str]:
    cards = [card for card in host.accelerators if card.vendor is Vendor.AMD]
    if not cards:
        return False, "no AMD card is here"
    if any(node.opened == "EACCES" for card in cards for node in card.nodes):
        return True, "a node of the AMD card may not be opened"
    return False, "the AMD card's nodes need no group" if cards[0].nodes else "the AMD card has no nodes yet"


_NEEDED: Final[dict[str, Callable[[Host], tuple[bool, str]]]] = {
    "docker": _docker,
    "podman": _podman,
    "nvidia_container_toolkit": _nvidia,
    "amd_access": _amd,
}
