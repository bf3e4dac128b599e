"""From which servers a model that sees or hears may fetch what a client only names."""

import re
from dataclasses import dataclass

from selfhost.core.errors import InputError
from selfhost.engines.names import shown
from selfhost.engines.since import too_new
from selfhost.plan.origin import by
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, EngineBuild, Evidence
from selfhost.shapes.service import Service

FLAG = "--allowed-media-domains"
NOWHERE = "none.invalid"
"""A name that no server can have (RFC 6761, section 6.4): an empty list would mean every server."""
_NAME = re.compile(r"(?!-)[A-Za-z0-9.-]{1,253}")
_SOURCE = {
    "vllm": "vLLM 0.33.0: multimodal/media/connector.py",
    "sglang": "SGLang 0.5.23: srt/utils/common.py",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """`domains` is empty where the flag is not given."""

    domains: tuple[str, ...] = ()
    decision: Decision | None = None


def decide_media(*, model: Model, service: Service, build: EngineBuild, passed: PassedOn) -> Media:
    """Nothing for a model of text alone that nobody named a server for. Raises InputError for what is no host name."""
    for name in service.media_domains:
        if not _NAME.fullmatch(name):
            raise InputError(
                f"`{name}` is no name of a server",
                why="Both engines compare host names alone, without a scheme, a port or a path.",
                fix=("write it as `images.example.org`",),
                id="PL086",
            )
    if FLAG in passed.flags or not (service.media_domains or _sees(model)):
        return Media()
    if too_new(build.engine, build.version, (FLAG,)):
        return Media(decision=_unbounded(build))
    asked = service.media_domains
    if asked:
        return Media(
            domains=asked,
            decision=_decision(build, ", ".join(asked), "no other server is asked for images", by_user(service)),
        )
    why = (
        "no server was named, so none is asked: images come in the request, as data: URLs; a client could otherwise "
        "let this machine fetch from inside its network"
    )
    return Media(domains=(NOWHERE,), decision=_decision(build, "data: URLs only", why, "selfhost"))


def by_user(service: Service) -> str:
    return by(service, "media_domains", ", ".join(service.media_domains))


def _sees(model: Model) -> bool:
    return isinstance(model.geometry, Known) and model.geometry.value.vision > 0


def _decision(build: EngineBuild, value: str, reason: str, who: str) -> Decision:
    return Decision(
        field="media",
        value=value,
        reason=reason,
        source=_SOURCE[build.engine],
        evidence=Evidence.READ_IN_CODE,
        by=who,
    )


def _unbounded(build: EngineBuild) -> Decision:
    return Decision(
        field="media",
        value="any server",
        reason=f"{shown(build.engine)} {build.version} has no list of servers: a client can let this machine fetch "
        "from any that it reaches",
        source="argument parsers of the published wheels",
        evidence=Evidence.READ_IN_CODE,
    )
