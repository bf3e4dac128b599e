"""One start of vLLM: budget, what is taken before the KV cache, and what is left for tokens."""

import math
from dataclasses import dataclass

from selfhost.plan.memory.evidence import measured_runs
from selfhost.plan.memory.fits import Outcome, judged, margin_of
from selfhost.plan.memory.gaps import gaps_of, raw_per_token
from selfhost.plan.memory.kv_vllm import VllmCache, vllm_cache
from selfhost.plan.memory.overhead import Overhead, overhead
from selfhost.plan.memory.overhead_cpu import cpu_overhead
from selfhost.plan.memory.pages import form_of, state_bytes
from selfhost.plan.memory.question import Answer, Question
from selfhost.plan.memory.releases import Release, release
from selfhost.plan.memory.remarks import remarks_of, unknowns_of
from selfhost.plan.memory.weights import Sized, weights_on_rank
from selfhost.shapes.plan import Verdict

UTILIZATION, UTILIZATION_SINCE, UTILIZATION_BEFORE = 0.92, (0, 21), 0.9
"""gpu_memory_utilization (config/cache.py of 0.33.0; 0.9 in start-up logs up to 0.19)."""
STATES_CHECKED_SINCE = (0, 17)
"""`max_num_seqs exceeds available Mamba cache blocks` (config/compilation.py, vllm-project/vllm#34094)."""
LONGEST = 2**24
"""Where nobody says how far the model reaches."""
LEAST = 2048
"""Tokens that a context must have to be of use, where none was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One pipeline stage (the whole rank where there is one), with its room for KV cache."""

    cache: VllmCache
    overhead: Overhead
    kv_available: int

    @property
    def blocks(self) -> int:
        return self.cache.blocks(self.kv_available)


def start_vllm(question: Question) -> Answer:
    version = release("vllm", question.version)
    weights = weights_on_rank(question)
    requested = requested_bytes(question, version)
    stage = _binding(question, version, weights, requested)
    cache, available = stage.cache, stage.kv_available
    longest = cache.longest(available, question.native or question.context or LONGEST)
    context = question.context or longest or None
    blocks = stage.blocks
    runs = measured_runs(question, version)
    margin = margin_of(question, weights, runs)
    outcome = _outcome(question, stage, requested, taken=weights.rank + stage.overhead.before_cache, margin=margin)
    at = context or 1
    tokens = cache.tokens(blocks, at)
    raw = raw_per_token(cache)
    return Answer(
        verdict=outcome.verdict,
        why=outcome.why,
        margin=margin,
        requested=requested,
        weights=weights.rank,
        activation_peak=stage.overhead.activation_peak,
        non_torch=stage.overhead.non_torch,
        graphs=stage.overhead.graphs if stage.overhead.subtracted else 0,
        graphs_after=0 if stage.overhead.subtracted else stage.overhead.graphs,
        kv_available=available,
        kv_needed=cache.need(context) if context else None,
        context=context,
        longest=longest,
        kv_tokens=tokens,
        concurrency=cache.concurrency(blocks, at),
        blocks=blocks,
        block_tokens=cache.block_tokens,
        raw_bytes_per_token=raw,
        effective_bytes_per_token=available / tokens if tokens else 0.0,
        gaps=gaps_of(cache, available, at) if tokens else (),
        state_bytes=_states(question),
        exact_kv=cache.exact,
        measured_runs=runs,
        notes=remarks_of(question, version, cache, requested),
        unknowns=unknowns_of(question, weights, form_of(question.kv, question.computed).known),
    )


def requested_bytes(question: Question, version: Release) -> int:
    """What the engine plans with: its share of the whole card, or of memory that it shares with the system."""
    total = question.room.total
    if question.backend == "cpu":
        return math.ceil(total * question.utilization) if question.utilization else total
    share = question.utilization or (UTILIZATION if version >= UTILIZATION_SINCE else UTILIZATION_BEFORE)
    return math.ceil(total * share)


def _binding(question: Question, version: Release, weights: Sized, requested: int) -> Stage:
    """The stage with the fewest blocks: the last one has the sampler, the others may have a layer more."""
    stages = [_stage(question, version, weights, requested, last=True)]
    if question.spread.pipeline > 1:
        stages.append(_stage(question, version, weights, requested, last=False))
    return min(stages, key=lambda stage: stage.blocks)


def _stage(question: Question, version: Release, weights: Sized, requested: int, *, last: bool) -> Stage:
    beside = cpu_overhead(question) if question.backend == "cpu" else overhead(question, version, last_stage=last)
    left = requested - weights.rank - beside.before_cache
    return Stage(
        cache=vllm_cache(question, version, last_stage=last),
        overhead=beside,
        kv_available=left if question.kv_bytes is None else question.kv_bytes,
    )


def _outcome(question: Question, stage: Stage, requested: int, *, taken: int, margin: int) -> Outcome:
    sequences = _too_many_sequences(question, stage, margin)
    if sequences:
        return sequences
    wanted = question.context or min(question.native or LEAST, LEAST)
    return judged(
        question,
        requested=requested,
        taken=taken,
        kv_available=stage.kv_available,
        kv_needed=stage.cache.need(wanted),
        after=stage.overhead.after_cache,
        margin=margin,
    )


def _too_many_sequences(question: Question, stage: Stage, margin: int) -> Outcome | None:
    """Each running sequence of a recurrent model needs a block, or its graphs cannot be captured."""
    asked = question.max_seqs
    captured = question.backend != "cpu" and not question.eager and stage.cache.version >= STATES_CHECKED_SINCE
    if not asked or not question.geometry.linear_layers or not captured or stage.kv_available <= 0:
        return None
    margin = 0 if question.kv_bytes is not None else margin
    few, many = (stage.cache.blocks(stage.kv_available + change) for change in (-margin, margin))
    if asked <= few:
        return None
    return Outcome(
        verdict=Verdict.DOES_NOT_FIT if asked > many else Verdict.TOO_CLOSE,
        why=f"{asked:,} sequences at once need a block each for their states, there are about {stage.blocks:,}",
    )


def _states(question: Question) -> int:
    shape = question.geometry
    if not shape.state:
        return 0
    ranks = max(1, question.spread.tensor)
    return shape.linear_layers * state_bytes(shape.state, ranks=ranks, spec_tokens=question.spec_tokens)


def stages_apart(question: Question) -> int:
    """How much more room the first pipeline stage has than the one that binds; the log shows the first one's."""
    version = release("vllm", question.version)
    first, last = (overhead(question, version, last_stage=last).before_cache for last in (False, True))
    return last - first if question.spread.pipeline > 1 else 0
