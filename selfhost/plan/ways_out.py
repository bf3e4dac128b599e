"""What to change when a model does not fit, cheapest first; each way is computed whole, and offered only if it fits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from selfhost.models import catalog
from selfhost.models.listed import listed
from selfhost.plan.command_line import command_line
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Plan, Verdict
from selfhost.shapes.service import Service
from selfhost.shapes.units import format_bytes, format_tokens

LEAST_USEFUL = 1024
"""Tokens of context below which no way out is offered."""
_SMALLER_PRECISIONS = ("fp8", "int4")
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


def ways_out(plan: Plan, service: Service, *, again: Again, verb: str, more_cards: bool) -> Iterator[Way]:
    """`more_cards`: a second card is only a wish about an imagined machine; one that is there was tried already."""
    yield from _fewer(plan, service, again=again, verb=verb)
    yield from _shorter(plan, service, again=again, verb=verb)
    yield from _kv(plan, service, again=again, verb=verb)
    yield from _precision(plan, service, again=again, verb=verb)
    if more_cards:
        yield from _cards(plan, service, again=again, verb=verb)
    yield from _smaller(plan, service, again=again, verb=verb)


def _tried(
    service: Service, change: dict[str, str], *, again: Again, kind: str, words: str, verb: str
) -> Iterator[Way]:
    numbers = ("context", "concurrency")
    values = {name: int(value) if name in numbers else value for name, value in change.items()}
    wished = replace(service, **values)  # type: ignore[arg-type]
    found = again(Wish(service=wished))
    if found is not None and found.verdict is Verdict.FITS:
        yield Way(kind=kind, words=words, command=command_line(verb, service, change=dict(change)), plan=found)


def _fewer(plan: Plan, service: Service, *, again: Again, verb: str) -> Iterator[Way]:
    if plan.concurrency <= _FEWEST:
        return
    yield from _tried(
        service, {"concurrency": str(_FEWEST)}, again=again, verb=verb, kind="fewer requests",
        words=f"{_FEWEST} requests at once instead of {plan.concurrency}",
    )  # fmt: skip


def _shorter(plan: Plan, service: Service, *, again: Again, verb: str) -> Iterator[Way]:
    """The longest power of two below the context, or what the arithmetic says is the longest."""
    tokens = 2 ** ((plan.context - 1).bit_length() - 1)
    while tokens >= LEAST_USEFUL:
        words = f"{format_tokens(tokens)} tokens of context instead of {format_tokens(plan.context)}"
        found = tuple(
            _tried(service, {"context": str(tokens)}, again=again, verb=verb, kind="less context", words=words)
        )
        if found:
            yield found[0]
            return
        tokens //= 2


def _kv(plan: Plan, service: Service, *, again: Again, verb: str) -> Iterator[Way]:
    if service.kv_cache is not None and plan.kv_precision.startswith("fp8"):
        return
    yield from _tried(
        service, {"kv_cache": "fp8"}, again=again, verb=verb, kind="smaller KV cache",
        words="an FP8 KV cache: half the bytes per token; without scales answers may change",
    )  # fmt: skip


def _precision(plan: Plan, service: Service, *, again: Again, verb: str) -> Iterator[Way]:
    for form in _SMALLER_PRECISIONS:
        if plan.weights_precision.startswith(form):
            continue
        found = tuple(
            _tried(
                service, {"precision": form}, again=again, verb=verb, kind="smaller weights",
                words=f"{form.upper()} weights; the model answers differently",
            )
        )  # fmt: skip
        if found:
            yield found[0]
            return


def _cards(plan: Plan, service: Service, *, again: Again, verb: str) -> Iterator[Way]:
    have = max(1, plan.device_count)
    for count in (have * 2, have * 4):
        found = again(Wish(service=service, count=count))
        if found is not None and found.verdict is Verdict.FITS:
            command = command_line(verb, service, "--count", str(count))
            yield Way(kind="more cards", words=f"{count} such cards", command=command, plan=found)
            return


def _smaller(plan: Plan, service: Service, *, again: Again, verb: str) -> Iterator[Way]:
    """The largest model of the catalog with fewer parameters that fits; ten are tried at most."""
    size = plan.model.params_b.value if isinstance(plan.model.params_b, Known) else float("inf")
    rows = sorted((row for row in catalog.rows() if row.alias and row.params_b < size), key=lambda row: -row.params_b)
    bare = replace(service, precision=None, kv_cache=None, reasoning=None, engine_args=())
    for row in rows[:10]:
        found = again(Wish(service=replace(bare, model=row.alias), model=listed(row)))
        if found is not None and found.verdict is Verdict.FITS:
            weigh = row.weights_bytes
            size_words = f", {format_bytes(weigh.value)} of weights" if isinstance(weigh, Known) else ""
            command = command_line(verb, service, model=row.alias)
            yield Way(kind="smaller model", words=f"{row.alias}{size_words}", command=command, plan=found)
            return
