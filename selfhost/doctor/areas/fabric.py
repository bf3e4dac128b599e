"""The NVSwitch fabric and its manager: only where there is one."""

from selfhost.doctor.area import Seen, area


@area("fabric", order=50)
def fabric(seen: Seen) -> None:
    around = seen.host.surroundings
    if around is None:
        seen.unknowns.append("NVSwitch was not looked for")
    elif around.nvswitches:
        seen.calm = f"{around.nvswitches} NVSwitches, fabric manager {around.fabric_manager or 'not looked for'}"
    else:
        seen.calm = "no NVSwitch, none needed"
