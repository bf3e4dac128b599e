"""The order of decisions. Pure: the same host, model and service give the same plan on any machine."""

from selfhost.engines import builds
from selfhost.engines.base import engine
from selfhost.engines.launch import Launch
from selfhost.plan.context import concurrency_of, settle
from selfhost.plan.devices import choose_devices, device_decision
from selfhost.plan.engine import engine_decisions
from selfhost.plan.foreign_code import refuse_foreign_code
from selfhost.plan.mask import mask_of
from selfhost.plan.memory.vllm import budget
from selfhost.plan.parallel import parallel_decision
from selfhost.plan.passed_on import PassedOn, without_repeats
from selfhost.plan.precision import choose_precision, precision_decisions
from selfhost.plan.reasoning import decide_reasoning
from selfhost.plan.sampling import decide_sampling
from selfhost.plan.serving import ADDRESS, serving_decisions
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import EngineBuild, Plan
from selfhost.shapes.service import Service


def decide(*, host: Host, model: Model, service: Service, port: int, build: EngineBuild | None = None) -> Plan:
    """Everything that is needed to start the engine, each with its reason. Raises InputError for the impossible.

    A model that does not fit is no error here: the plan says so in its verdict.
    """
    refuse_foreign_code(model, service)
    devices = choose_devices(host=host, service=service)
    build = build or builds.choose(backend=devices.backend, asked=service.engine)
    passed = PassedOn.of(build.engine, service.engine_args)
    precision = choose_precision(model=model, service=service, devices=devices, passed=passed)
    on_cpu = not devices.cards
    concurrency = concurrency_of(service, passed, on_cpu=on_cpu)
    parts = budget(host=host, model=model, precision=precision, devices=devices, concurrency=concurrency, passed=passed)
    room = settle(model=model, service=service, passed=passed, budget=parts, concurrency=concurrency, on_cpu=on_cpu)
    thinking = decide_reasoning(model=model, service=service, engine=build.engine, context=room.context)
    reasoning = passed.reasoning(thinking.plan)
    sampling = decide_sampling(model=model, reasoning=reasoning, passed=passed)
    tool_parser = model.family.tool_parser.get(build.engine, "")
    launch = Launch(
        model_path=model.path or model.id,
        served_name=model.served_name,
        address=ADDRESS,
        port=port,
        context=room.context,
        concurrency=concurrency,
        kv_cache_bytes=room.memory.kv_cache if on_cpu else 0,
        backend=build.backend,
        weights_precision=precision.weights,
        kv_precision=precision.kv,
        reasoning=reasoning,
        tool_parser=tool_parser,
        devices=devices.ids,
        trust_remote_code=service.trust_remote_code,
        extra=without_repeats((*thinking.flags, *sampling.flags), passed) + service.engine_args,
        cores=host.cpu.cores.value if isinstance(host.cpu.cores, Known) else None,
    )
    return Plan(
        name=service.name, model=model, build=build, device=devices.device, device_name=devices.name,
        address=ADDRESS, port=port, port_explicit=service.port is not None, context=room.context,
        concurrency=concurrency, weights_precision=precision.weights, kv_precision=precision.kv, reasoning=reasoning,
        memory=room.memory, verdict=room.verdict,
        decisions=(
            *engine_decisions(build=build, service=service),
            device_decision(devices, host=host, service=service),
            *precision_decisions(precision, host=host, service=service, devices=devices, passed=passed),
            parallel_decision(devices, passed=passed),
            *room.decisions,
            thinking.decision,
            sampling.decision,
            *serving_decisions(
                model=model, service=service, build=build, port=port, passed=passed, tool_parser=tool_parser
            ),
            *passed.decisions(),
        ),
        argv=engine(build.engine).argv(launch),
        env={**engine(build.engine).env(launch), **mask_of(devices, host=host)},
    )  # fmt: skip
