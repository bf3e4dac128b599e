"""The order of decisions. Pure: the same host, model and service give the same plan on any machine."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from selfhost.engines.base import engine
from selfhost.engines.launch import Launch
from selfhost.plan.context import asked_context, concurrency_of
from selfhost.plan.devices import choose_devices, device_decision
from selfhost.plan.engine import EngineChoice, choose_engine, chosen
from selfhost.plan.foreign_code import refuse_foreign_code
from selfhost.plan.gains import gain_decision
from selfhost.plan.mask import mask_of
from selfhost.plan.memory.question import Answer, Question
from selfhost.plan.parallel import parallel_decision
from selfhost.plan.passed_on import PassedOn, without_repeats
from selfhost.plan.precision import Precision, precision_decisions, precisions
from selfhost.plan.reasoning import ReasoningDecision, decide_reasoning
from selfhost.plan.sampling import Sampling, decide_sampling
from selfhost.plan.search import USEFUL
from selfhost.plan.serving import ADDRESS, serving_decisions
from selfhost.plan.settle import Settled, settle_on_cards, settle_on_cpu
from selfhost.plan.tools import Tools, decide_tools
from selfhost.shapes.host import Accelerator, Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, EngineBuild, Plan, ReasoningPlan, Verdict
from selfhost.shapes.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The plan, and the arithmetic that it rests on."""

    plan: Plan
    question: Question
    answer: Answer
    precision: Precision
    cards: tuple[Accelerator, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Modes:
    """What is decided once the context is known."""

    thinking: ReasoningDecision
    reasoning: ReasoningPlan
    sampling: Sampling
    tools: Tools


def decide(*, host: Host, model: Model, service: Service, port: int, build: EngineBuild | None = None) -> Plan:
    """Everything that is needed to start the engine, each with its reason. Raises InputError for the impossible.

    A model that does not fit is no error here: the plan says so in its verdict.
    """
    return decide_all(host=host, model=model, service=service, port=port, build=build).plan


def decide_all(
    *, host: Host, model: Model, service: Service, port: int, build: EngineBuild | None = None, count: int | None = None
) -> Decided:
    """Like `decide`, with the arithmetic. `count` asks for so many equal cards."""
    refuse_foreign_code(model, service)
    devices = choose_devices(host=host, service=service, count=count)
    choice = (
        chosen(build, host=host, devices=devices, service=service)
        if build is not None
        else choose_engine(host=host, devices=devices, service=service)
    )
    passed = PassedOn.of(choice.build.engine, service.engine_args)
    found = precisions(
        model=model, service=service, devices=devices, engine=choice.build.engine, version=choice.build.version,
        passed=passed,
    )  # fmt: skip
    concurrency = concurrency_of(service, passed, on_cpu=not devices.cards)
    settle = settle_on_cards if devices.cards else settle_on_cpu
    settled = settle(
        host=host, model=model, service=service, build=choice.build, devices=devices, precisions=found, passed=passed,
        concurrency=concurrency,
    )  # fmt: skip
    modes = _modes(
        model=model,
        service=service,
        name=choice.build.engine,
        context=_talked_in(settled, model, service, passed),
        passed=passed,
    )
    return _decided(host, model, service, choice=choice, settled=settled, modes=modes, passed=passed, port=port)


def _talked_in(settled: Settled, model: Model, service: Service, passed: PassedOn) -> int:
    """Tokens for thoughts and answer. What does not fit is cut to the shortest context; no budget is judged by that."""
    native = model.context_native.value if isinstance(model.context_native, Known) else None
    if settled.verdict is not Verdict.DOES_NOT_FIT or asked_context(service, passed, native=native) is not None:
        return settled.context
    return max(settled.context, native or USEFUL)


def _modes(*, model: Model, service: Service, name: str, context: int, passed: PassedOn) -> _Modes:
    thinking = decide_reasoning(model=model, service=service, engine=name, context=context)
    reasoning = passed.reasoning(thinking.plan)
    sampling = decide_sampling(model=model, reasoning=reasoning, passed=passed, engine=name)
    if sampling.client:  # an engine that keeps no such default: whoever asks has to send it
        reasoning = replace(reasoning, client_extras={**sampling.client, **reasoning.client_extras})
    return _Modes(
        thinking=thinking,
        reasoning=reasoning,
        sampling=sampling,
        tools=decide_tools(model=model, engine=name, passed=passed),
    )


def _decided(
    host: Host, model: Model, service: Service, *, choice: EngineChoice, settled: Settled, modes: _Modes,
    passed: PassedOn, port: int,
) -> Decided:  # fmt: skip
    build, precision = choice.build, settled.precision
    launch = _launch(host, model, service, choice=choice, settled=settled, modes=modes, passed=passed, port=port)
    module = engine(build.engine)
    plan = Plan(
        name=service.name, model=model, build=build, image=choice.image, runtime=choice.runtime,
        device=settled.devices.device, device_name=settled.devices.name, address=ADDRESS, port=port,
        port_explicit=service.port is not None, context=settled.context, concurrency=settled.concurrency,
        weights_precision=precision.weights, kv_precision=precision.kv, reasoning=modes.reasoning,
        parallel=settled.spread, memory=settled.memory, verdict=settled.verdict,
        decisions=tuple(
            _decisions(host, model, service, choice=choice, settled=settled, modes=modes, passed=passed, port=port)
        ),
        argv=module.argv(launch),
        env={**module.env(launch), **mask_of(settled.devices, host=host)},
    )  # fmt: skip
    return Decided(
        plan=plan, question=settled.question, answer=settled.answer, precision=precision, cards=settled.devices.cards
    )


def _decisions(
    host: Host, model: Model, service: Service, *, choice: EngineChoice, settled: Settled, modes: _Modes,
    passed: PassedOn, port: int,
) -> Iterator[Decision]:  # fmt: skip
    devices, build = settled.devices, choice.build
    yield from choice.decisions
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
        model=model, service=service, build=build, port=port, passed=passed, tools=modes.tools.decision
    )
    yield from passed.decisions()


def _launch(
    host: Host, model: Model, service: Service, *, choice: EngineChoice, settled: Settled, modes: _Modes,
    passed: PassedOn, port: int,
) -> Launch:  # fmt: skip
    build, precision = choice.build, settled.precision
    return Launch(
        model_path=model.path or model.id,
        served_name=model.served_name,
        address=ADDRESS,
        port=port,
        context=settled.context,
        concurrency=settled.concurrency,
        kv_cache_bytes=settled.kv_cache_bytes,
        backend=build.backend,
        weights_precision=precision.weights,
        kv_precision=precision.kv,
        reasoning=modes.reasoning,
        tool_parser=modes.tools.parser,
        devices=settled.devices.ids,
        trust_remote_code=service.trust_remote_code,
        extra=without_repeats((*modes.thinking.flags, *modes.sampling.flags), passed) + service.engine_args,
        cores=host.cpu.cores.value if isinstance(host.cpu.cores, Known) else None,
        parallel=settled.spread,
        gpu_memory_utilization=settled.question.utilization if settled.question.room.unified else None,
        quantization_flags=precision.cache.flags,
        version=build.version,
    )
