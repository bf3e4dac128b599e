"""Options that name cards which nobody has to own, shared by `fit` and `models --fits`."""

from typing import TYPE_CHECKING, Annotated

import typer

from selfhost.cli._numbers import whole
from selfhost.core.errors import InputError

if TYPE_CHECKING:
    from selfhost.deploy.fit import Imagined

Gpu = Annotated[
    str | None,
    typer.Option("--gpu", metavar="NAME", help='A card by name, owned or not: "RTX 4090".', show_default=False),
]
Count = Annotated[
    int | None, typer.Option("--count", metavar="N", help="How many such cards.", show_default=False, parser=whole)
]
GpuMemory = Annotated[
    float | None,
    typer.Option(
        "--gpu-memory", metavar="GIB", help="What its driver reports, where the table is wrong.", show_default=False
    ),
]


def imagined(gpu: str | None, count: int | None, memory_gib: float | None, host: str | None) -> "Imagined | None":
    from selfhost.deploy.fit import Imagined
    from selfhost.shapes.units import GIB

    if gpu is None:
        if count is not None or memory_gib is not None:
            raise InputError(
                "--count and --gpu-memory are about a card that --gpu names",
                why="Without it the cards are those of the machine.",
                fix=('name the card:\nselfhost fit MODEL --gpu "RTX 4090" --count 2',),
                id="CF033",
            )
        return None
    if host is not None:
        raise InputError(
            f"--gpu {gpu} and --host {host} name two machines",
            why="The first is imagined, the second was looked at.",
            fix=("leave one of them out",),
            id="CF034",
        )
    if count is not None and not 1 <= count <= 64:
        raise _no_machine(f"--count is {count}, expected 1 to 64")
    if memory_gib is not None and not 1 <= memory_gib <= 4096:
        raise _no_machine(f"--gpu-memory is {memory_gib:g}, expected 1 to 4096")
    return Imagined(name=gpu, count=count or 1, memory=int(memory_gib * GIB) if memory_gib else None)


def _no_machine(what: str) -> InputError:
    return InputError(
        what,
        why="Counts go from 1 to 64, memory from 1 to 4096 GiB.",
        fix=("give numbers in that range",),
        id="CF035",
    )
