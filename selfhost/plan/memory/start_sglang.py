"""One start of SGLang: the static share of what is free before the weights load, less the weights, is the pools'."""

from selfhost.plan.memory.evidence import measured_runs
from selfhost.plan.memory.fits import Outcome, margin_of
from selfhost.plan.memory.fraction_sglang import free_before, image_cache, static_fraction
from selfhost.plan.memory.kv_sglang import SglangCache, SglangPools, sglang_cache
from selfhost.plan.memory.pages import form_of
from selfhost.plan.memory.question import Answer, Gap, Question
from selfhost.plan.memory.releases import Release, release
from selfhost.plan.memory.remarks import unknowns_of
from selfhost.plan.memory.weights import weights_on_rank
from selfhost.shapes.plan import Verdict
from selfhost.shapes.units import format_bytes

LEAST = 2048
"""Tokens that the pool must hold to be of use, where no context was asked for."""


def start_sglang(question: Question) -> Answer:
    version = release("sglang", question.version)
    weights = weights_on_rank(question)
    before = free_before(question)
    fraction = question.utilization or static_fraction(question, version)
    requested = int(before * fraction) - image_cache(question, version)
    rest = question.kv_bytes if question.kv_bytes is not None else requested - weights.rank
    cache = sglang_cache(question)
    pools = cache.pools(rest)
    longest = min(pools.tokens, question.native or question.context or pools.tokens)
    context = question.context or longest or None
    runs = measured_runs(question, version)
    margin = margin_of(question, weights, runs)
    outcome = _outcome(question, cache, rest, margin)
    return Answer(
        verdict=outcome.verdict,
        why=outcome.why,
        margin=margin,
        requested=requested,
        weights=weights.rank,
        activation_peak=0,
        non_torch=question.room.total - before if question.room.free is None else 0,
        graphs=0,
        graphs_after=before - int(before * fraction),
        kv_available=rest,
        kv_needed=int(context * cache.cell) if context else None,
        context=context,
        longest=longest,
        kv_tokens=pools.tokens,
        concurrency=pools.tokens / context if context else 0.0,
        blocks=pools.tokens // cache.page,
        block_tokens=cache.page,
        raw_bytes_per_token=float(cache.raw),
        effective_bytes_per_token=rest / pools.tokens if pools.tokens else 0.0,
        gaps=_gaps(cache, pools, rest),
        state_bytes=cache.state,
        exact_kv=cache.exact,
        measured_runs=runs,
        notes=_notes(question, version, cache, pools, before - int(before * fraction)),
        unknowns=unknowns_of(question, weights, form_of(question.kv, question.computed).known),
    )


def _outcome(question: Question, cache: SglangCache, rest: int, margin: int) -> Outcome:
    """`rest` against what one request needs, its state slots included."""
    wanted = question.context or min(question.native or LEAST, LEAST)
    needed = cache.least(wanted)
    if rest <= -margin:
        return Outcome(
            verdict=Verdict.DOES_NOT_FIT,
            why=f"the weights leave no room for the KV cache, {format_bytes(-rest)} are missing in the static share",
        )
    said = f"{format_bytes(max(0, rest))} are left for the pools, one request needs {format_bytes(needed)}"
    if rest >= needed + margin:
        return Outcome(verdict=Verdict.FITS, why=said)
    if rest <= needed - margin:
        return Outcome(verdict=Verdict.DOES_NOT_FIT, why=said)
    return Outcome(verdict=Verdict.TOO_CLOSE, why=f"{said}: nearer than {format_bytes(margin)}, the estimate's error")


def _gaps(cache: SglangCache, pools: SglangPools, rest: int) -> tuple[Gap, ...]:
    if not pools.tokens or not cache.raw:
        return ()
    states = pools.state_bytes / pools.tokens / cache.raw
    windows = cache.cell / cache.raw - 1
    floor = rest / pools.tokens / cache.raw - 1 - states - windows
    parts = (("state pool", states), ("windowed layers' pool", windows), ("floor of pages", floor))
    return tuple(Gap(name=name, share=share) for name, share in parts if abs(share) > _NOTHING)


_NOTHING = 1e-9


def _notes(
    question: Question, version: Release, cache: SglangCache, pools: SglangPools, outside: int
) -> tuple[str, ...]:
    del version
    said = [f"{format_bytes(outside)} stay free for activations and graphs: nothing measures whether they are enough"]
    if cache.state:
        said.append(
            f"{pools.slots:,} state slots of {format_bytes(cache.state)}, for {pools.requests:,} requests at once"
        )
    if question.context and question.context > pools.tokens:
        said.append(f"requests of more than {pools.tokens:,} tokens fail, inside the context too")
    return tuple(said)
