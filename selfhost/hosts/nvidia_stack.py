"""NVIDIA's kernel module, the library that has to match it, the CUDA it runs, and what its tools complain about."""

from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.hosts import cuda
from selfhost.hosts.glance import exists
from selfhost.hosts.nvidia_library import library
from selfhost.hosts.nvidia_proc import flavour, is_loaded, module
from selfhost.hosts.nvidia_reading import VGPU_HOST, Answer
from selfhost.hosts.nvidia_tools import last
from selfhost.hosts.virtual import wsl
from selfhost.shapes.host import Accelerator, Fact, Known, Unknown, Vendor
from selfhost.shapes.surroundings import DriverStack


def read(system: System, cards: Sequence[Accelerator]) -> DriverStack | None:
    """None on a machine with nothing of NVIDIA's; the tools are not asked again when the cards came from them."""
    own = [card for card in cards if card.vendor is Vendor.NVIDIA]
    loaded = is_loaded(system)
    if not own and not (isinstance(loaded, Known) and loaded.value) and not exists(system, "/dev/nvidiactl"):
        return None
    answer = last(system)
    windows = _on_windows(system, own)
    version = _module(system, answer, windows=windows)
    return DriverStack(
        vendor=Vendor.NVIDIA,
        module=version,
        loaded=_loaded(loaded, answer, windows=windows),
        flavour="windows" if windows else flavour(system),
        library=_library(system, answer),
        cuda=_cuda(answer, version, windows=windows),
        failure=_failure(answer),
    )


def _on_windows(system: System, cards: Sequence[Accelerator]) -> bool:
    """Under WSL2, unless a card was handed through to the virtual machine with a driver of its own."""
    return bool(wsl(system)) and not any(card.pci and card.kernel_driver == "nvidia" for card in cards)


def _loaded(seen: Fact[bool], answer: Answer, *, windows: bool) -> Fact[bool]:
    """A tool that lists cards has reached the driver, wherever its files are (a Jetson's module has another name)."""
    if windows:
        return Known(value=True, how="/dev/dxg: the driver is that of Windows")
    if answer.cards and isinstance(seen, Known) and not seen.value:
        return Known(value=True, how=f"{answer.cards[0].tool} lists cards")
    return seen


def _module(system: System, answer: Answer, *, windows: bool) -> Fact[str]:
    found = module(system)
    if isinstance(found, Unknown) and answer.driver:
        return Known(answer.driver, answer.driver_how)
    if isinstance(found, Unknown) and windows:
        return Unknown(answer.failure or "nvidia-smi does not say the version of the Windows driver")
    return found


def _library(system: System, answer: Answer) -> Fact[str]:
    found = library(system)
    if isinstance(found, Unknown) and answer.library:
        return Known(answer.library, "NVML library version")
    return found


def _cuda(answer: Answer, driver: Fact[str], *, windows: bool) -> Fact[str]:
    """As the driver reports it. A reason it gives (`Not Found`, `ERR!`) is not papered over by the table."""
    if isinstance(answer.cuda, Known) or "CUDA Version" in answer.cuda.reason:
        return answer.cuda
    if isinstance(driver, Known):
        return cuda.highest_on_windows(driver.value) if windows else cuda.highest(driver.value)
    return Unknown("no NVIDIA driver version is known")


def _failure(answer: Answer) -> str:
    """In plain words first, then the tool's own."""
    if answer.failure:
        return f"{answer.meaning} ({answer.failure})" if answer.meaning else answer.failure
    if is_vgpu_host(answer):
        return VGPU_HOST
    lost = tuple(
        f"{address}: {said}"
        for address, said in answer.faults.items()
        if not any(address in remark for remark in answer.remarks)
    )
    return "; ".join((*answer.remarks, *lost))


def is_vgpu_host(answer: Answer) -> bool:
    """The vGPU manager: its cards say so, or it has no CUDA and names what it can hand out."""
    hosts = bool(answer.cards) and all(card.virtualization.startswith("Host V") for card in answer.cards)
    return hosts or (answer.serves_vgpus and isinstance(answer.cuda, Unknown) and "Not Found" in answer.cuda.reason)
