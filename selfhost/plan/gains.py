"""What FP8 brings on this device, apart: requests at once, decoding, reading prompts. Also where it is not taken."""

from dataclasses import replace

from selfhost.core.errors import InputError
from selfhost.models.checkpoints import published
from selfhost.plan.precision import Precision, precisions
from selfhost.plan.search import Case, Tried, tried
from selfhost.plan.settle import Settled, settle_on_cpu, shared
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, Evidence, Verdict
from selfhost.shapes.precision import PLAIN
from selfhost.shapes.units import format_bytes, format_tokens

FIELD = "FP8"
_SOURCE = "plan/fp8.toml, plan/memory"


def gain_decision(settled: Settled, *, model: Model) -> Decision | None:
    """Against the published precision, at the same context. None where neither FP8 nor 16 bits is the question."""
    case = settled.case
    taken = settled.precision.form is not None
    if case is None or settled.precision.own not in PLAIN or (model.demonstration and not taken):
        return None
    rounded = settled.precision if taken else _fp8(settled, case)
    if isinstance(rounded, InputError):
        return Decision(
            field=FIELD,
            value="not possible",
            reason=rounded.why.rstrip(".") or rounded.what,
            source=rounded.evidence.removeprefix("source: ") or _SOURCE,
            evidence=Evidence.READ_IN_CODE,
            evidence_note="never run by us",
            alternatives=_repositories(model, "int4"),
        )
    plain = _plain(settled, case)
    if plain is None:
        return None
    return Decision(
        field=FIELD,
        value=f"{rounded.expectation}{'' if taken else ', not taken'}",
        reason="; ".join(_words(settled, case, rounded, plain, taken=taken)),
        source=rounded.source or _SOURCE,
        evidence=Evidence.READ_IN_CODE,
        evidence_note="requests by the memory arithmetic; speeds assumed, never measured by us",
        alternatives=_repositories(model, "fp8"),
    )


def _repositories(model: Model, precision: str) -> tuple[str, ...]:
    """The publisher's own, where one is known."""
    found = published(model.id, precision)
    return () if found is None else (f"{found.id} ({found.scheme})",)


def _fp8(settled: Settled, case: Case) -> Precision | InputError:
    """The FP8 that this device would be given, or why there is none."""
    try:
        return _chosen(settled, case, "fp8")
    except InputError as error:
        return error


def _plain(settled: Settled, case: Case) -> Precision | None:
    try:
        return _chosen(settled, case, settled.precision.own)
    except InputError:
        return None


def _chosen(settled: Settled, case: Case, precision: str) -> Precision:
    return precisions(
        model=case.model, service=replace(case.service, precision=precision), devices=settled.devices,
        engine=case.build.engine, version=case.build.version, passed=case.passed,
    )[0]  # fmt: skip


def _as(settled: Settled, case: Case, precision: Precision) -> Tried | Settled:
    """The same plan in another precision."""
    if not settled.devices.cards:
        return settle_on_cpu(
            host=case.host, model=case.model, service=replace(case.service, context=settled.context),
            build=case.build, devices=settled.devices, precisions=(precision,), passed=case.passed,
            concurrency=case.concurrency,
        )  # fmt: skip
    found = tried(case, devices=settled.devices, precision=precision, spread=settled.spread, context=settled.context)
    return shared(case, found)


def _words(settled: Settled, case: Case, rounded: Precision, plain: Precision, *, taken: bool) -> list[str]:
    with_fp8, without = _as(settled, case, rounded), _as(settled, case, plain)
    parts = [_requests(with_fp8, without, plain=rounded.own.upper())]
    if settled.devices.cards:
        parts.append(f"{format_tokens(with_fp8.answer.kv_tokens)} tokens of KV cache")
        parts.append(f"{_factor('decoding', rounded.decode)}, {_factor('prompts', rounded.prefill)}, assumed")
    else:
        less = max(0, without.answer.weights - with_fp8.answer.weights)
        parts.append(f"{format_bytes(less)} of memory less, no faster")
    if rounded.why and not taken:  # what is taken has its reason in the line of the precision
        parts.append(rounded.why)
    parts.append("what it costs in answers this version does not measure")
    return parts


def _requests(with_fp8: Tried | Settled, without: Tried | Settled, *, plain: str) -> str:
    many, few = with_fp8.answer.concurrency, without.answer.concurrency
    at = f"at {format_tokens(with_fp8.context)} tokens"
    if without.answer.verdict is Verdict.DOES_NOT_FIT:
        return f"{many:.1f} requests at once {at} where {plain} does not fit"
    return f"{many - few:+.1f} requests at once {at} ({many:.1f} against {few:.1f} in {plain})"


def _factor(what: str, ends: tuple[float, float]) -> str:
    """A range, or its one end: weights that are widened first are multiplied no faster, and may be slower."""
    low, high = ends
    if high > low:
        return f"{what} ×{low:.1f} to ×{high:.1f}"
    return f"{what} ×{high:.0f} at best" if high <= 1 else f"{what} ×{high:.1f}"
