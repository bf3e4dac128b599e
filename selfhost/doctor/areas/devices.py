"""Device nodes and what opening them said: what keeps each card from being used here."""

from typing import Final

from selfhost.doctor.area import CONTAINERS, Seen, area, driver_place
from selfhost.hosts.grant import AROUND, PLACE
from selfhost.hosts.nvidia_reading import VGPU_HOST
from selfhost.hosts.obstacle import Obstacle, fault, is_unsure
from selfhost.hosts.placement import old_driver, refusal
from selfhost.shapes.finding import Finding, Place, RunOn, Severity
from selfhost.shapes.host import Accelerator, Host, Known, Support, Unknown, Vendor

# What somebody chose, or what no grant can change: worth a line, not an alarm.
_CHOSEN: Final = ("HX006", "HX007")
_NOT_LET_IN: Final = ("HX202", "HX301")
_OF_THE_DRIVER: Final = ("HX001", "HX004", "HX005")


@area("devices", order=20)
def devices(seen: Seen) -> None:
    cards = seen.host.accelerators
    groups: dict[tuple[str, str], list[tuple[Accelerator, Obstacle]]] = {}
    for card in cards:
        refused = _wrong(seen.host, card)
        if refused is not None and not (refused.id == "HX007" and card.integrated):
            groups.setdefault((refused.id, refused.short), []).append((card, refused))
    seen.findings.extend(_finding(seen, group) for group in groups.values())
    seen.calm = _calm(tuple(card for card in cards if card.support is not Support.UNSUPPORTED), len(cards))


def _wrong(host: Host, card: Accelerator) -> Obstacle | None:
    """Of the machine alone: that this version starts no engine on a card that computes is no fault of it."""
    if card.support is Support.UNSUPPORTED:
        return refusal(host, card)
    return fault(host, card) or (old_driver(host) if card.vendor is Vendor.NVIDIA else None)


def _calm(cards: tuple[Accelerator, ...], total: int) -> str:
    if not cards:
        return "no card that an engine runs on; the CPU serves" if total else "no accelerator; the CPU serves"
    counts: dict[str, int] = {}
    for card in cards:
        counts[card.name] = counts.get(card.name, 0) + 1
    return (
        ", ".join(f"{count} × {name}" if count > 1 else name for name, count in counts.items()) + ": every node opens"
    )


def _finding(seen: Seen, group: list[tuple[Accelerator, Obstacle]]) -> Finding:
    card, refused = group[0]
    more = f" (and {len(group) - 1} more)" if len(group) > 1 and refused.id != "HX004" else ""
    where = _run_on(seen.labels, refused)
    return Finding(
        id=refused.id,
        severity=_severity(seen, card, refused),
        title=f"{refused.what}{more}",
        place=Place(object=", ".join(f"accelerator {one.index}" for one, _ in group)),
        evidence="\n".join(dict.fromkeys(one.evidence for _, one in group if one.evidence)),
        why=refused.why,
        # The machine is named before the action.
        fix=tuple(
            action.replace(AROUND, "") if where is not RunOn.HERE else action
            for action in refused.fix
            if "--device cpu" not in action
        ),
        run_on=where,
    )


def _severity(seen: Seen, card: Accelerator, refused: Obstacle) -> Severity:
    """Where one card was let in, the others were left out on purpose: of that share, nothing is wrong."""
    let_in = refused.id in _NOT_LET_IN and any(label in PLACE for label in seen.labels) and _one_opens(seen)
    how = card.usable.how if isinstance(card.usable, Known) else ""
    if refused.id in _CHOSEN or how == VGPU_HOST or let_in or card.support is Support.UNSUPPORTED:
        return Severity.INFO
    if isinstance(card.usable, Unknown) and is_unsure(card.usable.reason):
        return Severity.WARNING
    return Severity.ERROR if card.support is Support.SUPPORTED else Severity.WARNING


def _one_opens(seen: Seen) -> bool:
    return any(isinstance(card.openable, Known) and card.openable.value for card in seen.host.accelerators)


def _run_on(labels: tuple[str, ...], refused: Obstacle) -> RunOn:
    if refused.id in _CHOSEN:
        return RunOn.HERE
    if refused.id in _OF_THE_DRIVER or any(label in CONTAINERS or label == "pod" for label in labels):
        return driver_place(labels)
    return RunOn.WINDOWS if "wsl2" in labels and refused.id == "HX301" else RunOn.HERE
