"""`selfhost models`: what has a short name, and which of them fit a machine."""

from typing import TYPE_CHECKING, Annotated

import typer

from selfhost.cli import _service as ask
from selfhost.cli._context import Invocation, invocation
from selfhost.cli._imagined import Count, Gpu, GpuMemory, imagined
from selfhost.cli._options import Device, Json

if TYPE_CHECKING:
    from selfhost.shapes.host import Host

Fits = Annotated[bool, typer.Option("--fits", help="Also whether each fits this machine, or the one that is named.")]


def command(
    context: typer.Context,
    fits: Fits = False,
    gpu: Gpu = None,
    count: Count = None,
    gpu_memory: GpuMemory = None,
    device: Device = None,
    context_tokens: ask.Context = None,
    concurrency: ask.Concurrency = None,
    json: Json = False,
    host: ask.Facts = None,
) -> None:
    """The models that are known by a short name; any other works by its Hugging Face id or folder."""
    at_work = invocation(context)
    console = at_work.console
    if fits or any(said is not None for said in (gpu, count, gpu_memory, device, context_tokens, concurrency, host)):
        asked = ask.Asked(device=device, context=context_tokens, concurrency=concurrency)
        _fits(at_work, asked, machine=_machine(at_work, gpu, count, gpu_memory, host), json=json)
        return
    from selfhost.models.table import as_json, lines

    if json:
        console.json(as_json())
        return
    console.result("\n".join(lines()))
    console.note("\n  → selfhost models --fits     which of them fit here")
    console.note("  → selfhost plan NAME         what would be served here, and why")


def _machine(at_work: Invocation, gpu: str | None, count: int | None, memory: float | None, host: str | None) -> "Host":
    from selfhost.cli._eyes import facts_of
    from selfhost.hosts.detect import detect

    wished = imagined(gpu, count, memory, host)
    return wished.host() if wished else facts_of(at_work, host) or detect(at_work.system)


def _fits(at_work: Invocation, asked: ask.Asked, *, machine: "Host", json: bool) -> None:
    from selfhost.cli._models import as_json, lines
    from selfhost.deploy.models_fit import judged

    found = list(judged(machine, ask.service_of(asked, at_work, verb="models")))
    if json:
        at_work.console.json(as_json(found))
        return
    at_work.console.result("\n".join(lines(found)))
    at_work.console.note("\n  → selfhost fit NAME        the arithmetic, and ways out where one does not fit")
