"""Context, requests at once and the memory they take: on the CPU by a size that we choose, on cards by the engine's."""

import math
from dataclasses import dataclass, replace

from selfhost.plan.context import (
    Room,
    asked_context,
    concurrency_decision,
    context_decision,
    refuse_impossible,
    settle,
)
from selfhost.plan.devices import Devices
from selfhost.plan.memory.ask import question_of, room_of, weights_of
from selfhost.plan.memory.predict import predict
from selfhost.plan.memory.question import Answer, Question, Spread
from selfhost.plan.memory.vllm import budget
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision import Precision
from selfhost.plan.search import Case, Tried, search
from selfhost.plan.verdict import decision_on_cards
from selfhost.shapes.geometry import Geometry
from selfhost.shapes.host import Host, Known, Unknown
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, EngineBuild, MemoryPlan, Verdict
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes

_SHAPELESS = Geometry(layers=1, full_layers=1, hidden=1, heads=1, kv_heads=1, head_dim=1, vocab=1, exact=False)
"""Stands for a network of which nothing is known; no figure is computed from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What runs, where and with how much. `kv_cache_bytes` is 0 where the engine sizes its own cache."""

    devices: Devices
    precision: Precision
    spread: Spread
    context: int
    concurrency: int
    kv_cache_bytes: int
    memory: MemoryPlan
    verdict: Verdict
    question: Question
    answer: Answer
    decisions: tuple[Decision, ...]
    case: Case | None = None
    """None where the network's shape is unknown."""


def settle_on_cpu(
    *, host: Host, model: Model, service: Service, build: EngineBuild, devices: Devices,
    precisions: tuple[Precision, ...], passed: PassedOn, concurrency: int,
) -> Settled:  # fmt: skip
    """The KV cache is as large as is useful; the engine is told its size."""
    precision = precisions[0]
    parts = budget(host=host, model=model, precision=precision, devices=devices, concurrency=concurrency, passed=passed)
    on_cpu = not devices.cards
    room = settle(model=model, service=service, passed=passed, budget=parts, concurrency=concurrency, on_cpu=on_cpu)
    question = question_of(
        host, model, build, devices.cards, precision,
        geometry=model.geometry.value if isinstance(model.geometry, Known) else _SHAPELESS,
        spread=Spread(tensor=max(1, len(devices.cards))), concurrency=concurrency, context=room.context, passed=passed,
        kv_bytes=room.memory.kv_cache,
    )  # fmt: skip
    answer = _answer_of(model, question, room)
    return Settled(
        devices=devices,
        precision=precision,
        spread=question.spread,
        context=room.context,
        concurrency=concurrency,
        kv_cache_bytes=room.memory.kv_cache if on_cpu else 0,
        memory=replace(room.memory, kv_tokens=answer.kv_tokens),
        verdict=room.verdict,
        question=question,
        answer=answer,
        decisions=room.decisions,
        case=_case(host, model, service, build=build, passed=passed, concurrency=concurrency),
    )


def _case(
    host: Host, model: Model, service: Service, *, build: EngineBuild, passed: PassedOn, concurrency: int
) -> Case | None:
    """What was settled before; None where the network's shape is unknown."""
    if isinstance(model.geometry, Unknown):
        return None
    return Case(
        host=host, model=model, geometry=model.geometry.value, build=build, service=service, passed=passed,
        concurrency=concurrency,
    )  # fmt: skip


def _answer_of(model: Model, question: Question, room: Room) -> Answer:
    """Tokens are the engine's own arithmetic; the parts are those that the plan shows."""
    memory = room.memory
    why = next((decision.reason for decision in room.decisions if decision.field == "memory"), "")
    computed = predict(question)
    mine = replace(
        computed, verdict=room.verdict, why=why, requested=memory.available, weights=memory.weights,
        activation_peak=memory.overhead, non_torch=0, graphs=0, kv_available=memory.kv_cache,
    )  # fmt: skip
    if isinstance(model.geometry, Known):
        return mine
    return replace(
        mine, kv_tokens=memory.kv_tokens, concurrency=memory.kv_tokens / room.context, longest=0, kv_needed=None,
        raw_bytes_per_token=memory.kv_bytes_per_token, effective_bytes_per_token=memory.kv_bytes_per_token, gaps=(),
        blocks=0, block_tokens=0, exact_kv=False, unknowns=(f"shape of the network: {model.geometry.reason}",),
    )  # fmt: skip


