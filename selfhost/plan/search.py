"""On which of the cards, in which precision, cut how and with how much context: the first that fits.

Order: the best precision with any useful context on as few cards as do, then the next precision; only then contexts
that are shorter than useful. Who asks for a context gets that one or none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from selfhost.plan.context import LEAST_USEFUL, asked_context, candidates
from selfhost.plan.devices import Devices
from selfhost.plan.memory.ask import question_of
from selfhost.plan.memory.predict import predict
from selfhost.plan.memory.question import Answer, Question, Spread
from selfhost.plan.parallel import choose_parallel
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision import Precision
from selfhost.shapes.geometry import Geometry
from selfhost.shapes.host import Host, Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import EngineBuild, Verdict
from selfhost.shapes.service import Service

USEFUL = 8192
"""Tokens of context below which another precision is tried first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is settled before the search."""

    host: Host
    model: Model
    geometry: Geometry
    build: EngineBuild
    service: Service
    passed: PassedOn
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One way to run it, with the arithmetic."""

    devices: Devices
    precision: Precision
    spread: Spread
    context: int
    question: Question
    answer: Answer


def search(case: Case, *, devices: Devices, precisions: tuple[Precision, ...]) -> Tried:
    """The first way that fits; else the first that is too close to call; else the one that lacks least."""
    close: Tried | None = None
    least: Tried | None = None
    for found in _ways(case, devices, precisions):
        if found.answer.verdict is Verdict.FITS:
            return found
        if close is None and found.answer.verdict is Verdict.TOO_CLOSE:
            close = found
        if least is None or _left(found) > _left(least):
            least = found
    nearest = close or least
    if nearest is None:
        raise ValueError("nothing was tried")
    return nearest


def _left(found: Tried) -> int:
    """Bytes that are left when one request has its KV cache; negative where it has not."""
    return found.answer.kv_available - (found.answer.kv_needed or 0)


def tried(case: Case, *, devices: Devices, precision: Precision, spread: Spread, context: int) -> Tried:
    """One way, computed. Memory shared with the host is planned by an absolute size of the KV cache."""
    question = question_of(
        case.host, case.model, case.build, devices.cards, precision,
        geometry=case.geometry, spread=spread, concurrency=case.concurrency, context=context, passed=case.passed,
    )  # fmt: skip
    return Tried(
        devices=devices, precision=precision, spread=spread, context=context, question=question,
        answer=predict(question),
    )  # fmt: skip


def _ways(case: Case, devices: Devices, precisions: tuple[Precision, ...]) -> Iterator[Tried]:
    native = case.model.context_native.value if isinstance(case.model.context_native, Known) else None
    asked = asked_context(case.service, case.passed, native=native)
    contexts = (asked,) if asked is not None else tuple(candidates(native, on_cpu=False))
    useful = [tokens for tokens in contexts if asked is not None or tokens >= min(USEFUL, contexts[0])]
    short = [tokens for tokens in contexts if tokens not in useful and tokens >= LEAST_USEFUL]
    for tier in (useful, short):
        for precision in precisions:
            cuts = tuple(_cuts(case, devices, precision))
            for best in (True, False):  # another way to cut is slower, so a shorter context of the best comes before it
                for tokens in tier:
                    for group, spread, first in cuts:
                        if first is best:
                            yield tried(case, devices=group, precision=precision, spread=spread, context=tokens)


def _cuts(case: Case, devices: Devices, precision: Precision) -> Iterator[tuple[Devices, Spread, bool]]:
    """Groups of cards, smallest first, each with its ways to cut the model, and whether that is the group's best."""
    groups = devices.candidates or (devices.cards,)
    for cards in groups:
        group = devices.taking(cards, host=case.host)
        spreads = choose_parallel(
            model=case.model, devices=group, precision=precision, engine=case.build.engine, service=case.service,
            passed=case.passed,
        )  # fmt: skip
        for number, spread in enumerate(spreads):
            if spread.ranks == len(cards) or cards == groups[-1]:
                yield group, spread, number == 0
