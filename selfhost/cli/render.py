"""`selfhost render`: the files that start a model, for a container engine, a cluster or a process."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from selfhost.cli import _service as ask
from selfhost.cli._context import invocation
from selfhost.cli._options import Device, File, Json, Name, Overwrite
from selfhost.cli._proposed import proposing
from selfhost.shapes.exit import ExitCode

Target = Annotated[
    str, typer.Argument(metavar="TARGET", help="compose, docker, podman, quadlet, process, helm or kubernetes.")
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="DIR", help="Write there; else the main file is printed.",
                 show_default=False),
]  # fmt: skip
Check = Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when files in DIR differ from the plan.")]
Locked = Annotated[
    bool, typer.Option("--locked", help="Exactly what selfhost.lock beside the file says, or what differs and why.")
]
Bare = Annotated[bool, typer.Option("--bare", help="Without the comments that give reasons.")]
ModelDir = Annotated[
    str | None,
    typer.Option("--model-dir", metavar="PATH", help="Where the weights lie on that machine.", show_default=False),
]


def command(
    context: typer.Context,
    target: Target,
    model: ask.ModelArgument = None,
    name: Name = None,
    output: Output = None,
    check: Check = False,
    bare: Bare = False,
    overwrite: Overwrite = False,
    model_dir: ModelDir = None,
    file: File = None,
    device: Device = None,
    port: ask.Port = None,
    context_tokens: ask.Context = None,
    concurrency: ask.Concurrency = None,
    reasoning: ask.Reasoning = None,
    precision: ask.Precision = None,
    kv_cache: ask.KvCache = None,
    kv_skip_layers: ask.KvSkip = None,
    engine: ask.Engine = None,
    image: ask.Image = None,
    locked: Locked = False,
    kube_context: ask.KubeContext = None,
    namespace: ask.Namespace = None,
    trust_remote_code: ask.RemoteCode = False,
    allow_pickle: ask.Pickle = False,
    json: Json = False,
    host: ask.Facts = None,
) -> ExitCode:
    """Write the files that start a model without selfhost. Exit 1: with --check they differ, or have errors."""
    from selfhost.cli import _render
    from selfhost.cli._eyes import facts_of
    from selfhost.cli._services import services_of, with_locks, with_neighbours
    from selfhost.cli._work import workplace
    from selfhost.deploy.rendered import RUNTIMES
    from selfhost.deploy.together import places_of

    at_work = invocation(context)
    asked = ask.Asked(
        model=model, name=name, device=device, port=port, context=context_tokens, concurrency=concurrency,
        reasoning=reasoning, precision=precision, kv_cache=kv_cache, kv_skip_layers=kv_skip_layers, engine=engine,
        image=image, kube_context=kube_context, namespace=namespace, trust_remote_code=trust_remote_code,
        allow_pickle=allow_pickle,
    )  # fmt: skip
    wish = _render.Wish(
        target=_render.target_of(target),
        output=Path(output).absolute() if output is not None else None,
        check=check,
        bare=bare,
        overwrite=overwrite,
        model_dir=str(Path(model_dir).absolute()) if model_dir else None,
    )
    place = ("--host", host) if host else ()
    _render.refuse_without_folder(wish)
    _render.refuse_no_cluster(wish, kube_context, namespace)
    with proposing(f"render {target}", place):
        services = services_of(asked, at_work, verb=f"render {target}", file=file)
        services = [replace(service, runtime=RUNTIMES[wish.target]) for service in services]
        work = replace(workplace(at_work, progress="quiet"), for_later=True)
        there = facts_of(at_work, host, wide=_render.is_for_cluster(wish))
        places = places_of(work, with_neighbours(services), [service.name for service in services], host=there)
        made = [
            _render.make(places[one.name], one, wish=wish, host=there, several=len(services) > 1, locked=entry)
            for one, entry in with_locks(services, locked=locked)
        ]
    return _render.show(made, wish=wish, console=at_work.console, json=json)
