"""The share of each card's memory that a service may take, as the engine's own flag."""

from selfhost.core.errors import InputError
from selfhost.engines.names import shown
from selfhost.plan.command_line import command_line
from selfhost.plan.origin import by
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.plan import Decision, Evidence
from selfhost.shapes.service import Service

FLAG = "--gpu-memory-utilization"
_OF = {
    "vllm": "of the whole card, computed with it; the engine starts only where so much is free",
    "sglang": "for weights and KV cache, of what is free at its start; computed as of an empty card, so beside another "
    "engine on it this one gets less. Buffers of a running request come on top",
}
_SOURCE = {
    "vllm": "vLLM 0.33.0: config/cache.py, v1/worker/utils.py",
    "sglang": "SGLang 0.5.23: srt/model_executor/model_runner.py",
}


def with_share(passed: PassedOn, service: Service, *, on_cpu: bool) -> PassedOn:
    """`passed` with the share as if its flag had been passed on; what stands behind `--` counts before it.

    Raises InputError for one that cannot be.
    """
    if service.share is None:
        return passed
    if not 0 < service.share <= 1:
        raise InputError(
            f"`{_origin(service)}` is no share of a card",
            why="It is above 0 and up to 1, and the shares of all services on a card add up to at most 1.",
            fix=("half of each card:\n" + command_line("up", service, change={"share": "0.5"}),),
            id="PL082",
        )
    if on_cpu:
        raise InputError(
            f"`{_origin(service)}` is a share of a card, and this runs on the processor",
            why="There the size of the KV cache is planned in bytes.",
            fix=("leave it out:\n" + command_line("up", service, change={"share": None}),),
            id="PL082",
        )
    if passed.text(FLAG) is not None:
        return passed
    words = (passed.own(FLAG), f"{service.share:g}", *passed.words)
    return PassedOn.of(passed.engine, words, asked={passed.own(FLAG): _origin(service)})


def share_decision(passed: PassedOn, service: Service) -> Decision | None:
    if service.share is None:
        return None
    own = passed.own(FLAG)
    if own not in passed.asked:
        return Decision(
            field="share",
            value=f"{service.share:g}",
            reason=f"not used: {own} stands behind `--` and counts before it",
            source="user",
            by=_origin(service),
        )
    return Decision(
        field="share",
        value=f"{service.share * 100:g} % of each card",
        reason=f"{shown(passed.engine)}'s {own}: {_OF[passed.engine]}",
        source=_SOURCE[passed.engine],
        evidence=Evidence.READ_IN_CODE,
        by=_origin(service),
    )


def _origin(service: Service) -> str:
    return by(service, "share", f"{service.share:g}")
