"""What nvidia-smi and NVML say when they cannot, and what it means."""

import re

# NVIDIA's own texts and where each was seen; the first that fits decides. Matched without regard to case.
_TEXTS: tuple[tuple[str, str], ...] = (
    # anderskm/gputil#55, mozilla/translations#1167; NVML's code 18
    ("version mismatch", "the kernel module and the driver's library are of different versions"),
    # NVIDIA/nvidia-container-toolkit#85
    ("access blocked by the operating system", "the device rules around this process keep it from the card"),
    ("operating system has blocked", "the device rules around this process keep it from the card"),
    # https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html
    ("insufficient permissions", "this process may not open the driver's nodes (SELinux, or their mode)"),
    ("gpu is lost", "the card has fallen off the bus"),
    ("fell off the bus", "the card has fallen off the bus"),
    ("requires re", "the card must be reset"),
    # NVIDIA/nvidia-container-toolkit#48, #1227
    ("unknown error", "the driver refuses: mostly a container that lost its devices when systemd reloaded its units"),
    ("driver is not loaded", "no kernel module of the driver is loaded"),
    ("driver not loaded", "no kernel module of the driver is loaded"),
    ("couldn't communicate with the nvidia driver", "no kernel module of the driver is loaded"),
    ("couldn't find libnvidia-ml", "the driver's library is not here"),
    ("shared library not found", "the driver's library is not here"),
    ("error while loading shared libraries", "the driver's library is not here"),
    ("no devices were found", "the driver is loaded and has no card that it could start"),
    ("cannot open shared object", "the driver's library is not here"),
    ("function not found", "the driver's library is older than what was asked of it"),
    ("infoROM is corrupted", "the card's own memory of settings (infoROM) is damaged"),
    ("external power", "the card's power cable is not connected"),
)

# nvidia-smi(1), RETURN VALUE; 18 and 255 are NVML's return codes, of which the exit status keeps the last eight bits.
_CODES: dict[int, str] = {
    2: "nvidia-smi did not understand what it was asked",
    3: "the card does not offer what was asked",
    4: "this process may not open the driver's nodes (SELinux, or their mode)",
    6: "the driver is loaded and has no card that it could start",
    8: "the card's power cable is not connected",
    9: "no kernel module of the driver is loaded",
    10: "the kernel has trouble with the card's interrupts",
    12: "the driver's library is not here",
    13: "the driver's library is older than what was asked of it",
    14: "the card's own memory of settings (infoROM) is damaged",
    15: "the card has fallen off the bus",
    18: "the kernel module and the driver's library are of different versions",
    124: "the driver gives no answer",
    255: "the driver refuses: mostly a container that lost its devices when systemd reloaded its units",
}


def meaning(rc: int, said: str) -> str:
    """The failure in plain words; empty for one that nothing public explains."""
    for text, means in _TEXTS:
        if text.lower() in said.lower():
            return means
    if rc < 0 or rc in (134, 139):
        return f"nvidia-smi crashed (signal {-rc if rc < 0 else rc - 128})"
    return _CODES.get(rc, "")


def library_of(said: str) -> str:
    """The library's version in `NVML library version: 535.161`, which has two parts where the driver's has three."""
    found = re.search(r"NVML library version:\s*(\d+(?:\.\d+)+)", said)
    return found[1] if found else ""


def lost_cards(said: str) -> dict[str, str]:
    """By PCI address: cards of which nvidia-smi got no handle, and why.

    `Unable to determine the device handle for GPU0000:0B:00.0: Unknown Error`, with or without a number before it.
    """
    found = re.findall(
        r"Unable to determine the device handle for gpu\s?(?:\d{1,3}:\s+)?"
        r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]):\s*([^\n.]{1,80})",
        said,
        re.IGNORECASE,
    )
    return {f"{int(domain, 16):04x}:{place.lower()}": why.strip() for domain, place, why in found}
