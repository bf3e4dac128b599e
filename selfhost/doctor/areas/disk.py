"""Room where weights and images go."""

from typing import Final

from selfhost.doctor.area import Seen, area
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.host import Disk
from selfhost.shapes.units import format_bytes

_NOTHING_FITS: Final = 1 << 30
_IMAGE: Final = 20 << 30
"""An engine's image for one vendor, unpacked."""


@area("disk", order=80)
def disk(seen: Seen) -> None:
    systems: dict[tuple[int, int], Disk] = {}
    for one in seen.host.disks:
        systems.setdefault((one.total, one.free), one)
    enough = _IMAGE if seen.host.usable_accelerators else _NOTHING_FITS
    for one in systems.values():
        if one.free < enough:
            seen.findings.append(_full(one))
    seen.calm = ", ".join(f"{format_bytes(one.free)} free at {one.path}" for one in systems.values())
    if not systems:
        seen.unknowns.append("free space was not read")


def _full(one: Disk) -> Finding:
    nothing = one.free < _NOTHING_FITS
    return Finding(
        id="HX501",
        severity=Severity.ERROR if nothing else Severity.WARNING,
        title=f"{format_bytes(one.free)} free at {one.path}",
        place=Place(object=one.path),
        evidence=f"{one.path}: {one.free} of {one.total} bytes free",
        why="Layer: disk. "
        + ("Not even a small model fits." if nothing else "An engine's image alone takes about 20 GiB."),
        fix=("see what is large there:\nsudo du -xh --max-depth=2 " + one.path + " | sort -h | tail -n 20",),
        source="https://hub.docker.com/r/vllm/vllm-openai/tags",
    )
