"""What to change when a model does not fit, cheapest first; each way is computed whole, and offered only if it fits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from selfhost.models import catalog
from selfhost.models.checkpoints import published
from selfhost.models.listed import as_checkpoint, listed
from selfhost.plan.command_line import command_line
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Plan, Verdict
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes, format_tokens

LEAST_USEFUL = 1024
"""Tokens of context below which no way out is offered."""
_OF_THE_MODEL = ("context", "kv_cache", "kv_skip_layers", "reasoning")
"""What was asked of a model is asked of another repository of it too."""
_FEWEST = 4
"""Requests at once below which fewer make no difference worth a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One change that makes it fit, with what it leaves."""

    kind: str
    """fewer requests, less context, smaller KV cache, smaller weights, more cards, smaller model."""
    words: str
    command: str
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A changed request: what `again` is asked."""

    service: Service
    model: Model | None = None
    count: int | None = None
    """Cards; None leaves the host as it is."""


Again = Callable[[Wish], Plan | None]
"""Decide once more; None when the wish is refused (a precision this card cannot take)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """How a way is written down: the command, and words that say which machine is meant."""

    verb: str
    place: tuple[str, ...] = ()
    """`--gpu`, `RTX 4090`, or `--host`, `machine.json`; empty for this machine."""
    more_cards: bool = False
    """Another card is only a wish about an imagined machine; one that is there was tried already."""


def ways_out(plan: Plan, service: Service, *, again: Again, door: Door) -> Iterator[Way]:
    """Each is one change to what was asked for."""
    yield from _fewer(plan, service, again=again, door=door)
    yield from _shorter(plan, service, again=again, door=door)
    yield from _kv(plan, service, again=again, door=door)
    yield from _precision(plan, service, again=again, door=door)
    yield from _published(plan, service, again=again, door=door)
    if door.more_cards:
        yield from _cards(plan, service, again=again, door=door)
    yield from _smaller(plan, service, again=again, door=door)


def _tried(
    service: Service, change: dict[str, str], *, again: Again, kind: str, words: str, door: Door
) -> Iterator[Way]:
    numbers = ("context", "concurrency")
    values = {name: int(value) if name in numbers else value for name, value in change.items()}
    found = again(Wish(service=replace(service, **values)))  # type: ignore[arg-type]
    if found is not None and found.verdict is Verdict.FITS:
        yield Way(
            kind=kind, words=words, command=command_line(door.verb, service, *door.place, change=dict(change)),
            plan=found,
        )  # fmt: skip


def _fewer(plan: Plan, service: Service, *, again: Again, door: Door) -> Iterator[Way]:
    if plan.concurrency <= _FEWEST:
        return
    yield from _tried(
        service, {"concurrency": str(_FEWEST)}, again=again, door=door, kind="fewer requests",
        words=f"{_FEWEST} requests at once instead of {plan.concurrency}",
    )  # fmt: skip


def _shorter(plan: Plan, service: Service, *, again: Again, door: Door) -> Iterator[Way]:
    """The longest power of two below the context that fits."""
    tokens: int = 2 ** ((plan.context - 1).bit_length() - 1)
    while tokens >= LEAST_USEFUL:
        words = f"{format_tokens(tokens)} tokens of context instead of {format_tokens(plan.context)}"
        found = tuple(
            _tried(service, {"context": str(tokens)}, again=again, door=door, kind="less context", words=words)
        )
        if found:
            yield found[0]
            return
        tokens //= 2


def _kv(plan: Plan, service: Service, *, again: Again, door: Door) -> Iterator[Way]:
    if plan.kv_precision.startswith("fp8"):
        return
    yield from _tried(
        service, {"kv_cache": "fp8"}, again=again, door=door, kind="smaller KV cache",
        words="an FP8 KV cache, half the bytes per token; without scales answers may change",
    )  # fmt: skip


def _precision(plan: Plan, service: Service, *, again: Again, door: Door) -> Iterator[Way]:
    """FP8 made while loading."""
    if plan.weights_precision.startswith("fp8"):
        return
    yield from _tried(
        service, {"precision": "fp8"}, again=again, door=door, kind="smaller weights",
        words="FP8 weights, rounded while loading; the model answers a little differently",
    )  # fmt: skip


def _published(plan: Plan, service: Service, *, again: Again, door: Door) -> Iterator[Way]:
    """A repository that publishes this model in fewer bits."""
    bare = replace(service, precision=None, engine_args=())
    for precision in ("fp8", "int4"):
        found = published(plan.model.id, precision)
        if found is None:
            continue
        made = again(Wish(service=replace(bare, model=found.id), model=as_checkpoint(plan.model, found)))
        if made is not None and made.verdict is Verdict.FITS:
            form = found.scheme.removesuffix("_block").upper()
            words = f"{found.id}, published in {form}; the model answers a little differently"
            command = command_line(door.verb, service, *door.place, model=found.id, keep=_OF_THE_MODEL)
            yield Way(kind="smaller weights", words=words, command=command, plan=made)
            return


def _cards(plan: Plan, service: Service, *, again: Again, door: Door) -> Iterator[Way]:
    have = max(1, plan.device_count)
    for count in (have * 2, have * 4, have * 8):
        found = again(Wish(service=service, count=count))
        if found is not None and found.verdict is Verdict.FITS:
            command = command_line(door.verb, service, *door.place, "--count", str(count))
            yield Way(kind="more cards", words=f"{count} such cards", command=command, plan=found)
            return


def _smaller(plan: Plan, service: Service, *, again: Again, door: Door) -> Iterator[Way]:
    """The largest model of the catalog with fewer parameters that fits; those far too large are passed over."""
    size = plan.model.params_b.value if isinstance(plan.model.params_b, Known) else float("inf")
    room = plan.memory.available * plan.device_count
    bare = replace(service, precision=None, kv_cache=None, reasoning=None, context=None, engine_args=())
    rows = sorted((row for row in catalog.rows() if row.alias and row.params_b < size), key=lambda row: -row.params_b)
    for row in (row for row in rows if row.params_b * 0.5e9 < room):
        found = again(Wish(service=replace(bare, model=row.alias), model=listed(row)))
        if found is not None and found.verdict is Verdict.FITS:
            weigh = f"a smaller model: {row.alias}, {format_bytes(found.memory.weights)} of weights"
            command = command_line(door.verb, service, *door.place, model=row.alias)
            yield Way(kind="smaller model", words=weigh, command=command, plan=found)
            return
