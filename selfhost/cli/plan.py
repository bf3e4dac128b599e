"""`selfhost plan`: everything that `up` would decide, with the reasons; nothing is changed."""

from typing import Annotated

import typer

from selfhost.cli import _service as ask
from selfhost.cli._context import invocation
from selfhost.cli._options import Device, File, Json, Name
from selfhost.cli._proposed import WORST, proposing
from selfhost.shapes.exit import ExitCode

Explain = Annotated[bool, typer.Option("--explain", help="Every decision, with evidence, source and alternatives.")]


def command(
    context: typer.Context,
    model: ask.ModelArgument = None,
    name: Name = None,
    device: Device = None,
    port: ask.Port = None,
    context_tokens: ask.Context = None,
    concurrency: ask.Concurrency = None,
    reasoning: ask.Reasoning = None,
    precision: ask.Precision = None,
    kv_cache: ask.KvCache = None,
    kv_skip_layers: ask.KvSkip = None,
    engine: ask.Engine = None,
    runtime: ask.Runtime = None,
    image: ask.Image = None,
    kube_context: ask.KubeContext = None,
    namespace: ask.Namespace = None,
    trust_remote_code: ask.RemoteCode = False,
    allow_pickle: ask.Pickle = False,
    file: File = None,
    explain: Explain = False,
    json: Json = False,
    host: ask.Facts = None,
) -> ExitCode:
    """What `up` would do, each decision with its reason. Exit 0: fits, 1: does not, 3: too close to call."""
    from selfhost.cli._eyes import facts_of
    from selfhost.cli._services import services_of, with_neighbours
    from selfhost.cli._work import workplace
    from selfhost.deploy.fit import ways_of
    from selfhost.deploy.gather_cluster import plan_in
    from selfhost.deploy.together import places_of
    from selfhost.plan.describe import EXIT, describe
    from selfhost.plan.fit import next_steps
    from selfhost.plan.to_json import to_json
    from selfhost.plan.ways_out import Door

    at_work = invocation(context)
    asked = ask.Asked(
        model=model, name=name, device=device, port=port, context=context_tokens, concurrency=concurrency,
        reasoning=reasoning, precision=precision, kv_cache=kv_cache, kv_skip_layers=kv_skip_layers, engine=engine,
        runtime=runtime, image=image, kube_context=kube_context, namespace=namespace,
        trust_remote_code=trust_remote_code, allow_pickle=allow_pickle,
    )  # fmt: skip
    place = ("--host", host) if host else ()
    with proposing("plan", place):
        services = services_of(asked, at_work, verb="plan", file=file)
        for service in services:
            ask.refuse_no_cluster(service, "plan")
        in_cluster = any(service.runtime == "kubernetes" for service in services)
        work, there = workplace(at_work, progress="quiet"), facts_of(at_work, host, wide=in_cluster)
        places = places_of(work, with_neighbours(services), [service.name for service in services], host=there)
        found = [(service, plan_in(places[service.name], service, host=there, live=True)) for service in services]
    if json:
        plans = [to_json(gathered.plan) for _, gathered in found]
        at_work.console.json(plans[0] if len(plans) == 1 else {"schema": "selfhost.plans/1", "plans": plans})
    for number, (service, gathered) in enumerate(found if not json else ()):
        if number:
            at_work.console.result("")
        at_work.console.result(describe(gathered.plan, explain=explain, chosen=gathered.model_reason))
        ways = ways_of(gathered, door=Door(verb="plan", place=place) if host else Door(verb="up"))
        for step in next_steps(gathered.plan, service, ways, place=place):
            at_work.console.note("  → " + step.replace("\n", "\n      "))
    return max((EXIT[gathered.plan.verdict] for _, gathered in found), key=WORST.index)
