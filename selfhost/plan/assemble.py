"""All that was decided put together: the engine's words, its environment, and every decision in its order."""

from collections.abc import Iterator
from dataclasses import dataclass

from selfhost.engines.base import engine
from selfhost.engines.launch import Launch
from selfhost.plan.container.decide import LISTEN, container_plan
from selfhost.plan.container.decide import Case as Inside
from selfhost.plan.devices import device_decision
from selfhost.plan.engine import EngineChoice
from selfhost.plan.engine_env import engine_env, env_decisions
from selfhost.plan.gains import gain_decision
from selfhost.plan.mask import mask_of
from selfhost.plan.media import Media
from selfhost.plan.parallel import parallel_decision
from selfhost.plan.passed_on import PassedOn, without_repeats
from selfhost.plan.precision import precision_decisions
from selfhost.plan.reasoning import ReasoningDecision
from selfhost.plan.sampling import Sampling
from selfhost.plan.serving import ADDRESS, serving_decisions
from selfhost.plan.settle import Settled
from selfhost.plan.share import share_decision
from selfhost.plan.tools import Tools
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import ContainerPlan, Decision, Plan, ReasoningPlan
from selfhost.shapes.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """What is decided once the context is known."""

    thinking: ReasoningDecision
    reasoning: ReasoningPlan
    sampling: Sampling
    tools: Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Facts and wishes, and what was decided about them one after the other."""

    host: Host
    model: Model
    service: Service
    choice: EngineChoice
    settled: Settled
    modes: Modes
    media: Media
    passed: PassedOn
    port: int


def assembled(parts: Parts) -> Plan:
    """Raises what the engine's module and the container's plan raise."""
    choice, settled, service = parts.choice, parts.settled, parts.service
    inside, why = _inside(parts)
    launch = _launch(parts, inside)
    module = engine(choice.build.engine)
    own = module.env(launch)
    return Plan(
        name=service.name,
        model=parts.model,
        build=choice.build,
        image=choice.image,
        runtime=choice.runtime,
        container=inside,
        device=settled.devices.device,
        device_name=settled.devices.name,
        address=ADDRESS,
        port=parts.port,
        port_explicit=service.port is not None,
        context=settled.context,
        concurrency=settled.concurrency,
        weights_precision=settled.precision.weights,
        kv_precision=settled.precision.kv,
        reasoning=parts.modes.reasoning,
        parallel=settled.spread,
        memory=settled.memory,
        verdict=settled.verdict,
        decisions=(*_decisions(parts), *env_decisions(service, planned=own), *why),
        argv=module.argv(launch),
        env={
            **own,
            **engine_env(service),
            **({} if inside is not None else mask_of(settled.devices, host=parts.host)),
        },
    )


def _inside(parts: Parts) -> tuple[ContainerPlan | None, tuple[Decision, ...]]:
    """What only a container needs; nothing for a process."""
    choice, settled = parts.choice, parts.settled
    if choice.reference is None:
        return None, ()
    case = Inside(
        runtime=choice.runtime,
        host=parts.host,
        model=parts.model,
        service=parts.service,
        build=choice.build,
        image=choice.image,
        reference=choice.reference.text,
        image_reason=choice.reference.decision.reason,
        devices=settled.devices,
        ranks=settled.spread.ranks,
        weights=settled.memory.weights * settled.spread.ranks,
        passed=parts.passed,
    )
    return container_plan(case)


def _decisions(parts: Parts) -> Iterator[Decision]:
    host, model, service, passed = parts.host, parts.model, parts.service, parts.passed
    settled, modes, build = parts.settled, parts.modes, parts.choice.build
    devices = settled.devices
    yield from parts.choice.decisions
    yield device_decision(devices, host=host, service=service)
    yield from precision_decisions(settled.precision, host=host, service=service, devices=devices, passed=passed)
    gained = gain_decision(settled, model=model)
    if gained is not None:
        yield gained
    yield parallel_decision(
        devices, passed=passed, spread=settled.spread, host=host, model=model, precision=settled.precision,
        engine=build.engine,
    )  # fmt: skip
    yield from settled.decisions
    yield modes.thinking.decision
    yield modes.sampling.decision
    yield from serving_decisions(
        model=model, service=service, build=build, port=parts.port, passed=passed, tools=modes.tools.decision
    )
    for one in (parts.media.decision, share_decision(passed, service)):
        if one is not None:
            yield one
    yield from passed.decisions()


def _launch(parts: Parts, inside: ContainerPlan | None) -> Launch:
    host, model, settled, modes = parts.host, parts.model, parts.settled, parts.modes
    build, precision = parts.choice.build, settled.precision
    planned = (*modes.thinking.flags, *modes.sampling.flags)
    return Launch(
        model_path=inside.model_path if inside is not None else model.path or model.id,
        served_name=model.served_name,
        address=LISTEN if inside is not None else ADDRESS,
        port=inside.port if inside is not None else parts.port,
        context=settled.context,
        concurrency=settled.concurrency,
        kv_cache_bytes=settled.kv_cache_bytes,
        backend=build.backend,
        weights_precision=precision.weights,
        kv_precision=precision.kv,
        reasoning=modes.reasoning,
        tool_parser=modes.tools.parser,
        devices=settled.devices.ids,
        trust_remote_code=parts.service.trust_remote_code,
        extra=without_repeats(planned, parts.passed) + parts.passed.words,
        cores=host.cpu.cores.value if isinstance(host.cpu.cores, Known) else None,
        parallel=settled.spread,
        gpu_memory_utilization=settled.question.utilization if settled.question.room.unified else None,
        quantization_flags=precision.cache.flags,
        version=build.version,
        media_domains=parts.media.domains,
        in_image=inside is not None,
    )
