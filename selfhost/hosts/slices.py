"""The instances of a card in MIG mode, each as a device of its own: it computes alone and has memory of its own."""

from dataclasses import replace

from selfhost.shapes.host import Accelerator, Partitioning, Unknown

_NOT_READ = Unknown("of a slice only the size was read")


def slices(card: Accelerator) -> tuple[Accelerator, ...]:
    """The slices that can be named to an engine; none for a card that is not cut, or whose slices have no uuid."""
    if card.partitioning is not Partitioning.MIG:
        return ()
    return tuple(
        replace(
            card,
            name=f"{card.name} MIG {part.name}",
            uuid=part.uuid,
            memory_total=part.memory,
            memory_free=_NOT_READ,
            memory_used=_NOT_READ,
            partition_mode=part.name,
            partitions=(),
            tenants=(),
        )
        for part in card.partitions
        if part.uuid
    )


def is_slice(card: Accelerator) -> bool:
    """Whether this is one instance, and not the card that was cut."""
    return card.partitioning is Partitioning.MIG and card.uuid.startswith("MIG-")
