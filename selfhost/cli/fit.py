"""`selfhost fit`: whether a model fits, here or on cards that one does not own, and what would make it fit."""

from typing import Annotated

import typer

from selfhost.cli import _service as ask
from selfhost.cli._context import invocation
from selfhost.cli._imagined import Count, Gpu, GpuMemory, imagined
from selfhost.cli._options import Device, Json
from selfhost.cli._proposed import proposing
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
    claim: Claim = None,
    explain: Explain = False,
    json: Json = False,
    host: ask.Facts = None,
) -> ExitCode:
    """Whether a model fits, how long a request may be and how many run at once. Exit 0: fits, 1: not, 3: too close."""
    from selfhost.cli._eyes import facts_of
    from selfhost.cli._work import workplace
    from selfhost.deploy.fit import fit_for
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
        fitted = fit_for(
            workplace(at_work, progress="quiet"), ask.service_of(asked, at_work, verb="fit"),
            host=facts_of(at_work, host), named=host or "", imagined=wished,
            claimed=None if claim is None else parse_rate(claim),
        )  # fmt: skip
    if json:
        at_work.console.json(to_json(fitted.decided, speed=fitted.speed, ways=fitted.ways))
    else:
        at_work.console.result(describe(fitted.decided, speed=fitted.speed, ways=fitted.ways, explain=explain))
    return EXIT[fitted.decided.plan.verdict]
