"""The options that say what is to be served, shared by `up` and `plan`, and the Service they make."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from selfhost.cli._context import Invocation
from selfhost.cli._numbers import short, whole
from selfhost.core.errors import InputError
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.service import Service

_ADDRESS = re.compile(r"[\d.]+|\[?[0-9a-fA-F]*:[0-9a-fA-F:.]*\]?")


def _option(name: str, help: str, metavar: str, parser: Callable[[str], int] | None = None) -> Any:
    return typer.Option(name, metavar=metavar, help=help, show_default=False, parser=parser)


ModelArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        help="An alias (qwen3-4b), a Hugging Face id (org/name[@revision]) or a folder; without one, the best for "
        "this machine.",
        show_default=False,
    ),
]
Port = Annotated[
    int | None, _option("--port", "Obeyed or refused; without it the first free one from 8000 on.", "N", whole)
]
Context = Annotated[
    int | None,
    _option("--context", "Tokens of one request, prompt and answer together; 32k is 32,000.", "TOKENS", short),
]
Concurrency = Annotated[int | None, _option("--concurrency", "Requests that run at the same time.", "N", short)]
Reasoning = Annotated[str | None, _option("--reasoning", "on, off, budget=N or effort=low|medium|high.", "MODE")]
Precision = Annotated[str | None, _option("--precision", "Of the weights: auto, bf16, fp32, fp8, int4…", "P")]
KvCache = Annotated[str | None, _option("--kv-cache", "Of the KV cache: auto, bf16, fp8…", "P")]
KvSkip = Annotated[
    str | None,
    _option("--kv-skip-layers", "Layers whose KV cache stays as computed: 0,1 or sliding_window.", "LAYERS"),
]
Engine = Annotated[str | None, _option("--engine", "vllm or sglang, also with @VERSION.", "ENGINE")]
Runtime = Annotated[
    str | None,
    _option(
        "--runtime",
        "process, docker, podman, quadlet or kubernetes; without it a container where it can hand a card in.",
        "RUNTIME",
    ),
]
Image = Annotated[str | None, _option("--image", "Another container image than the engine's own.", "REFERENCE")]
KubeContext = Annotated[
    str | None, _option("--kube-context", "A cluster of your kubeconfig instead of its current one.", "CONTEXT")
]
Namespace = Annotated[str | None, _option("--namespace", "In the cluster; else that of the context.", "NAME")]
Facts = Annotated[
    str | None, _option("--host", "Plan for another machine: a snapshot, or one by ssh.", "FILE|user@machine")
]
RemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let Python that the model's repository ships run here.")
]
Pickle = Annotated[bool, typer.Option("--allow-pickle", help="Load weights that are pickles: they can run code.")]
Host = Annotated[str | None, typer.Option("--host", hidden=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options as typed."""

    model: str | None = None
    name: str | None = None
    device: str | None = None
    port: int | None = None
    context: int | None = None
    concurrency: int | None = None
    reasoning: str | None = None
    precision: str | None = None
    kv_cache: str | None = None
    kv_skip_layers: str | None = None
    engine: str | None = None
    runtime: str | None = None
    image: str | None = None
    kube_context: str | None = None
    namespace: str | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False
    host: str | None = None


def refuse_address(host: str | None) -> None:
    """`--host` names a machine that facts are about; people who mean an address to listen on get told."""
    if host is not None and not host.strip():
        raise InputError(
            "the host is an empty word",
            why="A variable that is not set in the shell gives one.",
            fix=("name a snapshot or user@machine, or leave --host out",),
            id="CF015",
        )
    if host is None or not (_ADDRESS.fullmatch(host) or host == "localhost") or Path(host).exists():
        return
    raise InputError(
        f"`--host {host}` would be the machine that facts are about, not an address to listen on",
        why="The engine listens on 127.0.0.1; this version opens nothing to a network.",
        fix=("perhaps leave it out; from another machine, use a tunnel:\nssh -L 8000:127.0.0.1:8000 THIS-MACHINE",),
        id="CF012",
    )


