"""How many tokens a request may have, how many requests run at once, and the KV cache that holds them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from selfhost.core.errors import InputError
from selfhost.plan.command_line import command_line
from selfhost.plan.memory.vllm import Budget
from selfhost.plan.origin import SELFHOST, by
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.verdict import judge, memory_decision
from selfhost.shapes.host import Known, Unknown
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, Evidence, MemoryPlan, Verdict
from selfhost.shapes.service import Service
from selfhost.shapes.units import GIB, MIB, format_tokens

CPU_CONTEXT = 8192
"""On a CPU a prompt is read at tens to hundreds of tokens per second: a longer one takes minutes to its first word."""
GPU_CONTEXT = 32_768
UNKNOWN_CONTEXT = 4096
SMALLEST = 16
LEAST_USEFUL = 1024
"""Below this selfhost does not shorten the context by itself to make a model fit."""
CPU_CONCURRENCY = 8
GPU_CONCURRENCY = 32
SHARE_TOKENS = 2048
"""What each request that runs at once gets of the KV cache, when full contexts for all would take too much."""
CHEAP_KV = GIB
SOURCE = "vLLM 0.32.0 source, v1/worker/cpu_worker.py and v1/core/kv_cache_utils.py"
SOURCE_ON_CARDS = (
    "plan/memory, as vLLM 0.33.0: v1/core/kv_cache_planning.py and SGLang 0.5.23: srt/mem_cache compute it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Context in tokens, concurrency in requests, and the memory they take."""

    context: int
    concurrency: int
    memory: MemoryPlan
    verdict: Verdict
    decisions: tuple[Decision, ...]


def concurrency_of(service: Service, passed: PassedOn, *, on_cpu: bool) -> int:
    """How many requests run at once. Raises InputError for less than one."""
    asked = passed.count("--max-num-seqs") or service.concurrency
    if asked is not None and asked < 1:
        raise InputError(
            f"a concurrency of {asked} is less than one request",
            why="It is the number of requests that the engine works on at once; others wait in line.",
            fix=(f"for instance:\n{command_line('up', service, change={'concurrency': '4'})}",),
            id="PL004",
        )
    return asked or (CPU_CONCURRENCY if on_cpu else GPU_CONCURRENCY)


def settle(*, model: Model, service: Service, passed: PassedOn, budget: Budget, concurrency: int, on_cpu: bool) -> Room:
    """Choose context and KV cache inside `budget` and judge the sum. Raises InputError for an impossible context."""
    native = model.context_native.value if isinstance(model.context_native, Known) else None
    asked = asked_context(service, passed, native=native)
    if asked is not None:
        refuse_impossible(asked, native=native, model=model, service=service, passed=passed)
    room = budget.available - budget.margin - budget.weights - budget.overhead
    context = asked if asked is not None else _longest(native, budget, room=room, on_cpu=on_cpu)
    kv_bytes = _kv_bytes(budget, passed, context=context, concurrency=concurrency, room=room, on_cpu=on_cpu)
    memory = MemoryPlan(
        weights=budget.weights,
        overhead=budget.overhead,
        kv_cache=kv_bytes,
        kv_bytes_per_token=budget.kv_per_token,
        kv_tokens=budget.tokens_in(kv_bytes),
        available=budget.available,
        where=budget.where,
    )
    verdict, words = judge(memory, budget, context=context)
    decisions = (
        context_decision(
            model, service, passed, memory, context=context, native=native, on_cpu=on_cpu, fits=verdict is Verdict.FITS
        ),
        concurrency_decision(service, passed, memory, context=context, concurrency=concurrency, on_cpu=on_cpu),
        memory_decision(memory, budget, verdict=verdict, words=words),
    )
    return Room(context=context, concurrency=concurrency, memory=memory, verdict=verdict, decisions=decisions)


def asked_context(service: Service, passed: PassedOn, *, native: int | None) -> int | None:
    """The context asked for; `auto` of the engine means the model's own."""
    if passed.text("--max-model-len") is not None:
        return passed.count("--max-model-len") or native or UNKNOWN_CONTEXT
    return service.context


