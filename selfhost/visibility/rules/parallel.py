"""As many devices as the engine will spread over, and which of them it takes."""

from collections.abc import Iterator

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Accelerator, Host, Known, Vendor
from selfhost.shapes.workload import Form, Workload
from selfhost.visibility import paste
from selfhost.visibility.allocation import Grant, any_grant, card_of, usable_count
from selfhost.visibility.engine_size import VLLM_SHARE, Ranks, memory_share, ranks
from selfhost.visibility.nodes import cards
from selfhost.visibility.rule import Found, place, rule
from selfhost.visibility.rules.masks import entries, ordinals

SOURCE = "https://github.com/vllm-project/vllm/issues/12132"
FIRST = "https://github.com/vllm-project/vllm/issues/20305"
_MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


@rule("DV023", Severity.ERROR, source=SOURCE)
def parts_and_devices_differ(workload: Workload, host: Host | None) -> Iterator[Found]:
    wanted, seen = ranks(workload), _visible(workload, host)
    if wanted is None or seen is None or wanted.count == seen[0]:
        return
    count, by, key = seen
    few = f"{count} can be seen"
    if wanted.count > count:
        yield Found(
            title=f"the engine wants {wanted.count} devices; {few}",
            place=place(workload, wanted.key),
            evidence=f"{wanted.said} · {by}",
            why="Tensor, pipeline and data parallel sizes multiply, and each part takes a device of its own.",
            fix=(f"make the product of the sizes {count}, or let the process see more devices",),
        )
    elif wanted.exact and (workload.form not in (Form.PROCESS, Form.BATCH)):
        idle = count - wanted.count
        yield Found(
            title=f"{workload.label} is given {count} devices and uses {wanted.count}",
            place=place(workload, key),
            evidence=f"{wanted.said or 'no parallel size is given'} · {by}",
            why=f"{'One stays' if idle == 1 else f'{idle} stay'} idle, and nobody else gets "
            f"{'it' if idle == 1 else 'them'} while the container runs.",
            fix=(f"grant {wanted.count}, or spread over all:\n--tensor-parallel-size {count}",),
            severity=Severity.WARNING,
        )


def _visible(workload: Workload, host: Host | None) -> tuple[int, str, str] | None:
    """How many devices the engine can count, and by what: the grant, less what a mask hides."""
    grant = any_grant(workload, host)
    if grant is None or grant.mig:
        return None
    count = grant.count
    if workload.form in (Form.PROCESS, Form.BATCH) and host is not None and grant.by == "this machine":
        count = usable_count(host, grant.vendor)
    if workload.privileged and not grant.everything:
        return None
    if not count:
        return None
    by = f"{grant.by}: {', '.join(grant.ids) if grant.ids else count}"
    return _behind_masks(workload, count, by, grant.key)


def _behind_masks(workload: Workload, count: int, by: str, key: str) -> tuple[int, str, str] | None:
    for variable in _MASKS:
        if variable in workload.env_sources and variable not in workload.env:
            return None
        text = workload.env.get(variable, "")
        if text and ordinals(text) is None and not text.startswith(("GPU-", "MIG-", "$")):
            return None  # -1 and its like hide every card
        if text and ordinals(text) is not None and entries(text) < count:
            count, by, key = entries(text), f"{variable}={text}", f"env.{variable}"
    return count, by, key


@rule("DV085", Severity.WARNING, source=FIRST)
def first_card_is_busy(workload: Workload, host: Host | None) -> Iterator[Found]:
    """Only where the engine's choice is seen to be a bad one: its cards are fuller than others that it was given."""
    wanted, grant = ranks(workload), any_grant(workload, host)
    if wanted is None or grant is None or not wanted.exact or workload.pod is not None:
        return
    if any(workload.env.get(variable) for variable in _MASKS):
        return
    given = _given(grant, host)
    taken, left = given[: wanted.count], given[wanted.count :]
    share = memory_share(workload) or VLLM_SHARE
    full = [card for card in taken if _free_part(card) < share]
    better = [card for card in left if _free_part(card) >= share]
    if full and better:
        yield Found(
            title=f"{workload.label} takes {_names(taken)}, which is in use, and leaves {_names(better)} free",
            place=place(workload, grant.key or "name"),
            evidence=f"{grant.by}: {len(given)} devices, the engine uses {wanted.count} · "
            f"{full[0].name} {full[0].index} has {_free_part(full[0]):.0%} of its memory free",
            why="An engine takes the first devices that it sees, whatever is free on them: `Free memory on device … is "
            "less than desired GPU memory utilization`.",
            fix=(f"grant the card that is free:\n{paste.cards(workload, *_ids(better, wanted))}",),
        )


def _ids(better: list[Accelerator], wanted: Ranks) -> list[str]:
    return [card.uuid or str(card.index) for card in better[: wanted.count]]


def _given(grant: Grant, host: Host | None) -> list[Accelerator]:
    """Cards of the grant in the order of their PCI address, as an engine counts alike cards."""
    here = cards(host, grant.vendor)
    if grant.ids:
        found = [card_of(name, grant.vendor, host) for name in grant.ids]
        here = tuple(card for card in found if card is not None)
    elif grant.subset:
        here = here[: grant.count or 0]
    alike = len({card.name for card in here}) <= 1 and grant.vendor is Vendor.NVIDIA
    return sorted(here, key=lambda card: card.pci) if alike else []


def _free_part(card: Accelerator) -> float:
    """1 where it is not known: nothing is said of such a card."""
    free, total = card.memory_free, card.memory_total
    return free.value / total.value if isinstance(free, Known) and isinstance(total, Known) and total.value else 1.0


def _names(found: list[Accelerator]) -> str:
    return " and ".join(f"device {card.index}" for card in found)
