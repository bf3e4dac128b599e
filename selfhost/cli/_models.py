"""The catalog beside what fits, as a table and as JSON."""

from collections.abc import Sequence

from selfhost.core.columns import columns
from selfhost.deploy.models_fit import Judged
from selfhost.shapes.units import format_bytes, format_tokens

_HEAD = ("name", "fits", "weights", "in", "context", "at once", "on")


def lines(found: Sequence[Judged]) -> list[str]:
    """Context is the planned one, `at once` how many requests of it the KV cache holds."""
    return columns([_HEAD, *(_row(one) for one in found)], right=frozenset({2, 4, 5}))


def _row(one: Judged) -> tuple[str, ...]:
    if one.decided is None:
        return (one.row.alias, "refused", "", "", "", "", one.refused)
    plan, answer = one.decided.plan, one.decided.answer
    where = plan.device_name
    weights = plan.decision("precision")
    fits = plan.verdict.value
    if answer.kv_tokens <= 0:
        return (one.row.alias, fits, format_bytes(answer.weights), weights.value if weights else "", "", "", where)
    return (
        one.row.alias, fits, format_bytes(answer.weights), weights.value if weights else "",
        format_tokens(plan.context), f"{answer.concurrency:.1f}", where,
    )  # fmt: skip


def as_json(found: Sequence[Judged]) -> dict[str, object]:
    """selfhost.models/1 with a verdict for each; sizes in bytes of one rank."""
    return {"schema": "selfhost.models/1", "ok": True, "models": [_plain(one) for one in found]}


def _plain(one: Judged) -> dict[str, object]:
    row: dict[str, object] = {"alias": one.row.alias, "id": one.row.id}
    if one.decided is None:
        return {**row, "verdict": "refused", "why": one.refused}
    plan, answer = one.decided.plan, one.decided.answer
    return {
        **row,
        "verdict": plan.verdict.value,
        "why": answer.why,
        "weights": answer.weights,
        "precision": plan.weights_precision,
        "context": plan.context,
        "longest_context": answer.longest,
        "kv_tokens": answer.kv_tokens,
        "concurrency_at_context": answer.concurrency,
        "cards": one.decided.question.spread.ranks,
    }
