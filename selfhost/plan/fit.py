"""What to do after a plan; when the model does not fit, the arithmetic and ways out that were computed."""

from collections.abc import Iterator, Sequence

from selfhost.core.errors import DoesNotFit
from selfhost.plan.command_line import command_line
from selfhost.plan.describe import precision_words
from selfhost.plan.engine import CONTAINER
from selfhost.plan.ways_out import Way
from selfhost.shapes.plan import Plan, Verdict
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes, format_tokens


def refusal(plan: Plan, service: Service, ways: Sequence[Way]) -> DoesNotFit:
    """The error of `up` for a plan whose verdict is that it does not fit; ways out keep the user's other words."""
    memory = plan.memory
    why = plan.decision("memory")
    return DoesNotFit(
        f"{plan.model.served_name} ({precision_words(plan)}) needs {format_bytes(memory.need)}; "
        f"{memory.where} offers {format_bytes(memory.available)}",
        why=f"{format_bytes(memory.weights)} weights + {format_bytes(memory.overhead)} engine + "
        f"{format_bytes(memory.kv_cache)} KV cache for {format_tokens(plan.context)} tokens of context, an estimate"
        + (f": {why.reason}" if why is not None else ""),
        fix=tuple(_words(ways)) or (f"see the arithmetic:\n{command_line('plan', service, '--explain')}",),
        id="PL001",
    )


def next_steps(plan: Plan, service: Service, ways: Sequence[Way], *, place: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What to do next, in the order to try; commands to paste on lines of their own. `place` is another machine."""
    explain = f"see the arithmetic:\n{_arithmetic(service, place)}"
    if plan.verdict is Verdict.DOES_NOT_FIT:
        return (*_words(ways), explain)
    if plan.runtime == CONTAINER:
        return (f"this version starts processes; {explain}",)
    if place:
        return (f"on that machine:\n{command_line('up', service)}",)
    return (command_line("up", service),)


def _arithmetic(service: Service, place: tuple[str, ...]) -> str:
    """`fit` tells most, and knows no option that only starts or changes what is served."""
    if service.trust_remote_code or service.allow_pickle or service.kv_skip_layers:
        return command_line("plan", service, *place, "--explain")
    return command_line("fit", service, *place, "--explain", change=dict.fromkeys(("name", "port", "reasoning")))


def _words(ways: Sequence[Way]) -> Iterator[str]:
    """The first way as it is, the others as alternatives."""
    for number, way in enumerate(ways):
        yield f"{'or ' if number else ''}{way.words}:\n{way.command}"
