"""What to do after a plan; when the model does not fit, the arithmetic and ways out that were computed."""

from collections.abc import Iterator

from selfhost.core.errors import DoesNotFit
from selfhost.models import catalog
from selfhost.plan.command_line import command_line
from selfhost.plan.context import LEAST_USEFUL
from selfhost.plan.describe import precision_words
from selfhost.plan.memory.vllm import kv_bytes_per_token
from selfhost.shapes.host import Known
from selfhost.shapes.plan import MemoryPlan, Plan, Verdict
from selfhost.shapes.precision import PLAIN
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes, format_tokens

_MARGIN = 0.9
"""A way out is offered when it stays below this share of what is there."""
_BLOCKS = 256


def refusal(plan: Plan, service: Service) -> DoesNotFit:
    """The error of `up` for a plan whose verdict is that it does not fit; ways out keep the user's other words."""
    memory = plan.memory
    why = plan.decision("memory")
    return DoesNotFit(
        f"{plan.model.served_name} ({precision_words(plan)}) needs {format_bytes(memory.need)}; "
        f"{memory.where} offers {format_bytes(memory.available)}",
        why=f"{format_bytes(memory.weights)} weights + {format_bytes(memory.overhead)} engine + "
        f"{format_bytes(memory.kv_cache)} KV cache for {format_tokens(plan.context)} tokens of context, an estimate"
        + (f": {why.reason}" if why is not None else ""),
        fix=tuple(_ways_out(plan, service)) or (f"see the arithmetic:\n{command_line('plan', service, '--explain')}",),
        id="PL001",
    )


def next_steps(plan: Plan, service: Service) -> tuple[str, ...]:
    """What to do next, in the order to try; commands to paste stand on lines of their own."""
    if plan.verdict is not Verdict.DOES_NOT_FIT:
        return (command_line("up", service),)
    explain = f"see the arithmetic:\n{command_line('plan', service, '--explain')}"
    return (*_ways_out(plan, service), explain)


def _ways_out(plan: Plan, service: Service) -> Iterator[str]:
    memory = plan.memory
    shorter = _shorter_context(plan.context, memory)
    if shorter:
        line = command_line("up", service, change={"context": str(shorter)})
        yield f"less context: {format_tokens(shorter)} tokens fit:\n{line}"
    smaller = _smaller_model(plan)
    if smaller is not None:
        row, tokens = smaller
        size = row.weights_bytes
        weigh = f"{format_bytes(size.value)} of weights" if isinstance(size, Known) else "smaller weights"
        lead = "or a" if shorter else "a"
        yield (
            f"{lead} smaller model: {row.alias} has {weigh} and room for {format_tokens(tokens)} tokens:\n"
            f"{command_line('up', service, model=row.alias)}"
        )


def _shorter_context(context: int, memory: MemoryPlan) -> int | None:
    """The longest power of two below `context` that fits; None when even a short one does not."""
    room = int(memory.available * _MARGIN) - memory.weights - memory.overhead
    tokens: int = 2 ** (context - 1).bit_length() // 2
    while tokens >= LEAST_USEFUL:
        if tokens < context and (tokens + _BLOCKS) * memory.kv_bytes_per_token <= room:
            return tokens
        tokens //= 2
    return None


def _smaller_model(plan: Plan) -> tuple[catalog.CatalogRow, int] | None:
    """The largest model of the catalog that fits with a useful context, and the tokens it has room for."""
    room = int(plan.memory.available * _MARGIN) - plan.memory.overhead
    found = []
    for row in catalog.rows():
        size = row.weights_bytes
        if not row.alias or row.id == plan.model.id or not isinstance(size, Known) or size.value >= plan.memory.weights:
            continue
        per_token = kv_bytes_per_token(row.geometry, value_bytes=PLAIN["bf16"])
        tokens = min(row.context, (room - size.value) // per_token)
        if tokens >= 2 * LEAST_USEFUL:
            found.append((row, tokens))
    return max(found, key=lambda pair: pair[0].params_b, default=None)
