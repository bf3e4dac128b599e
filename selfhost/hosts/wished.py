"""Which cards a person means with --device: indexes, uuids (or their beginning, as CUDA accepts it), PCI addresses."""

import re

from selfhost.core.errors import InputError
from selfhost.hosts.obstacle import CPU_INSTEAD
from selfhost.hosts.slices import slices
from selfhost.shapes.host import Accelerator, Host, Partitioning

_UUID_BEGINNING = 6
"""`GPU-` or `MIG-` and more than two digits: shorter ones would match by chance."""


def wished(host: Host, text: str) -> tuple[Accelerator, ...]:
    """The cards of `0`, `0,1` or `GPU-…,GPU-…`, in the order given. Raises InputError."""
    words = [word.strip() for word in text.split(",")]
    found = tuple(_one(host, word, text) for word in words)
    twice = next((card for place, card in enumerate(found) if card in found[:place]), None)
    if twice is not None:
        raise _not_together(text, f"it names {twice.name} twice")
    if len({card.vendor for card in found}) > 1:
        raise _not_together(text, f"{found[0].name} and {found[-1].name} need different builds of an engine")
    cut = next((card for card in found if card.partitioning is Partitioning.MIG), None)
    if cut is not None and len(found) > 1:
        raise _not_together(text, f"{cut.name} is a card in MIG mode, whose slices reach no other device")
    return found


def _not_together(text: str, reason: str) -> InputError:
    return InputError(
        f"--device {text}: {reason}",
        why="A model that is spread takes devices of one maker, each of its own, that can reach each other.",
        fix=("name each card once and of one maker, or take what selfhost chooses:\nselfhost up MODEL --device auto",),
        id="CF036",
    )


def _one(host: Host, word: str, text: str) -> Accelerator:
    for card in host.accelerators:
        if word == str(card.index) or word.lower() in {card.uuid.lower(), card.pci.lower()} - {""}:
            return card
    parts = [part for card in host.accelerators for part in slices(card)]
    begun = [
        one
        for one in (*host.accelerators, *parts)
        if len(word) > _UUID_BEGINNING and one.uuid.lower().startswith(word.lower())
    ]
    if len(begun) == 1:
        return begun[0]
    raise _unknown(host, word, text, parts)


def _unknown(host: Host, word: str, text: str, parts: list[Accelerator]) -> InputError:
    listed = [f"{card.index}  {card.uuid or card.pci or '-'}  {card.name}" for card in host.accelerators]
    listed += [f"   {part.uuid}  {part.name}" for part in parts]
    named = f"{word} of --device {text}" if re.search(",", text) else f"--device {word}"
    return InputError(
        f"{named} is none of the devices of this machine",
        why=_here(len(host.accelerators)),
        evidence="\n".join(listed[:8]),
        fix=(
            "name one by its number or uuid, or take what selfhost chooses:\nselfhost up MODEL --device auto",
            CPU_INSTEAD,
        ),
        id="CF030",
    )


def _here(count: int) -> str:
    if not count:
        return "There is no accelerator here, only the CPU."
    return f"There {'is 1 accelerator' if count == 1 else f'are {count} accelerators'} here, and the CPU."
