"""The verdict: fits, does not fit, or too close to call."""

from dataclasses import dataclass

from selfhost.plan.memory.figures import figure
from selfhost.plan.memory.question import Question, Room
from selfhost.plan.memory.weights import Sized
from selfhost.shapes.plan import Verdict
from selfhost.shapes.units import GIB, format_bytes

MANY_RUNS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    verdict: Verdict
    why: str


def margin_of(question: Question, weights: Sized, runs: int) -> int:
    """How far off the KV cache may be; less where many runs were measured and the weights are certain."""
    total = question.room.total
    if question.backend == "cpu":
        return int(figure("cpu", "margin_share") * total)
    share = figure("margin", "unified_share" if question.room.unified else "share")
    usual = int(figure("margin", "fixed_gib") * GIB + share * total) + weights.margin
    well_known = runs >= MANY_RUNS and not weights.margin and not question.room.unified
    return int(usual * figure("margin", "well_known")) if well_known else usual


def host_reserve(question: Question) -> int:
    """What the machine's system and programs keep of memory that they share with the accelerator."""
    return reserve_of(question.room)


def reserve_of(room: Room) -> int:
    """Likewise, of the memory itself; 0 where nobody shares it."""
    if not room.unified:
        return 0
    return int(max(figure("reserve", "gib") * GIB, figure("reserve", "share") * room.total))


def judged(
    question: Question, *, requested: int, taken: int, kv_available: int, kv_needed: int, after: int, margin: int
) -> Outcome:
    """`taken`: before the KV cache; `after`: behind its back."""
    refused = _refused(question, requested, margin)
    if refused:
        return refused
    if question.kv_bytes is not None:
        return _of_explicit_cache(question, taken + after, kv_needed, margin)
    if taken >= requested + margin:
        return Outcome(
            verdict=Verdict.DOES_NOT_FIT,
            why=f"{format_bytes(taken)} are taken before there is any KV cache, of {format_bytes(requested)}",
        )
    beyond = question.room.total - requested
    if after > beyond:
        return Outcome(
            verdict=Verdict.TOO_CLOSE,
            why=f"graphs and warm-up take {format_bytes(after)} beyond the plan, {format_bytes(beyond)} are there",
        )
    return _compared(kv_available, kv_needed, margin)


def _compared(available: int, needed: int, margin: int) -> Outcome:
    said = f"{format_bytes(max(0, available))} are left for KV cache, one request needs {format_bytes(needed)}"
    if available >= needed + margin:
        return Outcome(verdict=Verdict.FITS, why=said)
    if available <= needed - margin:
        return Outcome(verdict=Verdict.DOES_NOT_FIT, why=said)
    return Outcome(verdict=Verdict.TOO_CLOSE, why=f"{said}: nearer than {format_bytes(margin)}, the estimate's error")


def _of_explicit_cache(question: Question, taken: int, needed: int, margin: int) -> Outcome:
    """The size of the cache is given: it must hold one request, and stay beside the rest."""
    given = question.kv_bytes or 0
    if given < needed:
        return Outcome(
            verdict=Verdict.DOES_NOT_FIT,
            why=f"the KV cache was given {format_bytes(given)}, one request needs {format_bytes(needed)}",
        )
    room = question.room.total - host_reserve(question)
    said = f"{format_bytes(taken + given)} are needed, KV cache included, of {format_bytes(room)}"
    if taken + given <= room - margin:
        return Outcome(verdict=Verdict.FITS, why=said)
    if taken + given >= room + margin:
        return Outcome(verdict=Verdict.DOES_NOT_FIT, why=said)
    return Outcome(verdict=Verdict.TOO_CLOSE, why=said)


def _refused(question: Question, requested: int, margin: int) -> Outcome | None:
    """No start when less is free than vLLM plans with, whoever holds the rest."""
    free = question.room.free
    if question.backend == "cpu" or free is None or question.kv_bytes is not None or free >= requested:
        return None
    said = f"{format_bytes(free)} are free and {format_bytes(requested)} are asked for"
    if requested - free < margin and question.room.unified:
        return Outcome(verdict=Verdict.TOO_CLOSE, why=said)
    return Outcome(verdict=Verdict.DOES_NOT_FIT, why=f"other programs use this memory: {said}")
