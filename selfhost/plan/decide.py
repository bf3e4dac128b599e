"""The order of decisions. Pure: the same host, model and service give the same plan on any machine."""

from dataclasses import dataclass, replace

from selfhost.plan.assemble import Modes, Parts, assembled
from selfhost.plan.cluster.forms import with_forms
from selfhost.plan.context import asked_context, concurrency_of
from selfhost.plan.devices import choose_devices
from selfhost.plan.engine import choose_engine, chosen
from selfhost.plan.foreign_code import refuse_foreign_code
from selfhost.plan.media import decide_media
from selfhost.plan.memory.question import Answer, Question
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision import Precision, precisions
from selfhost.plan.reasoning import decide_reasoning
from selfhost.plan.sampling import decide_sampling
from selfhost.plan.search import USEFUL
from selfhost.plan.settle import Settled, settle_on_cards, settle_on_cpu
from selfhost.plan.share import with_share
from selfhost.plan.tools import decide_tools
from selfhost.shapes.host import Accelerator, Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import EngineBuild, Plan, Verdict
from selfhost.shapes.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The plan, and the arithmetic that it rests on."""

    plan: Plan
    question: Question
    answer: Answer
    precision: Precision
    cards: tuple[Accelerator, ...]


def decide(*, host: Host, model: Model, service: Service, port: int, build: EngineBuild | None = None) -> Plan:
    """Everything that is needed to start the engine, each with its reason. Raises InputError for the impossible.

    A model that does not fit is no error here: the plan says so in its verdict.
    """
    return decide_all(host=host, model=model, service=service, port=port, build=build).plan


def decide_all(
    *, host: Host, model: Model, service: Service, port: int, build: EngineBuild | None = None, count: int | None = None
) -> Decided:
    """Like `decide`, with the arithmetic. `count` asks for so many equal cards."""
    found, passed = _decided(host=host, model=model, service=service, port=port, build=build, count=count)
    if found.plan.cluster is None:
        return found

    def again(wish: Service) -> Plan:
        return _decided(
            host=host, model=model, service=wish, port=port, build=found.plan.build, count=len(found.cards) or None
        )[0].plan

    return replace(found, plan=with_forms(found.plan, service=service, passed=passed, again=again))


def _decided(
    *, host: Host, model: Model, service: Service, port: int, build: EngineBuild | None, count: int | None
) -> tuple[Decided, PassedOn]:
    refuse_foreign_code(model, service)
    devices = choose_devices(host=host, service=service, count=count)
    choice = (
        chosen(build, host=host, devices=devices, service=service)
        if build is not None
        else choose_engine(host=host, devices=devices, service=service)
    )
    own = PassedOn.of(choice.build.engine, service.engine_args)
    passed = with_share(own, service, on_cpu=not devices.cards)
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
    parts = Parts(
        host=host, model=model, service=service, choice=choice, settled=settled, modes=modes, passed=passed, port=port,
        media=decide_media(model=model, service=service, build=choice.build, passed=passed),
    )  # fmt: skip
    return Decided(
        plan=assembled(parts), question=settled.question, answer=settled.answer, precision=settled.precision,
        cards=settled.devices.cards,
    ), passed  # fmt: skip


def _talked_in(settled: Settled, model: Model, service: Service, passed: PassedOn) -> int:
    """Tokens for thoughts and answer. What does not fit is cut to the shortest context; no budget is judged by that."""
    native = model.context_native.value if isinstance(model.context_native, Known) else None
    if settled.verdict is not Verdict.DOES_NOT_FIT or asked_context(service, passed, native=native) is not None:
        return settled.context
    return max(settled.context, native or USEFUL)


def _modes(*, model: Model, service: Service, name: str, context: int, passed: PassedOn) -> Modes:
    thinking = decide_reasoning(model=model, service=service, engine=name, context=context)
    reasoning = passed.reasoning(thinking.plan)
    sampling = decide_sampling(model=model, reasoning=reasoning, passed=passed, engine=name)
    if sampling.client:  # an engine that keeps no such default: whoever asks has to send it
        reasoning = replace(reasoning, client_extras={**sampling.client, **reasoning.client_extras})
    return Modes(
        thinking=thinking,
        reasoning=reasoning,
        sampling=sampling,
        tools=decide_tools(model=model, engine=name, passed=passed),
    )