def refuse_impossible(asked: int, *, native: int | None, model: Model, service: Service, passed: PassedOn) -> None:
    def up(context: int) -> str:
        return command_line("up", service, change={"context": str(context)})

    if asked < SMALLEST:
        raise InputError(
            f"a context of {asked} tokens holds no conversation",
            why="Prompt, chat template and reply share it.",
            fix=(f"for instance:\n{up(min(native or UNKNOWN_CONTEXT, 4096))}",),
            id="PL003",
        )
    if native is not None and asked > native and not passed.stretches_positions:
        raise InputError(
            f"{model.id} knows {format_tokens(native)} tokens of context; {format_tokens(asked)} were asked for",
            why="Beyond the positions it was trained for a model talks nonsense, unless they are rescaled (RoPE), "
            "which changes its answers at every length.",
            fix=(
                f"stay within its own:\n{up(native)}",
                "or rescale knowingly: behind `--` pass --hf-overrides with the RoPE values of the model card",
            ),
            id="PL002",
        )


def candidates(native: int | None, *, on_cpu: bool) -> Iterator[int]:
    """The default context, then ever shorter ones that are still useful."""
    top = min(native or UNKNOWN_CONTEXT, CPU_CONTEXT if on_cpu else GPU_CONTEXT)
    yield top
    shorter = 2 ** math.floor(math.log2(top - 1)) if top > 2 else 0
    while shorter >= LEAST_USEFUL:
        yield shorter
        shorter //= 2


def _longest(native: int | None, budget: Budget, *, room: int, on_cpu: bool) -> int:
    tried = tuple(candidates(native, on_cpu=on_cpu))
    return next((tokens for tokens in tried if budget.kv_need(tokens) <= room), tried[-1])


def _kv_bytes(budget: Budget, passed: PassedOn, *, context: int, concurrency: int, room: int, on_cpu: bool) -> int:
    explicit = passed.count("--kv-cache-memory-bytes")
    if explicit is not None:
        return explicit
    one = budget.kv_need(context)
    if not on_cpu:  # the engine measures and takes what is left
        return max(0, room)
    share = passed.fraction("--gpu-memory-utilization")
    if share is not None:
        return max(0, int(budget.available * share) - budget.weights - budget.overhead)
    everyone = concurrency * one
    comfortable = max(min(everyone, CHEAP_KV), concurrency * budget.kv_need(min(context, SHARE_TOKENS)))
    wanted = min(comfortable, everyone, max(room, 0)) // MIB * MIB
    return max(wanted, math.ceil(one / MIB) * MIB)


def context_decision(
    model: Model,
    service: Service,
    passed: PassedOn,
    memory: MemoryPlan,
    *,
    context: int,
    native: int | None,
    on_cpu: bool,
    fits: bool,
) -> Decision:
    flag = "--max-model-len"
    who = passed.by(flag) if passed.text(flag) is not None else by(service, "context", service.context)
    trained = f"of {format_tokens(native)}" if native is not None else "of an unknown length"
    top = min(native or UNKNOWN_CONTEXT, CPU_CONTEXT if on_cpu else GPU_CONTEXT)
    if who != SELFHOST:
        reason = "asked for"
    elif context < top and memory.need > memory.available:
        reason = "as short as is useful, and still too much"
    elif context < top and not on_cpu and memory.kv_tokens >= min(2 * context, top):
        reason = "shortened until it fits with the estimate's error to spare; more on request"
    elif context < top:
        reason = "shortened until one request at full context fits this machine"
    elif native is not None and context == native:
        reason = "all that the model was trained for"
    elif isinstance(model.context_native, Unknown):
        reason = f"a careful default: {model.context_native.reason}"
    else:
        reason = "on a CPU longer prompts take minutes to read" if on_cpu else "a common length; more on request"
    stretched = native is not None and context > native
    reason += f"; {format_tokens(memory.kv_tokens)} tokens of KV cache"
    reason += ": one request at full context always fits" if fits else ""
    return Decision(
        field="context",
        value=f"{format_tokens(context)} {trained}",
        reason=f"beyond the trained length, by RoPE scaling; {reason}" if stretched else reason,
        source=SOURCE if on_cpu else SOURCE_ON_CARDS,
        evidence=Evidence.READ_IN_CODE,
        changes_behaviour=stretched,
        by=who,
    )


def concurrency_decision(
    service: Service, passed: PassedOn, memory: MemoryPlan, *, context: int, concurrency: int, on_cpu: bool
) -> Decision:
    flag = "--max-num-seqs"
    each = memory.kv_tokens // concurrency
    held = f"each with {format_tokens(each)} tokens of the KV cache" if each < context else "each at full context"
    return Decision(
        field="concurrency",
        value=f"{concurrency} requests at once",
        reason=f"{held}; more wait in line",
        source=SOURCE if on_cpu else SOURCE_ON_CARDS,
        evidence=Evidence.READ_IN_CODE,
        by=passed.by(flag) if passed.text(flag) is not None else by(service, "concurrency", service.concurrency),
    )
