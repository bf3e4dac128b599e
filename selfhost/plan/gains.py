"""What FP8 brings on this card, apart: requests at once, decoding, reading prompts. Also where it is not taken."""

from dataclasses import replace

from selfhost.core.errors import InputError
from selfhost.models.checkpoints import published
from selfhost.plan.precision import Precision, precisions
from selfhost.plan.search import Case, Tried, tried
from selfhost.plan.settle import Settled
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, Evidence, Verdict
from selfhost.shapes.precision import PLAIN
from selfhost.shapes.units import format_tokens

FIELD = "FP8"


def gain_decision(settled: Settled, *, model: Model) -> Decision | None:
    """Against the published precision, at the same context. None where neither FP8 nor 16 bits is the question."""
    case = settled.case
    if case is None or settled.precision.own not in PLAIN:
        return None
    rounded = settled.precision if settled.precision.form is not None else _fp8(settled, case)
    if isinstance(rounded, str):
        return _row("not possible", rounded, settled)
    plain = _plain(settled, case)
    if plain is None:
        return None
    with_fp8, without = _as(settled, case, rounded), _as(settled, case, plain)
    taken = settled.precision.form is not None
    value = f"{rounded.expectation}{'' if taken else ', not taken'}"
    return _row(value, _words(with_fp8, without, rounded, model=model), settled)


def _row(value: str, reason: str, settled: Settled) -> Decision:
    return Decision(
        field=FIELD,
        value=value,
        reason=reason,
        source=settled.precision.source or "plan/fp8.toml, plan/memory",
        evidence=Evidence.READ_IN_CODE,
        evidence_note="requests by the memory arithmetic; speeds assumed, never measured by us on a card",
    )


def _fp8(settled: Settled, case: Case) -> Precision | str:
    """The FP8 that this card would be given, or why there is none."""
    try:
        return _chosen(settled, case, "fp8")
    except InputError as error:
        return error.why.rstrip(".") or error.what


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


def _as(settled: Settled, case: Case, precision: Precision) -> Tried:
    return tried(case, devices=settled.devices, precision=precision, spread=settled.spread, context=settled.context)


def _words(with_fp8: Tried, without: Tried, rounded: Precision, *, model: Model) -> str:
    more = with_fp8.answer.concurrency, without.answer.concurrency
    at = f"at {format_tokens(with_fp8.context)} tokens"
    plain = rounded.own.upper()
    if without.answer.verdict is Verdict.DOES_NOT_FIT:
        gained = f"{more[0]:.1f} requests at once {at} where {plain} does not fit"
    else:
        gained = f"{more[0] - more[1]:+.1f} requests at once {at} ({more[0]:.1f} against {more[1]:.1f} in {plain})"
    low, high = rounded.decode
    first, last = rounded.prefill
    speed = f"decoding ×{low:.1f} to ×{high:.1f}" if high > low else f"decoding ×{low:.1f}"
    reading = f"prompts ×{first:.1f} to ×{last:.1f}" if last > first else f"prompts ×{first:.0f}"
    parts = [gained, f"{format_tokens(with_fp8.answer.kv_tokens)} tokens of KV cache", speed, f"{reading}, assumed"]
    if rounded.why:
        parts.append(rounded.why)
    parts.append(f"what it costs in answers: selfhost quality {model.alias or model.id} --precision fp8")
    found = published(model.id, "fp8")
    if found is not None:
        parts.append(f"the publisher's own: {found.id}")
    return "; ".join(parts)
