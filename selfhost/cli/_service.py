"""The options that say what is to be served, shared by `up` and `plan`, and the Service they make."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from selfhost.cli._context import Invocation
from selfhost.core.errors import InputError
from selfhost.shapes.service import Service


def _option(name: str, help: str, metavar: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, show_default=False)


ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="[MODEL]",
        help="An alias (qwen3-4b), a Hugging Face id (org/name[@revision]) or a folder; without one, the best for "
        "this machine.",
        show_default=False,
    ),
]
Port = Annotated[int | None, _option("--port", "Obeyed or refused; without it the first free one from 8000 on.", "N")]
Context = Annotated[int | None, _option("--context", "Tokens of one request, prompt and answer together.", "TOKENS")]
Concurrency = Annotated[int | None, _option("--concurrency", "Requests that run at the same time.", "N")]
Reasoning = Annotated[str | None, _option("--reasoning", "on, off, budget=N or effort=low|medium|high.", "MODE")]
Precision = Annotated[str | None, _option("--precision", "Of the weights: auto, bf16, fp32, fp8.", "P")]
KvCache = Annotated[str | None, _option("--kv-cache", "Of the KV cache: auto, bf16, fp8.", "P")]
Engine = Annotated[str | None, _option("--engine", "vllm, or vllm@VERSION.", "ENGINE")]
RemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let Python that the model's repository ships run here.")
]
Pickle = Annotated[bool, typer.Option("--allow-pickle", help="Load weights that are pickles: they can run code.")]
Host = Annotated[str | None, typer.Option("--host", hidden=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options as typed."""

    model: str
    name: str | None
    device: str | None
    port: int | None
    context: int | None
    concurrency: int | None
    reasoning: str | None
    precision: str | None
    kv_cache: str | None
    engine: str | None
    trust_remote_code: bool
    allow_pickle: bool
    host: str | None


def service_of(asked: Asked, at_work: Invocation) -> Service:
    """What the user asked for, each value with the option it came from. Raises InputError."""
    from selfhost.plan.reasoning import parse

    if asked.host is not None:
        raise InputError(
            f"`--host {asked.host}` would be the machine that facts are about, not an address to listen on",
            why="The engine listens on 127.0.0.1; this version opens nothing to a network.",
            fix=("perhaps leave it out; from another machine, use a tunnel:\nssh -L 8000:127.0.0.1:8000 THIS-MACHINE",),
            id="CF012",
        )
    _check_numbers(asked)
    fields = ("name", "device", "port", "context", "concurrency", "reasoning", "precision", "kv_cache", "engine")
    origins = {
        field: f"--{field.replace('_', '-')} {getattr(asked, field)}"
        for field in fields
        if getattr(asked, field) is not None
    }
    return Service(
        model=asked.model,
        name=asked.name or "",
        device=None if asked.device == "auto" else asked.device,
        port=asked.port,
        context=asked.context,
        concurrency=asked.concurrency,
        reasoning=parse(asked.reasoning) if asked.reasoning else None,
        precision=asked.precision,
        kv_cache=asked.kv_cache,
        engine=asked.engine,
        trust_remote_code=asked.trust_remote_code,
        allow_pickle=asked.allow_pickle,
        engine_args=tuple(_absolute(word) for word in at_work.passed_on),
        origins=origins,
    )


def _absolute(word: str) -> str:
    """A path that begins with ./ or ../ is meant from here; the engine runs in another folder."""
    flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{flag}{equals}{Path(value).resolve()}" if value.startswith(("./", "../")) else word


def _check_numbers(asked: Asked) -> None:
    limits = {"port": (1, 65535), "context": (16, 100_000_000), "concurrency": (1, 65536)}
    for field, (low, high) in limits.items():
        value = getattr(asked, field)
        if value is not None and not low <= value <= high:
            raise InputError(
                f"--{field} is {value}, expected {low} to {high}",
                fix=(f"give a number in that range:\nselfhost up {asked.model} --{field} {max(low, min(high, 8192))}",),
                id="CF013",
            )
