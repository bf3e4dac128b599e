"""Two services of one project on one card."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Accelerator, Host, Known, Vendor
from selfhost.shapes.workload import DeviceRequest, Form, Workload
from selfhost.visibility import paste
from selfhost.visibility.allocation import Grant, card_of, granted, index_of, is_mig, tool_index
from selfhost.visibility.engine_size import memory_share, ranks
from selfhost.visibility.nodes import cards
from selfhost.visibility.rule import Found, place, project_rule

COUNT = "https://github.com/moby/moby/blob/master/daemon/devices_nvidia_linux.go"
SHARE = "https://docs.vllm.ai/en/latest/configuration/engine_args.html"
SAMPLE = 0.02
"""Of a card's memory: rounding of two shares that are meant to fill it."""


@project_rule("DV015", Severity.WARNING, source=COUNT)
def counts_overlap(workloads: Sequence[Workload], host: Host | None) -> Iterator[Found]:
    """Silent where there are fewer cards than asked for in sum: then the card is shared on purpose, or DV023 speaks."""
    here = len(cards(host, Vendor.NVIDIA))
    asked = [
        (workload, request)
        for workload in workloads
        if workload.form is Form.COMPOSE
        for request in workload.requests
        if (request.count or 0) > 0 and not request.ids
    ]
    if len(asked) < 2 or sum(request.count or 0 for _, request in asked) > here:
        return
    first = asked[0][0]
    for workload, request in asked[1:]:
        yield Found(
            title=f"{workload.label} and {first.label} get the same card: a count takes the first ones",
            place=place(workload, request.key or "requests.0"),
            evidence=f"{_counted(asked)}; this machine has {here} cards",
            why="docker counts from card 0 for each container and looks at nothing that runs. Both get card 0, "
            "and another stays idle.",
            fix=(f"give each its own cards:\n{paste.cards(workload, *_free(asked, request, host))}",),
        )


def _counted(asked: Sequence[tuple[Workload, DeviceRequest]]) -> str:
    return " · ".join(f"{workload.label} count {request.count}" for workload, request in asked)


def _free(asked: Sequence[tuple[Workload, DeviceRequest]], request: DeviceRequest, host: Host | None) -> list[str]:
    """Cards behind those that the services before this one take."""
    before = 0
    for _, other in asked:
        if other is request:
            break
        before += other.count or 0
    mine = cards(host, Vendor.NVIDIA)[before : before + (request.count or 1)]
    return [card.uuid or str(card.index) for card in mine]


@project_rule("DV016", Severity.ERROR, source=SHARE)
def memory_promised_twice(workloads: Sequence[Workload], host: Host | None) -> Iterator[Found]:
    taken = [
        (workload, grant, names, share)
        for workload in workloads
        if workload.form is Form.COMPOSE
        and (grant := granted(workload, host, Vendor.NVIDIA)) is not None
        and (share := memory_share(workload)) is not None
        and (names := _cards_taken(workload, grant, host))
    ]
    for (first, _, names, share), (second, grant, others, more) in combinations(taken, 2):
        both = sorted(names & others)
        if both and share + more > 1 + SAMPLE:
            yield Found(
                title=f"{second.label} and {first.label} promise {share + more:.2f} of the memory of one card",
                place=place(second, grant.key),
                evidence=f"both on {both[0]} · {first.name} {share} + {second.name} {more}",
                why="Each engine takes its share of the whole card when it starts, whatever the other holds. The "
                "second finds less free than it wants, and stops.",
                fix=(
                    "give each its own card",
                    "or shares that fit together:\n--gpu-memory-utilization 0.45",
                ),
            )
    for workload, grant, _, share in taken:
        yield from _held_by_others(workload, grant, share, host)


def _cards_taken(workload: Workload, grant: Grant, host: Host | None) -> set[str]:
    """Cards that the engine certainly uses. A count, or all, takes the first ones; ids only when all are used."""
    size = ranks(workload)
    mask = workload.env.get("CUDA_VISIBLE_DEVICES") or "CUDA_VISIBLE_DEVICES" in workload.env_sources
    if size is None or not size.exact or mask:
        return set()
    if grant.ids:
        return {_name(name, host) for name in grant.ids} if size.count >= len(grant.ids) else set()
    alike = len({card.name for card in cards(host, Vendor.NVIDIA)}) <= 1
    explicit = grant.count is not None and grant.by != "device nodes"
    return {str(number) for number in range(size.count)} if alike and explicit else set()


def _name(name: str, host: Host | None) -> str:
    """One name for a card however it is called: its number where the host tells it."""
    if is_mig(name):
        return name
    card = card_of(name, Vendor.NVIDIA, host)
    number = index_of(name)
    return str(tool_index(card)) if card else str(number) if number is not None else name


def _held_by_others(workload: Workload, grant: Grant, share: float, host: Host | None) -> Iterator[Found]:
    """Memory that runs away before the start: a process of today, which may be gone tomorrow."""
    size = ranks(workload)
    here = sorted(cards(host, Vendor.NVIDIA), key=lambda card: card.pci)
    if size is None or len({card.name for card in here}) != 1:
        return
    found = [card_of(name, Vendor.NVIDIA, host) for name in grant.ids] if grant.ids else list(here)
    for card in found[: size.count]:
        if card is None or card.unified or (free := _free_part(card)) is None or free >= share:
            continue
        who = ", ".join(sorted({f"{tenant.name} ({tenant.pid})" for tenant in card.tenants}))
        yield Found(
            title=f"{workload.label} wants {share:.0%} of device {card.index}, of which {free:.0%} is free",
            place=place(workload, grant.key),
            evidence=f"in use by {who}" if who else f"{card.name} {card.index}: {free:.0%} of its memory is free",
            why="The engine measures its share by the whole card, and stops when less is free than it wants. If it is "
            "the service itself, running now, all is well.",
            fix=(
                "choose a card that is free, or end what holds this one",
                f"or take less:\n--gpu-memory-utilization {max(free - 0.03, 0.05):.2f}",
            ),
            severity=Severity.WARNING,
        )


def _free_part(card: Accelerator) -> float | None:
    free, total = card.memory_free, card.memory_total
    return free.value / total.value if isinstance(free, Known) and isinstance(total, Known) and total.value else None
