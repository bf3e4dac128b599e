"""`selfhost fit`: whether a model fits, here or on cards that one does not own, and what would make it fit."""

from typing import Annotated

import typer

from selfhost.cli import _service as ask
from selfhost.cli._context import invocation
from selfhost.cli._imagined import Count, Gpu, GpuMemory, imagined
from selfhost.cli._options import Device, File, Json
from selfhost.cli._proposed import WORST, proposing
from selfhost.shapes.exit import ExitCode

Claim = Annotated[
    str | None,
    typer.Option(
        "--claim", metavar="RATE", help="A claimed rate, `14tok/s`: which bandwidth it implies.", show_default=False
    ),
]
Explain = Annotated[bool, typer.Option("--explain", help="The whole arithmetic, in bytes.")]


def command(
    context: typer.Context,
    model: ask.ModelArgument = None,
    gpu: Gpu = None,
    count: Count = None,
    gpu_memory: GpuMemory = None,
    device: Device = None,
    context_tokens: ask.Context = None,
    concurrency: ask.Concurrency = None,
    precision: ask.Precision = None,
    kv_cache: ask.KvCache = None,
    engine: ask.Engine = None,
    file: File = None,
    claim: Claim = None,
    explain: Explain = False,
    json: Json = False,
    host: ask.Facts = None,
) -> ExitCode:
    """Whether a model fits, how long a request may be and how many run at once. Exit 0: fits, 1: not, 3: too close."""
    from selfhost.cli._eyes import facts_of
    from selfhost.cli._services import services_of, with_neighbours
    from selfhost.cli._work import workplace
    from selfhost.deploy.fit import fit_for
    from selfhost.deploy.together import places_of
    from selfhost.plan.claims import parse_rate
    from selfhost.plan.describe import EXIT
    from selfhost.plan.fit_json import to_json
    from selfhost.plan.fit_words import describe

    at_work = invocation(context)
    wished = imagined(gpu, count, gpu_memory, host)
    asked = ask.Asked(
        model=model, device=device, context=context_tokens, concurrency=concurrency, precision=precision,
        kv_cache=kv_cache, engine=engine,
    )  # fmt: skip
    place = (*wished.words, "--count", str(wished.count)) if wished else ("--host", host) if host else ()
    with proposing("fit", place):
        services = services_of(asked, at_work, verb="fit", file=file)
        work, there = workplace(at_work, progress="quiet"), facts_of(at_work, host)
        beside = services if wished else with_neighbours(services)  # who imagines a card asks of each alone
        names = [service.name for service in services]
        places = dict.fromkeys(names, work) if wished else places_of(work, beside, names, host=there)
        rate = None if claim is None else parse_rate(claim)
        found = [
            fit_for(places[one.name], one, host=there, named=host or "", imagined=wished, claimed=rate)
            for one in services
        ]
    if json:
        fits = [to_json(one.decided, speed=one.speed, ways=one.ways) for one in found]
        at_work.console.json(fits[0] if len(fits) == 1 else {"schema": "selfhost.fits/1", "fits": fits})
    for number, one in enumerate(found if not json else ()):
        if number:
            at_work.console.result("")
        at_work.console.result(describe(one.decided, speed=one.speed, ways=one.ways, explain=explain))
    return max((EXIT[one.decided.plan.verdict] for one in found), key=WORST.index)
