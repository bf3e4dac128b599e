"""How cards reach each other: links, and what an IOMMU does between them."""

from selfhost.doctor.area import Seen, area


@area("interconnect", order=60)
def interconnect(seen: Seen) -> None:
    if len(seen.host.accelerators) < 2:
        seen.calm = "nothing to connect"
        return
    kinds = sorted({link.kind for link in seen.host.links})
    around = seen.host.surroundings
    iommu = f"IOMMU {around.iommu}" if around and around.iommu else "no IOMMU seen"
    if kinds:
        seen.calm = f"{', '.join(kinds)}; {iommu}"
    else:
        seen.unknowns.append("how the cards are linked was not read")
