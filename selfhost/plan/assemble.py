"""All that was decided put together: the engine's words, its environment, and every decision in its order."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from selfhost.engines.base import engine
from selfhost.engines.launch import Launch
from selfhost.plan.cluster.amounts import cores_of, drain_of
from selfhost.plan.cluster.case import LISTEN, MODEL_PATH, PORT, group_in, seen_in
from selfhost.plan.cluster.case import Case as Around
from selfhost.plan.cluster.decide import cluster_plan, device_of
from selfhost.plan.container.decide import Case as Inside
from selfhost.plan.container.decide import container_plan
from selfhost.plan.devices import Devices, device_decision
from selfhost.plan.engine import KUBERNETES, EngineChoice
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
from selfhost.shapes.cluster import ClusterAsk, ClusterPlan
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import ContainerPlan, Decision, Plan, ReasoningPlan
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes


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
    around = _around(parts)
    inside, why = _inside(parts)
    launch = _launch(parts, inside, around)
    module = engine(choice.build.engine)
    own = module.env(launch)
    cluster, asked = cluster_plan(around) if around is not None else (None, ())
    return Plan(
        name=service.name,
        model=parts.model,
        build=choice.build,
        image=choice.image,
        runtime=choice.runtime,
        container=inside,
        cluster=cluster,
        device=_device(cluster, settled.devices),
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
        decisions=(*_decisions(parts), *env_decisions(service, planned=own), *why, *asked),
        argv=module.argv(launch),
        env={
            **own,
            **engine_env(service),
            **(mask_of(settled.devices, host=parts.host) if inside is None and cluster is None else {}),
        },
    )


def _inside(parts: Parts) -> tuple[ContainerPlan | None, tuple[Decision, ...]]:
    """What only a container needs; nothing for a process."""
    choice, settled = parts.choice, parts.settled
    if choice.reference is None or choice.runtime == KUBERNETES:
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


def _around(parts: Parts) -> Around | None:
    """What only a cluster needs to know; None for everything else."""
    choice, settled = parts.choice, parts.settled
    if choice.reference is None or choice.runtime != KUBERNETES:
        return None
    facts = seen_in(parts.host)
    return Around(
        host=parts.host,
        model=parts.model,
        service=parts.service,
        build=choice.build,
        image=choice.image,
        reference=choice.reference.text,
        image_reason=choice.reference.decision.reason,
        devices=settled.devices,
        ranks=settled.spread.ranks,
        memory=settled.memory,
        passed=parts.passed,
        ask=parts.service.cluster or ClusterAsk(),
        facts=facts,
        group=group_in(facts, settled.devices),
    )


def _devices(parts: Parts, decision: Decision) -> Decision:
    """In a cluster the scheduler chooses the card; which kind of card it is, the nodes show or this machine has."""
    around = _around(parts)
    if around is None or not around.devices.cards:
        return decision
    why = "the smallest in the cluster on which it fits" if around.group is not None else "as on this machine"
    size = around.devices.cards[0].memory_total
    shown = f", {format_bytes(size.value)} each" if isinstance(size, Known) else ""
    return replace(decision, value=around.devices.name, reason=f"{why}{shown}")


def _device(cluster: ClusterPlan | None, devices: Devices) -> str:
    return devices.device if cluster is None else device_of(cluster, devices)


def _decisions(parts: Parts) -> Iterator[Decision]:
    host, model, service, passed = parts.host, parts.model, parts.service, parts.passed
    settled, modes, build = parts.settled, parts.modes, parts.choice.build
    devices = settled.devices
    yield from parts.choice.decisions
    yield _devices(parts, device_decision(devices, host=host, service=service))
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
        model=model, service=service, build=build, port=parts.port, passed=passed, tools=modes.tools.decision,
        in_cluster=parts.choice.runtime == KUBERNETES,
    )  # fmt: skip
    for one in (parts.media.decision, share_decision(passed, service)):
        if one is not None:
            yield one
    yield from passed.decisions()


def _launch(parts: Parts, inside: ContainerPlan | None, around: Around | None) -> Launch:
    host, model, settled, modes = parts.host, parts.model, parts.settled, parts.modes
    build, precision = parts.choice.build, settled.precision
    planned = (*modes.thinking.flags, *modes.sampling.flags, *_drain(around))
    cores = host.cpu.cores.value if isinstance(host.cpu.cores, Known) else None
    path = model.path or model.id if around is None else MODEL_PATH
    in_image = inside is not None or around is not None
    return Launch(
        model_path=inside.model_path if inside is not None else path,
        served_name=model.served_name,
        address=LISTEN if in_image else ADDRESS,
        port=PORT if in_image else parts.port,
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
        cores=cores if around is None else cores_of(around),
        parallel=settled.spread,
        gpu_memory_utilization=settled.question.utilization if settled.question.room.unified else None,
        quantization_flags=precision.cache.flags,
        version=build.version,
        media_domains=parts.media.domains,
        in_image=in_image,
    )


def _drain(around: Around | None) -> tuple[str, ...]:
    """VLLM ends what runs at once unless it is told to wait; SGLang waits by itself."""
    if around is None or around.build.engine != "vllm":
        return ()
    return "--shutdown-timeout", str(drain_of(around)[0])
