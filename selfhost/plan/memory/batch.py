"""vLLM's defaults of how much is computed at once, by card and way of starting (engine/arg_utils.py of 0.33.0)."""

from selfhost.plan.memory.question import Question
from selfhost.plan.memory.releases import Release
from selfhost.shapes.units import GIB

LARGEST, LARGE = 160 * GIB, 70 * GIB
LARGEST_SINCE: Release = (0, 20)
"""Before, cards of 160 GiB and more had the defaults of the H100."""
ASYNC_SINCE: Release = (0, 20)
ASYNC_STAGES_SINCE: Release = (0, 33)
"""With pipeline stages only the second model runner overlaps batches (VllmConfig.max_concurrent_batches)."""
SMALL_GB10_SINCE: Release = (0, 30)
"""Before, a GB10 counted as a large card: it shows up in the sizes of runs of 0.29."""


def batch_tokens(question: Question, version: Release) -> int:
    """max_num_batched_tokens."""
    if question.batch_tokens:
        return question.batch_tokens
    tokens = _defaults(question, version)[0]
    if question.context:
        tokens = min(tokens, max_seqs(question, version) * question.context)
    return tokens


def max_seqs(question: Question, version: Release) -> int:
    if question.max_seqs:
        return question.max_seqs
    tokens, seqs = _defaults(question, version)
    return min(seqs, question.batch_tokens or tokens)


def _defaults(question: Question, version: Release) -> tuple[int, int]:
    ranks = question.spread.tensor * question.spread.pipeline
    offline = question.llm_class
    if question.backend == "cpu":
        return (4096 if offline else 2048) * ranks, (256 if offline else 128) * ranks
    total = question.room.total
    if total >= LARGEST and version >= LARGEST_SINCE:
        return 16384, 1024
    small = "a100" in question.room.name.lower() or (question.room.arch == "sm_121" and version >= SMALL_GB10_SINCE)
    if total >= LARGE and not small:
        return (16384 if offline else 8192), 1024
    return (8192 if offline else 2048), 256


def in_flight(question: Question, version: Release) -> int:
    """Tokens of batches that are computed and not yet settled: windows keep room for them.

    Two batches overlap with async scheduling, the default since 0.20 and seen in runs of 0.29 (a T4 and an MI300X).
    """
    stages = question.spread.pipeline
    overlap = version >= (ASYNC_SINCE if stages == 1 else ASYNC_STAGES_SINCE)
    return (stages + overlap) * batch_tokens(question, version)
