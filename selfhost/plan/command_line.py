"""The user's own words as another command: the same model and options, with only the proposed ones changed."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from selfhost.engines.flags import Vocabulary, read
from selfhost.shapes.service import Service

_NOTHING: Mapping[str, str | None] = MappingProxyType({})
_IN_FILE = re.compile(r"(?P<file>.+):\d+ (?P<service>\S+)")
_OF_THE_PLACE = ("name", "device", "port", "concurrency", "engine")
"""Options that say where and how much is served; the others are about one model."""
TYPED = "-- "
"""Before the origin of engine flags that were typed over those of a file."""
OVERRULES = {
    "context": ("--max-model-len", "--kv-cache-memory-bytes"),
    "concurrency": ("--max-num-seqs",),
    "precision": ("--dtype", "--quantization"),
    "kv_cache": ("--kv-cache-dtype",),
    "reasoning": ("--default-chat-template-kwargs",),
}
"""Engine flags that would overrule an option which is proposed or typed."""


def command_line(
    verb: str, service: Service, *more: str, change: Mapping[str, str | None] = _NOTHING, model: str = "",
    keep: Collection[str] = (),
) -> str:  # fmt: skip
    """Model, options and engine flags behind `selfhost VERB`, ready to paste.

    `change` maps fields of the service to new values, None to leave the option out. With another `model` only the
    options that are not about the former one stay, and those in `keep`.
    """
    file = in_file(service)
    kept = [] if model else _typed(service) if file else list(service.engine_args)
    stays = {*_OF_THE_PLACE, *keep}
    options = {field: said for field, said in _said(service) if not model or field in stays}
    for field, value in change.items():
        options[field] = [] if value is None else [f"--{field.replace('_', '-')}", value]
        kept = _without(kept, OVERRULES.get(field, ()))
    words = [*verb.split(), *_subject(service, model, file), *(word for said in options.values() for word in said)]
    words += ["--trust-remote-code"] if service.trust_remote_code and not (model or file) else []
    words += ["--allow-pickle"] if service.allow_pickle and not (model or file) else []
    words += more
    words += ["--", *kept] if kept else []
    return " ".join(["selfhost", *(shlex.quote(word) for word in words if word)])


def _subject(service: Service, model: str, file: str) -> list[str]:
    """Another model, one service of a file, or the model that was named."""
    if model or not file:
        return [model or _model(service)]
    return [_place(service)[1], "--file", file]


def _typed(service: Service) -> list[str]:
    """What was typed behind `--` over the flags of a file."""
    said = service.origins.get("engine_args", "")
    return shlex.split(said.removeprefix(TYPED)) if said.startswith(TYPED) else []


def in_file(service: Service) -> str:
    """The selfhost.yaml that the service stands in, empty for none."""
    return _place(service)[0]


def _place(service: Service) -> tuple[str, str]:
    """The file and the name that the service has there, whatever `--name` makes of it."""
    match = _IN_FILE.fullmatch(service.origins.get("service", ""))
    return (match["file"], match["service"]) if match else ("", "")


def _model(service: Service) -> str:
    """Empty when nobody named one: the same command chooses it again."""
    return service.model if service.origins.get("model") is None else ""


def _said(service: Service) -> Iterator[tuple[str, list[str]]]:
    """Each option as it was typed."""
    for field, origin in service.origins.items():
        if field != "model" and origin.startswith("--") and not origin.startswith(TYPED):
            yield field, origin.split(" ", 1)


def _without(engine_args: list[str], names: tuple[str, ...]) -> list[str]:
    if not names or not engine_args:
        return engine_args
    given = read(engine_args, vocabulary=Vocabulary.load())
    return [token for flag in given if flag.name not in names for token in flag.tokens]
