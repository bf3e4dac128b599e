"""A machine that nobody looked at: so many cards of one name, empty, behind a current driver. For `fit --gpu`."""

from selfhost.core.errors import InputError
from selfhost.hosts import cards
from selfhost.hosts.cards import Card
from selfhost.hosts.engine_support import driver_floor, support
from selfhost.shapes.host import Accelerator, Cpu, Fact, Host, Known, Link, Memory, Unknown, Vendor

_NOBODY = "nobody looked at this machine"
_HOW = "cards.toml"
_ON_ARM = ("sm_110", "sm_121")
"""Cards that come with Arm processors only (Thor, GB10), for which the engine's wheels have other code."""


def host_with(name: str, *, count: int = 1, memory: int | None = None) -> Host:
    """A host with `count` empty cards called `name`; `memory` in bytes overrides the table. Raises InputError."""
    card = cards.named(name)
    if card is None:
        raise _unknown(name)
    size = memory or card.memory
    total: Fact[int] = Known(size, "--gpu-memory" if memory else _HOW) if size else _undecided(card)
    found = tuple(_one(card, index, total) for index in range(count))
    pairs = ((a, b) for a in range(count) for b in range(a + 1, count))
    return Host(
        os="unknown",
        kernel="unknown",
        python="unknown",
        cpu=Cpu(model="unknown", architecture=_architecture(card), cores=Unknown(_NOBODY), cores_online=0, features=()),
        memory=Memory(total=total if card.unified else Unknown(_NOBODY), available=Unknown(_NOBODY),
                      limit=total if card.unified else Unknown(_NOBODY)),
        accelerators=found,
        driver=Known(f"{driver_floor()}.0", "assumed current") if card.vendor is Vendor.NVIDIA else Unknown(_NOBODY),
        links=tuple(Link(a=a, b=b, kind=_kind(card)) for a, b in pairs if card.linked),
    )  # fmt: skip


def _architecture(card: Card) -> str:
    return "aarch64" if card.arch in _ON_ARM else "x86_64"


def _kind(card: Card) -> str:
    return "XGMI" if card.vendor is Vendor.AMD else "NV"


def _one(card: Card, index: int, total: Fact[int]) -> Accelerator:
    compiled, why = support(card.vendor.value, Known(card.arch, _HOW), architecture=_architecture(card))
    return Accelerator(
        index=index,
        vendor=card.vendor,
        name=card.name,
        pci=f"imagined:{index}",
        arch=Known(card.arch, _HOW),
        memory_total=total,
        memory_free=Unknown("not yours, so taken as empty"),
        support=compiled,
        support_reason=why,
        present=Known(value=True, how="imagined"),
        openable=Known(value=True, how="imagined"),
        usable=Known(value=True, how="imagined"),
        unified=card.unified,
        link_group="imagined" if card.linked else "",
    )


def _undecided(card: Card) -> Unknown:
    return Unknown(f"the firmware decides how much memory {card.name} sees; say it with --gpu-memory GIB")


def _unknown(name: str) -> InputError:
    near = cards.nearest(name)
    return InputError(
        f"no card called `{name}` is in the table",
        why=f"{len(cards.cards())} cards are, with the memory that drivers report and their data sheet's bandwidth.",
        fix=(
            *(f"perhaps {other}" for other in near),
            "on the machine itself no name is needed:\nselfhost fit MODEL",
            "of another machine a snapshot will do:\nselfhost detect --save machine.json",
        ),
        id="CF031",
    )
