"""`selfhost up`: from this machine as it is to a running, checked endpoint."""

from typing import Annotated

import typer

from selfhost.cli import _service as ask
from selfhost.cli._context import invocation
from selfhost.cli._options import Device, Json, Name, Progress, Yes

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
    trust_remote_code: ask.RemoteCode = False,
    allow_pickle: ask.Pickle = False,
    wait: Wait = False,
    yes: Yes = False,
    progress: Progress = "auto",
    json: Json = False,
    host: ask.Host = None,
) -> int:
    """Bring a model up and check that it answers sanely. A rerun continues, or checks what runs."""
    from selfhost.cli._work import workplace
    from selfhost.deploy import ready
    from selfhost.deploy.up import up

    at_work = invocation(context)
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
        trust_remote_code=trust_remote_code,
        allow_pickle=allow_pickle,
        host=host,
    )
    service = ask.service_of(asked, at_work, verb="up")
    result = up(workplace(at_work, progress=progress, yes=yes), service, wait_for_lock=wait)
    at_work.close()
    if json:
        at_work.console.json(ready.to_json(result))
    else:
        ready.show(result, at_work.console)
    return result.exit_code
