"""`selfhost up`: from this machine as it is to a running, checked endpoint."""

from typing import Annotated

import typer

from selfhost.cli import _service as ask
from selfhost.cli._context import invocation
from selfhost.cli._options import Device, File, Json, Name, Overwrite, Progress, Yes

Locked = Annotated[
    bool, typer.Option("--locked", help="Exactly what selfhost.lock beside the file says, or what differs and why.")
]
Rbac = Annotated[
    bool, typer.Option("--rbac", help="Print the permissions that it needs in a cluster, as YAML, and do nothing else.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another command that is at work on this deployment.")]


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
    kube_context: ask.KubeContext = None,
    namespace: ask.Namespace = None,
    rbac: Rbac = False,
    image: ask.Image = None,
    trust_remote_code: ask.RemoteCode = False,
    allow_pickle: ask.Pickle = False,
    wait: Wait = False,
    overwrite: Overwrite = False,
    file: File = None,
    locked: Locked = False,
    yes: Yes = False,
    progress: Progress = "auto",
    json: Json = False,
    host: ask.Host = None,
) -> int:
    """Bring a model up and check that it answers sanely. A rerun continues, or checks what runs."""
    from selfhost.cli._services import services_of, with_locks, with_neighbours
    from selfhost.cli._work import workplace
    from selfhost.deploy import ready
    from selfhost.deploy.together import places_of
    from selfhost.deploy.up import Result, up

    at_work = invocation(context)
    if rbac:
        from selfhost.runtimes.cluster.access import rbac as as_yaml

        at_work.console.result(as_yaml(namespace or "NAMESPACE"))
        return 0
    asked = ask.Asked(
        model=model,
        name=name,
        device=device,
        port=port,
        context=context_tokens,
        concurrency=concurrency,
        reasoning=reasoning,
        precision=precision,
        kv_cache=kv_cache,
        kv_skip_layers=kv_skip_layers,
        engine=engine,
        runtime=runtime,
        kube_context=kube_context,
        namespace=namespace,
        image=image,
        trust_remote_code=trust_remote_code,
        allow_pickle=allow_pickle,
        host=host,
    )
    services = services_of(asked, at_work, verb="up", file=file)
    for service in services:
        ask.refuse_no_cluster(service, "up")
    work = workplace(at_work, progress=progress, yes=yes)
    places = places_of(work, with_neighbours(services), [service.name for service in services])
    results: list[Result] = []
    for service, entry in with_locks(services, locked=locked):
        if len(services) > 1 and not json:
            at_work.console.note(f"{service.name} ({len(results) + 1} of {len(services)})")
        results.append(up(places[service.name], service, wait_for_lock=wait, overwrite=overwrite, locked=entry))
        if not json:
            at_work.close()
            ready.show(results[-1], at_work.console)
    at_work.close()
    if json:
        at_work.console.json(ready.to_json(results[0]) if len(results) == 1 else ready.all_to_json(results))
    return max(result.exit_code for result in results)
