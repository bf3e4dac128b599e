"""What is said of cards that a container lost: a clause for `status`, a finding for `doctor`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from selfhost.deploy.inside import Card, Fate
from selfhost.plan.container.surrounding import at_least, engine_seen, nvidia_toolkit
from selfhost.runtimes.containers import container_name
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Plan

_GPUS_BY_CDI = (29,)
"""From this version of Docker on a device request is resolved by CDI first (https://github.com/moby/moby/pull/50228)."""
_RELOAD = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"
_XID = "https://docs.nvidia.com/deploy/xid-errors/"
_MISMATCH = "https://docs.nvidia.com/deploy/nvidia-smi/index.html"
_LINKS = """sudo nvidia-ctk system create-dev-char-symlinks --create-all
echo 'ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia", RUN+="/usr/bin/nvidia-ctk system create-dev-char-symlinks \
--create-all"' | sudo tee /etc/udev/rules.d/71-nvidia-dev-char.rules"""
_SHORT = {
    Fate.REFUSED: "is refused inside its container",
    Fate.OFF_THE_BUS: "is off the bus",
    Fate.DRIVER: "has another driver than its container",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Whose cards they are. `again` is the command that starts the deployment, empty when nobody knows it any more."""

    plan: Plan
    outside: Host
    again: str = ""

    @property
    def container(self) -> str:
        return container_name(self.plan.name)

    @property
    def engine(self) -> str:
        return self.plan.container.engine if self.plan.container is not None else "docker"

    @property
    def way(self) -> str:
        return self.plan.container.injection.way if self.plan.container is not None else "none"

    @property
    def by_hook(self) -> bool:
        """Only NVIDIA's hook knows of the device rules; nodes named beside it are known to systemd as well."""
        if self.plan.container is None or self.plan.container.injection.devices:
            return False
        if self.way == "nvidia runtime":
            toolkit = nvidia_toolkit(self.outside)
            return toolkit is not None and toolkit.mode == "legacy"
        engine = engine_seen(self.outside, self.engine)
        by_cdi = engine is None or (at_least(engine, *_GPUS_BY_CDI) and "nvidia:cdi" in engine.injects)
        return self.way == "device request" and not by_cdi

    @property
    def anew(self) -> str:
        """Commands that make the container again."""
        return f"selfhost down {self.plan.name}\n{self.again or f'selfhost up --name {self.plan.name}'}"


def clause(cards: Sequence[Card], plan: Plan) -> str:
    """For `status`; empty where no card is lost."""
    lost = [card for card in cards if card.lost]
    if not lost:
        return ""
    said = dict.fromkeys(f"{card.name} {_SHORT[card.fate]} ({card.said.splitlines()[0]})" for card in lost)
    return f"{'; '.join(said)}. Why, and what helps: selfhost doctor --inside {plan.name}"


def findings(cards: Sequence[Card], told: Told) -> Iterator[Finding]:
    """One for each cause: a cause takes all cards of a container, or several."""
    for fate, make in ((Fate.REFUSED, _refused), (Fate.OFF_THE_BUS, _off_the_bus), (Fate.DRIVER, _driver)):
        hit = [card for card in cards if card.fate is fate]
        if hit:
            yield make(hit, told)


def _refused(cards: Sequence[Card], told: Told) -> Finding:
    restart = (
        f"start the container again, which lets the card in until the next time:\n{told.engine} restart "
        f"{told.container}"
        if told.by_hook
        else f"make the container again:\n{told.anew}"
    )
    return _finding(
        "HX305",
        f"{told.plan.name}: {_cards(cards)} was granted and is refused again inside",
        cards,
        told,
        why=f"Layer: device cgroup. The node is there and its rule is gone: {_who(told)} What the engine holds open "
        "goes on working; whatever opens the card anew fails (`Failed to initialize NVML: Unknown Error`).",
        fix=(restart, *_lasting(told)),
        source=_RELOAD,
    )


def _who(told: Told) -> str:
    if told.by_hook:
        return (
            "the card came in through NVIDIA's hook, behind systemd's back, and `systemctl daemon-reload` or an update "
            "of the container made systemd write the rules that it knows."
        )
    around = told.outside.surroundings
    if around is not None and around.dev_char_missing:
        return (
            "it was written anew without what systemd does not find by number: /dev/char has no link to "
            f"{', '.join(around.dev_char_missing[:3])}."
        )
    return "something wrote the container's device rules anew, as an update of it or `systemctl daemon-reload` does."


def _lasting(told: Told) -> Iterator[str]:
    """What keeps it away."""
    around = told.outside.surroundings
    if told.by_hook:
        yield by_cdi(told)
    if around is not None and around.dev_char_missing:
        yield f"so that it stays: make the links, now and at each start of the machine:\n{_LINKS}"


def by_cdi(told: Told) -> str:
    """The action that keeps a card in its container for good."""
    return (
        "so that it stays: let the engine itself hand the card in (CDI), and make the container again:\n"
        f"selfhost prepare --only nvidia_container_toolkit\n{told.anew}"
    )


def _off_the_bus(cards: Sequence[Card], told: Told) -> Finding:
    nvidia = told.plan.build.backend == "cuda"
    log = "sudo dmesg | grep -i -e NVRM -e Xid" if nvidia else "sudo dmesg | grep -i -e amdgpu -e xe -e i915"
    return _finding(
        "HX310",
        f"{told.plan.name}: {_cards(cards)} does not answer on the machine itself any more",
        cards,
        told,
        why="Layer: machine. The card fell off the bus (Xid 79 in the kernel's log) or waits for a reset; the usual "
        "reasons are power, heat and the slot. No container brings it back.",
        fix=(
            f"see what the kernel logged:\n{log}",
            "switch the machine off and on again: a restart alone does not bring every card back",
            f"then make the container again:\n{told.anew}",
        ),
        source=_XID if nvidia else "",
    )


def _driver(cards: Sequence[Card], told: Told) -> Finding:
    at_home = any("mismatch" in card.said and not card.said.startswith("inside") for card in cards)
    why = (
        "Layer: driver. It was updated while its old module is loaded, so its library and its module differ."
        if at_home
        else "Layer: container. The container still has the library of the driver that was there when it was made."
    )
    first = ("restart the machine, which loads the new module",) if at_home else ()
    spec = (
        ("write the list of devices for the new driver:\nsudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",)
        if told.way == "cdi"
        else ()
    )
    return _finding(
        "HX311",
        f"{told.plan.name}: the driver of {_cards(cards)} changed under its container",
        cards,
        told,
        why=f"{why} What computes goes on; whatever starts anew fails.",
        fix=(*first, *spec, f"make the container again:\n{told.anew}"),
        source=_MISMATCH,
    )


def _finding(
    id: str, title: str, cards: Sequence[Card], told: Told, *, why: str, fix: tuple[str, ...], source: str
) -> Finding:
    return Finding(
        id=id,
        severity=Severity.ERROR,
        title=title,
        place=Place(object=f"container {told.container}"),
        evidence="\n".join(dict.fromkeys(card.said for card in cards if card.said)),
        why=why,
        fix=fix,
        source=source,
    )


def _cards(cards: Sequence[Card]) -> str:
    names = list(dict.fromkeys(card.name for card in cards))
    return f"{len(cards)} × {names[0]}" if len(cards) > 1 and len(names) == 1 else " + ".join(names)
