"""Look at every area of one machine. The rules about hosts are run too and each is sorted into its area."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, cast

from selfhost.doctor.area import KIND, Area, Examine, Seen, Spec
from selfhost.doctor.look import Look
from selfhost.shapes.finding import Finding, Report, Severity
from selfhost.shapes.host import Host

# Where a rule about the host belongs; one that is not here stands with the containers.
RULE_AREAS: Final = {
    "DV038": "kubernetes",
    "DV048b": "driver",
    "DV072": "driver",
    "DV074": "isolation",
    "DV075": "fabric",
    "DV076": "memory",
    "DV077": "kubernetes",
    "DV080": "interconnect",
    "DV081": "memory",
    "DV083": "devices",
    "DV084": "devices",
}
# One cause is said once: by the finding on the left, and not by those on the right whose evidence holds the word.
_SAID_BETTER: Final = {
    "DV072": (("HX003", ""), ("HX005", "mismatch")),
    "DV075": (("HX005", "ystem is not yet initialized"),),
    "DV077": (("HX301", "/dev/nvidia"),),
    "DV083": (("HX001", "/dev/nvidia-uvm"), ("HX301", "/dev/nvidia-uvm"), ("HX203", "/dev/nvidia-uvm")),
    "DV084": (("HX001", "/dev/kfd"), ("HX201", "/dev/kfd"), ("HX202", "/dev/kfd"), ("HX301", "/dev/kfd")),
    "HX003": (("HX005", "mismatch"),),
    "HX010": (("HX001", "/dev/nvidia"),),
    "HX011": (("HX001", "/dev/nvidia"),),
    "HX012": (("HX001", "/dev/nvidia"),),
    "HX013": (("HX005", "No devices"),),
    "HX014": (("HX005", "No devices"),),
    "HX015": (("HX005", "No devices"),),
}
_RANK: Final = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """All areas, the cause before what follows from it."""

    areas: tuple[Area, ...]

    @property
    def report(self) -> Report:
        return Report.of(finding for one in self.areas for finding in one.findings)

    def to_json(self) -> dict[str, object]:
        """Schema selfhost.findings/1 with the areas beside it."""
        areas = [
            {
                "name": one.name,
                "state": state(one),
                "says": one.calm,
                "findings": [finding.id for finding in one.findings],
                "unknown": list(one.unknowns),
            }
            for one in self.areas
        ]
        return {**self.report.to_json(), "areas": areas}


def state(one: Area) -> str:
    """`error`, `warning`, `info` by the worst that was found; else `unknown` or `ok`."""
    if one.findings:
        return min((finding.severity for finding in one.findings), key=_RANK.__getitem__).value
    return "unknown" if one.unknowns and not one.calm else "ok"


def examine(host: Host, look: Look | None = None) -> Examination:
    """Pure: everything was read before. Without `look` the areas that need it say that they are unknown."""
    from selfhost.core.marks import collect
    from selfhost.doctor import areas as package
    from selfhost.visibility.lint import check_host

    ruled = check_host(host)
    marked = cast("dict[str, tuple[Spec, Examine]]", collect(package, KIND))
    ordered = sorted(marked.values(), key=lambda pair: pair[0].order)
    seen = []
    for spec, check in ordered:
        area = Seen(host=host, look=look or Look())
        check(area)
        seen.append((spec, area))
    said = {finding.id for finding in (*ruled, *(finding for _, one in seen for finding in one.findings))}
    found = []
    for spec, area in seen:
        own = [finding for finding in area.findings if not _is_said_better(finding, said)]
        theirs = [finding for finding in ruled if RULE_AREAS.get(finding.id, "containers") == spec.id]
        findings = sorted((*own, *theirs), key=lambda finding: _RANK[finding.severity])
        found.append(Area(name=spec.id, calm=area.calm, findings=tuple(findings), unknowns=tuple(area.unknowns)))
    return Examination(areas=tuple(found))


def _is_said_better(finding: Finding, said: AbstractSet[str]) -> bool:
    rows = (row for better in said for row in _SAID_BETTER.get(better, ()))
    return any(finding.id == ours and word in finding.evidence for ours, word in rows)
