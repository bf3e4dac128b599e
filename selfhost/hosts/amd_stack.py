"""The amdgpu module, whether it is the kernel's own or AMD's, the ROCm beside it, and what the tools complain about."""

import re
from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.hosts import amd_tools, kfd
from selfhost.hosts.glance import exists, glance, names
from selfhost.shapes.host import Accelerator, Fact, Known, Support, Unknown, Vendor
from selfhost.shapes.surroundings import DriverStack

_MODULE = "/sys/module/amdgpu"
_ROCM = "/opt/rocm/.info/version"


def read(system: System, cards: Sequence[Accelerator]) -> DriverStack | None:
    own = [card for card in cards if card.vendor is Vendor.AMD]
    marks = (_MODULE, "/dev/kfd")
    if not own and not any(exists(system, path) for path in marks) and not amd_tools.is_recorded(system):
        return None
    is_asked = any(not card.integrated or card.support is Support.SUPPORTED for card in own)
    answer = amd_tools.ask(system) if is_asked or amd_tools.is_recorded(system) else amd_tools.Answer()
    loaded = _loaded(system, own, answer.failure)
    module, flavour = _module(system, answer.driver, loaded)
    contradictions = kfd.read(system).contradictions
    return DriverStack(
        vendor=Vendor.AMD,
        module=module,
        loaded=loaded,
        flavour=flavour,
        library=_rocm(system, answer.rocm),
        cuda=Unknown("not an NVIDIA driver"),
        failure="; ".join(said for said in (answer.failure, *contradictions) if said),
    )


def _loaded(system: System, cards: Sequence[Accelerator], failure: str) -> Fact[bool]:
    if exists(system, _MODULE):
        return Known(value=True, how=_MODULE)
    if any(card.kernel_driver == "amdgpu" for card in cards):
        return Known(value=True, how="a card is bound to amdgpu")
    if "not loaded" in failure:
        return Known(value=False, how=failure)
    if names(system, "/sys/module"):
        return Known(value=False, how=f"{_MODULE} does not exist")
    return Unknown("/sys/module cannot be read here")


def _module(system: System, said: str, loaded: Fact[bool]) -> tuple[Fact[str], str]:
    """Only AMD's own (DKMS) module has a version file; the one of the kernel is known by the kernel's release."""
    version = glance(system, f"{_MODULE}/version")
    if version:
        return Known(version, f"{_MODULE}/version"), "dkms"
    release = glance(system, "/proc/sys/kernel/osrelease")
    if not (isinstance(loaded, Known) and loaded.value) or not exists(system, _MODULE):
        return _by_tool(said, release)
    return Known(f"in-tree {release}".strip(), f"{_MODULE} has no version file"), "in-tree"


def _by_tool(said: str, release: str) -> tuple[Fact[str], str]:
    """amd-smi prints a release, or for the kernel's own module a piece of /proc/version (`Linuxversion6.8…`)."""
    mangled = re.match(r"Linux\s*(?:ver(?:sion)?)?\s*(\d[\w.]*(?:-\d+)*)?", said)
    if mangled:
        return Known(f"in-tree {release or mangled[1] or ''}".strip(), "amdgpu version of the tools"), "in-tree"
    if said and (said == release or re.fullmatch(r"\d+\.\d+\.\d+-\S+", said)):
        return Known(f"in-tree {said}", "driver version of the tools"), "in-tree"
    if re.fullmatch(r"\d+(\.\d+)+", said):
        return Known(said, "driver version of the tools"), "dkms"
    return Unknown(f"{_MODULE} is not here, and no tool names its version"), ""


def _rocm(system: System, said: str) -> Fact[str]:
    written = glance(system, _ROCM).partition("-")[0]
    if written:
        return Known(written, _ROCM)
    return Known(said, "amd-smi version") if said else Unknown("no ROCm is installed here")
