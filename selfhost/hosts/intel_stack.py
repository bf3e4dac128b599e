"""xe or i915, whether it is the kernel's own, the Level Zero beside it, and what the tools complain about."""

import re
from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.hosts import intel_tools
from selfhost.hosts.glance import exists, glance, names
from selfhost.shapes.host import Accelerator, Fact, Known, Unknown, Vendor
from selfhost.shapes.surroundings import DriverStack

_MODULES = ("xe", "i915")


def read(system: System, cards: Sequence[Accelerator]) -> DriverStack | None:
    own = [card for card in cards if card.vendor is Vendor.INTEL]
    if not own and not intel_tools.is_recorded(system):
        return None
    is_asked = any(not card.integrated for card in own) or intel_tools.is_recorded(system)
    answer = intel_tools.ask(system) if is_asked else intel_tools.Answer()
    module, flavour, loaded = _module(system, own)
    return DriverStack(
        vendor=Vendor.INTEL,
        module=module,
        loaded=loaded,
        flavour=flavour,
        library=_library(system, answer),
        cuda=Unknown("not an NVIDIA driver"),
        failure=answer.failure,
    )


def _module(system: System, cards: Sequence[Accelerator]) -> tuple[Fact[str], str, Fact[bool]]:
    """The module that the cards are bound to; of several the one of the first card that an engine can use."""
    bound = next((card.kernel_driver for card in cards if card.kernel_driver in _MODULES), "")
    name = bound or next((one for one in _MODULES if exists(system, f"/sys/module/{one}")), "")
    if not name:
        missing = Unknown("neither xe nor i915 is loaded here")
        seen = bool(names(system, "/sys/module"))
        return missing, "", Known(value=False, how="/sys/module has neither xe nor i915") if seen else missing
    version = glance(system, f"/sys/module/{name}/version")
    loaded = Known(value=True, how=f"a card is bound to {name}" if bound else f"/sys/module/{name}")
    if version:
        return Known(f"{name} {version}", f"/sys/module/{name}/version"), "dkms", loaded
    release = glance(system, "/proc/sys/kernel/osrelease")
    return (
        Known(" ".join(["in-tree", *release.split(), f"({name})"]), f"/sys/module/{name} has no version file"),
        "in-tree",
        loaded,
    )


def _library(system: System, answer: intel_tools.Answer) -> Fact[str]:
    """Version of the compute runtime: sycl-ls and clinfo print it, the library's name carries Level Zero's own."""
    said = next((one for one in answer.runtime if one.driver), None)
    if said:
        return Known(said.driver, said.tool)
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"):
        for name in names(system, folder):
            found = re.fullmatch(r"libze_intel_gpu\.so\.(\d+(?:\.\d+)+)", name)
            if found:
                return Known(found[1], f"{folder}/{name}")
    return Unknown("no Level Zero driver for GPUs was found")
