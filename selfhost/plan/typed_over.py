"""A service of the file with what was typed beside it: the command line wins, and no engine flag stands twice."""

import shlex
from collections.abc import Iterator
from dataclasses import fields, replace

from selfhost.engines.flags import Given, Vocabulary, read
from selfhost.plan.command_line import OVERRULES, TYPED
from selfhost.shapes.cluster import ClusterAsk
from selfhost.shapes.service import Service


def over(service: Service, typed: Service) -> Service:
    """What was typed replaces what the file says, flag by flag also behind `--`."""
    said = {field.name: getattr(typed, field.name) for field in fields(Service) if field.name in typed.origins}
    if typed.cluster is not None:
        said["cluster"] = _in_cluster(service.cluster or ClusterAsk(), typed.cluster)
    origins = {**service.origins, **typed.origins}
    if typed.engine_args:
        origins["engine_args"] = f"{TYPED}{shlex.join(typed.engine_args)}"
    return replace(
        service,
        **said,
        engine_args=(*_left(service, typed), *typed.engine_args),
        trust_remote_code=service.trust_remote_code or typed.trust_remote_code,
        allow_pickle=service.allow_pickle or typed.allow_pickle,
        origins=origins,
    )


def _in_cluster(asked: ClusterAsk, typed: ClusterAsk) -> ClusterAsk:
    return replace(asked, context=typed.context or asked.context, namespace=typed.namespace or asked.namespace)


def _left(service: Service, typed: Service) -> tuple[str, ...]:
    """The file's flags without those that were typed, and without those that a typed option would be undone by."""
    if not service.engine_args or not (typed.engine_args or typed.origins):
        return service.engine_args
    name = (typed.engine or service.engine or "vllm").partition("@")[0]
    vocabulary = Vocabulary.load(name if name in ("vllm", "sglang") else "vllm")
    whole: set[str] = set()
    keys: set[str] = set()
    for flag in read(typed.engine_args, vocabulary=vocabulary):
        (keys if flag.dotted else whole).add(_key(flag))
    undone = {flag for option in typed.origins for flag in OVERRULES.get(option, ())}

    def kept() -> Iterator[str]:
        for flag in read(service.engine_args, vocabulary=vocabulary):
            row = vocabulary.flag(flag.name)
            names = {flag.name, row.vllm if row else ""}
            if flag.name not in whole and _key(flag) not in keys and not names & undone:
                yield from flag.tokens

    return tuple(kept())


def _key(flag: Given) -> str:
    """`--flag.key` is one value of several, each of which may be said once."""
    return flag.tokens[0].partition("=")[0].replace("_", "-") if flag.dotted else flag.name