def service_of(asked: Asked, at_work: Invocation, *, verb: str) -> Service:
    """What the user asked for, each value with the option it came from. Raises InputError."""
    from selfhost.plan.reasoning import parse

    if asked.host is not None:
        refuse_address(asked.host)
        raise InputError(
            f"`up` starts an engine here; `--host {asked.host}` is another machine",
            why="What would be decided there, `plan` and `fit` tell.",
            fix=(f"see the plan:\n{shlex.join(['selfhost', 'plan', asked.model or 'MODEL', '--host', asked.host])}",),
            id="CF012",
        )
    _check_words(asked)
    _check_numbers(asked, verb)
    fields = (
        "name", "device", "port", "context", "concurrency", "reasoning", "precision", "kv_cache", "kv_skip_layers",
        "engine", "runtime", "image", "kube_context", "namespace",
    )  # fmt: skip
    origins = {
        field: f"--{field.replace('_', '-')} {getattr(asked, field)}"
        for field in fields
        if getattr(asked, field) is not None
    }
    return Service(
        model=asked.model or "",
        name=asked.name or "",
        device=None if asked.device == "auto" else asked.device,
        port=asked.port,
        context=asked.context,
        concurrency=asked.concurrency,
        reasoning=parse(asked.reasoning) if asked.reasoning else None,
        precision=asked.precision,
        kv_cache=asked.kv_cache,
        kv_skip_layers=tuple(part.strip() for part in (asked.kv_skip_layers or "").split(",") if part.strip()),
        engine=asked.engine,
        runtime=asked.runtime,
        image=asked.image or "",
        cluster=_cluster(asked),
        trust_remote_code=asked.trust_remote_code,
        allow_pickle=asked.allow_pickle,
        engine_args=tuple(_absolute(word) for word in at_work.passed_on),
        origins=origins,
    )


def _cluster(asked: Asked) -> ClusterAsk | None:
    if asked.kube_context is None and asked.namespace is None:
        return None
    return ClusterAsk(context=asked.kube_context or "", namespace=asked.namespace or "")


def refuse_no_cluster(service: Service, verb: str) -> None:
    """Raises InputError for options about a cluster where none is meant."""
    given = [service.origins[field] for field in ("kube_context", "namespace") if field in service.origins]
    if not given or service.runtime == "kubernetes":
        return
    command = shlex.join(["selfhost", verb, service.model or "MODEL", "--runtime", "kubernetes"])
    raise InputError(
        f"`{given[0]}` is about a cluster, and this is not for one",
        why="Only the runtime `kubernetes` goes to a cluster; selfhost never takes it by itself.",
        fix=(f"say so:\n{command} {' '.join(given)}", "or leave it out"),
        id="CF110",
    )


def _absolute(word: str) -> str:
    """A path that begins with ./ or ../ is meant from here; the engine runs in another folder."""
    flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{flag}{equals}{Path(value).resolve()}" if value.startswith(("./", "../")) else word


def _check_words(asked: Asked) -> None:
    """An empty word is a variable that was not set, and never means `all` or `choose for me`."""
    texts = (
        "model", "name", "device", "reasoning", "precision", "kv_cache", "kv_skip_layers", "engine", "runtime", "image",
        "kube_context", "namespace",
    )  # fmt: skip
    for field in texts:
        value = getattr(asked, field)
        if value is not None and not value.strip(" ,"):
            raise InputError(
                f"the {field.replace('_', '-')} is an empty word",
                why="A variable that is not set in the shell gives one.",
                fix=("name it, or leave the word out",),
                id="CF015",
            )
    model = asked.model or ""
    if any("\udc80" <= character <= "\udcff" for character in model):
        raise InputError(
            "the model's path holds bytes that are no text in this locale",
            why=f"It reads {model.encode(errors='backslashreplace').decode()}.",
            fix=("rename the folder, or use a UTF-8 locale:\nexport LC_ALL=C.UTF-8",),
            id="CF016",
        )


def _check_numbers(asked: Asked, verb: str) -> None:
    limits = {"port": (1, 65535, "8000"), "context": (16, 100_000_000, "8192"), "concurrency": (1, 65536, "8")}
    for field, (low, high, usual) in limits.items():
        value = getattr(asked, field)
        if value is not None and not low <= value <= high:
            command = " ".join(["selfhost", verb, *([shlex.quote(asked.model)] if asked.model else [])])
            raise InputError(
                f"--{field} is {value}, expected {low} to {high}",
                why="Outside of it no engine could start.",
                fix=(f"give a number in that range:\n{command} --{field} {usual}",),
                id="CF013",
            )