def settle_on_cards(
    *, host: Host, model: Model, service: Service, build: EngineBuild, devices: Devices,
    precisions: tuple[Precision, ...], passed: PassedOn, concurrency: int,
) -> Settled:  # fmt: skip
    """The first way that fits; the engine takes what its share of the card leaves."""
    native = model.context_native.value if isinstance(model.context_native, Known) else None
    asked = asked_context(service, passed, native=native)
    if asked is not None:
        refuse_impossible(asked, native=native, model=model, service=service, passed=passed)
    case = _case(host, model, service, build=build, passed=passed, concurrency=concurrency)
    if case is None:
        return settle_on_cpu(
            host=host, model=model, service=service, build=build, devices=devices, precisions=precisions,
            passed=passed, concurrency=concurrency,
        )  # fmt: skip
    found = _honest(case, shared(case, search(case, devices=devices, precisions=precisions)))
    return _settled(case, found, native=native)


def shared(case: Case, found: Tried) -> Tried:
    """In memory that the host computes in too, the cache takes what the requests need, not all that is left."""
    answer = found.answer
    if not found.question.room.unified or answer.verdict is not Verdict.FITS or answer.kv_needed is None:
        return found
    if found.question.kv_bytes is not None or found.question.engine != "vllm":
        return found
    size = min(answer.kv_available - answer.margin, case.concurrency * answer.kv_needed)
    share = found.question.utilization
    if case.passed.fraction("--gpu-memory-utilization") is None:  # vLLM starts only where so much is free
        share = math.ceil((_taken(answer) + size) / found.question.room.total * 100) / 100
    question = replace(found.question, kv_bytes=size, utilization=share)
    return replace(found, question=question, answer=predict(question))


def _honest(case: Case, found: Tried) -> Tried:
    """Uncertain where the user passes on what nobody computes, a size is unknown, or others hold the memory now."""
    unknowns = [f"what `{flag}` does to memory" for flag in case.passed.uncounted]
    size = weights_of(case.model, found.precision, geometry=case.geometry, spread=found.spread)
    if size.checkpoint is None and size.parameters is None:
        unknowns.append("size of the weights")
    room = room_of(case.host, found.devices.cards)
    if not room.total:
        unknowns.append("memory of the card")
    answer = found.answer
    if unknowns:
        why = f"unknown: {'; '.join(unknowns)}"
        unsure = replace(answer, verdict=Verdict.TOO_CLOSE, why=why, unknowns=(*answer.unknowns, *unknowns))
        return replace(found, answer=unsure)
    if answer.verdict is Verdict.FITS and room.free is not None and room.free < _start_needs(found):
        why = f"only {format_bytes(room.free)} are free now; other processes hold the rest"
        return replace(found, answer=replace(answer, verdict=Verdict.TOO_CLOSE, why=why))
    return found


def _start_needs(found: Tried) -> int:
    """VLLM refuses to start when less than its share of the card is free, SGLang takes its share of what is free.

    A KV cache of a given size does not lift that (vLLM 0.33.0: v1/worker/utils.py, request_memory).
    """
    answer = found.answer
    needs = _taken(answer) + answer.kv_available
    return max(needs, answer.requested) if found.question.engine == "vllm" else needs


def _taken(answer: Answer) -> int:
    """Bytes that are gone before the KV cache."""
    return answer.weights + answer.activation_peak + answer.non_torch + answer.graphs


def _settled(case: Case, found: Tried, *, native: int | None) -> Settled:
    answer, spread = found.answer, found.spread
    memory = MemoryPlan(
        weights=answer.weights,
        overhead=_taken(answer) - answer.weights,
        kv_cache=max(0, answer.kv_available),
        kv_bytes_per_token=int(answer.raw_bytes_per_token),
        kv_tokens=answer.kv_tokens,
        available=found.question.room.total,
        where=found.question.room.name if spread.ranks == 1 else f"each {found.question.room.name}",
    )
    decisions = (
        context_decision(
            case.model, case.service, case.passed, memory, context=found.context, native=native, on_cpu=False,
            fits=answer.verdict is Verdict.FITS,
        ),
        concurrency_decision(
            case.service, case.passed, memory, context=found.context, concurrency=case.concurrency, on_cpu=False
        ),
        decision_on_cards(memory, answer, found.question),
    )  # fmt: skip
    return Settled(
        devices=found.devices,
        precision=found.precision,
        spread=spread,
        context=found.context,
        concurrency=case.concurrency,
        kv_cache_bytes=found.question.kv_bytes or 0,
        memory=memory,
        verdict=answer.verdict,
        question=found.question,
        answer=answer,
        decisions=decisions,
        case=case,
    )
