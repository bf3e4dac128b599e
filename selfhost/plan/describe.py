"""A plan in words: columns of field, value and reason, then memory, differences and the verdict."""

import textwrap
from collections.abc import Sequence

from selfhost.plan.engine import PROCESS
from selfhost.plan.origin import SELFHOST
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.plan import Decision, EnforcedBy, MemoryPlan, Plan, Verdict
from selfhost.shapes.units import GIB, format_bytes, format_tokens

_ALWAYS = (
    "engine",
    "runtime",
    "image",
    "precision",
    "FP8",
    "KV cache",
    "devices",
    "devices enter by",
    "runtime class",
    "pod security",
    "context",
    "concurrency",
    "reasoning",
    "sampling",
    "address",
    "chat",
)
"""Fields that every plan shows; the others when the user changed them, or with --explain."""
_NOT_A_LINE = ("memory",)
_VALUE_WIDTH = 30
EXIT = {
    Verdict.FITS: ExitCode.OK,
    Verdict.DOES_NOT_FIT: ExitCode.NO,
    Verdict.TOO_CLOSE: ExitCode.UNDECIDED,
}


def describe(plan: Plan, *, explain: bool = False, chosen: str = "") -> str:
    """The result of `selfhost plan`, for stdout; ends with the verdict. `chosen` is why selfhost took this model."""
    decisions = [d for d in plan.decisions if d.field not in _NOT_A_LINE and (explain or _shown(d, plan))]
    blocks = [_head(plan, chosen=chosen), _table(decisions, explain=explain), _memory(plan, explain=explain)]
    if plan.differs:
        blocks.append(_differs(plan))
    blocks.append(closing(plan))
    return "\n\n".join(blocks)


def closing(plan: Plan) -> str:
    return f"{plan.verdict.value} · nothing was changed"


def _shown(decision: Decision, plan: Plan) -> bool:
    if decision.field == "image" and plan.runtime == PROCESS:  # it is what a container would be made of
        return False
    if decision.field == "runtime" and plan.runtime == PROCESS:
        return decision.by != SELFHOST
    if decision.field == "parallelism" and decision.value != "none":
        return True
    return decision.field in _ALWAYS or decision.by != SELFHOST


def _head(plan: Plan, *, chosen: str) -> str:
    head = f"{plan.model.served_name} on {plan.device_name}"
    if chosen:
        return f"{head}\nno model was named: {chosen}"
    if plan.model.demonstration:
        head += "\na demonstration model: it shows that everything works, and is too small to be useful"
    return head


def _table(decisions: Sequence[Decision], *, explain: bool) -> str:
    fields = max(len(decision.field) for decision in decisions)
    values = max((len(d.value) for d in decisions if len(d.value) <= _VALUE_WIDTH), default=_VALUE_WIDTH)
    lines = []
    for decision in decisions:
        reason = decision.reason if decision.by == SELFHOST else f"you: {decision.by}; {decision.reason}"
        lines.append(f"  {decision.field:<{fields}}  {decision.value:<{values}}  {reason}".rstrip())
        if explain:
            lines += [f"  {'':<{fields}}    {line}" for line in _opened(decision)]
    return "\n".join(lines)


def _opened(decision: Decision) -> list[str]:
    note = f" ({decision.evidence_note})" if decision.evidence_note else ""
    lines = [f"evidence: {decision.evidence.value}{note}"]
    if decision.source:
        lines.append(f"source: {decision.source}")
    if decision.enforced_by is not EnforcedBy.SERVER:
        lines.append(f"enforced by: {decision.enforced_by.value}")
    if decision.alternatives:
        lines.append(f"alternatives: {', '.join(decision.alternatives)}")
    return lines


def _memory(plan: Plan, *, explain: bool) -> str:
    memory = plan.memory
    line = f"  memory  {arithmetic(memory)} of {_gib(memory.available)} GiB ({_percent(memory)}), an estimate"
    decision = plan.decision("memory")
    if decision is not None and (plan.verdict is not Verdict.FITS or explain):
        line += "\n" + textwrap.indent(decision.reason, "          ")
    if explain:
        line += (
            f"\n          {memory.kv_bytes_per_token:,} bytes of KV cache per token; "
            f"{format_tokens(memory.kv_tokens)} tokens in {format_bytes(memory.kv_cache)}; {memory.where}"
        )
    return line


def precision_words(plan: Plan) -> str:
    """What the weights are served in, for people: `BF16`, `FP8 per channel`, `MXFP4`."""
    decision = plan.decision("precision")
    return plan.weights_precision.upper() if decision is None else decision.value


def arithmetic(memory: MemoryPlan) -> str:
    """`4.1 weights + 1.8 engine + 15.7 KV = 21.6`, rounded so that the sum shown is the sum of what is shown."""
    parts = [round(part / GIB, 1) for part in (memory.weights, memory.overhead, memory.kv_cache)]
    weights, engine, cache = parts
    return f"{weights:.1f} weights + {engine:.1f} engine + {cache:.1f} KV = {sum(parts):.1f}"


def _gib(count: int) -> str:
    return f"{count / GIB:.1f}"


def _percent(memory: MemoryPlan) -> str:
    if not memory.available:
        return "share unknown"
    return f"{memory.need / memory.available * 100:.0f} %"


def _differs(plan: Plan) -> str:
    what = ", ".join(f"{decision.field} {decision.value}" for decision in plan.differs)
    return f"  differs from the published model: {what}. Its published scores do not apply"
