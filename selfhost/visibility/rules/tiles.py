"""Intel's tiles: one number, two things."""

from collections.abc import Iterator

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility import paste
from selfhost.visibility.rule import Found, place, rule
from selfhost.visibility.rules.masks import INTEL


@rule("DV063", Severity.WARNING, source=INTEL)
def tiles_or_cards(workload: Workload, host: Host | None) -> Iterator[Found]:
    if host is None or "ZE_AFFINITY_MASK" not in workload.env or "ZE_FLAT_DEVICE_HIERARCHY" in workload.env:
        return
    tiled = [card for card in host.accelerators if card.vendor is Vendor.INTEL and "Max 1550" in card.name]
    if tiled:
        yield Found(
            title=f"ZE_AFFINITY_MASK={workload.env['ZE_AFFINITY_MASK']} may mean tiles or cards",
            place=place(workload, "env.ZE_AFFINITY_MASK"),
            evidence=f"{tiled[0].name} has two tiles; ZE_FLAT_DEVICE_HIERARCHY is not set",
            why="With FLAT each tile is a device of its own, with COMPOSITE each card is; the default changed between "
            "driver versions.",
            fix=(f"say which is meant:\n{paste.variable(workload, 'ZE_FLAT_DEVICE_HIERARCHY', 'COMPOSITE')}",),
        )
