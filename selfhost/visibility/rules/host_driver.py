"""The driver against what has to match it: libraries in LXC, AMD's own module on an APU, the fabric manager."""

from collections.abc import Iterator
from typing import Final

from selfhost.core.versions import numbers
from selfhost.shapes.finding import Place, RunOn, Severity
from selfhost.shapes.host import Host, Known, Vendor
from selfhost.visibility.rule import Found, host_rule
from selfhost.visibility.rules.host_layers import around, in_container, layers, of, stack

_APUS: Final = ("gfx1150", "gfx1151")


@host_rule("DV048b", Severity.WARNING, source="https://github.com/ROCm/ROCm/issues/5444")
def module_of_amd_on_an_apu(host: Host) -> Iterator[Found]:
    driver = stack(host, Vendor.AMD)
    if driver is None or driver.flavour != "dkms" or not isinstance(driver.module, Known):
        return
    for card in of(host, Vendor.AMD):
        if isinstance(card.arch, Known) and card.arch.value in _APUS:
            yield Found(
                title=f"{card.name} runs with AMD's own kernel module, not with the kernel's",
                place=Place(object=card.name),
                evidence=f"amdgpu {driver.module.value} ({driver.module.how}), {card.arch.value}",
                why="For these processors AMD recommends the module that comes with the kernel; the one of amdgpu-dkms "
                "had regressions there that hang the card.",
                fix=("remove it and boot again:\nsudo apt remove amdgpu-dkms\nsudo reboot",),
            )


@host_rule("DV072", Severity.ERROR, source="https://pve.proxmox.com/wiki/Linux_Container")
def library_in_lxc_is_of_another_driver(host: Host) -> Iterator[Found]:
    driver = stack(host, Vendor.NVIDIA)
    if driver is None or "lxc" not in layers(host) or "wsl2" in layers(host):
        return
    module, library = driver.module, driver.library
    if not isinstance(module, Known) or not isinstance(library, Known):
        return
    if numbers(module.value) and numbers(library.value) and numbers(module.value) != numbers(library.value):
        yield Found(
            title=f"this LXC container has the libraries of driver {library.value}, its machine runs {module.value}",
            place=Place(path=library.how if library.how.startswith("/") else ""),
            evidence=f"{module.how}: {module.value}; {library.how}: {library.value}",
            why="The kernel module is the machine's, and only libraries of the very same version talk to it: "
            "`Driver/library version mismatch`.",
            fix=(
                (
                    f"install version {module.value} in here, without its module:\n"
                    f"sudo sh NVIDIA-Linux-x86_64-{module.value}.run --no-kernel-module"
                ),
                "or bring the machine to the version in here, and boot it again",
            ),
        )


@host_rule("DV075", Severity.ERROR, source="https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/")
def fabric_is_not_up(host: Host) -> Iterator[Found]:
    states = tuple(card.fabric for card in of(host, Vendor.NVIDIA) if card.fabric)
    waiting = tuple(state for state in states if not state.startswith("Completed"))
    if states and not waiting:
        return
    wrong = _manager(host)
    if waiting or wrong:
        yield Found(
            title="the NVSwitch fabric is not up, so CUDA does not start on these cards",
            place=Place(object="nvidia-fabricmanager"),
            evidence="; ".join((wrong, *(f"fabric of a card: {state}" for state in dict.fromkeys(waiting)))).strip(
                "; "
            ),
            why="Behind NVSwitches a card takes part only when the fabric manager, of the driver's very version, "
            "has set "
            "them up. Until then CUDA ends with error 802, `system not yet initialized`, and nvidia-smi looks fine.",
            fix=_raised(host),
            run_on=_where(host),
        )


def _manager(host: Host) -> str:
    """Only on the machine that has the switches: no container sees the machine's services."""
    seen = around(host)
    if seen.nvswitches < 2 or in_container(host) or not seen.fabric_manager:
        return ""
    state, _, version = seen.fabric_manager.partition(" ")
    if state != "active":
        return f"{seen.nvswitches} NVSwitches, and the fabric manager is {state}"
    if version and isinstance(host.driver, Known) and numbers(version) != numbers(host.driver.value):
        return f"the fabric manager is {version}, the driver {host.driver.value}"
    return ""


def _where(host: Host) -> RunOn:
    if in_container(host):
        return RunOn.CONTAINER_HOST
    return RunOn.HYPERVISOR if "vm" in layers(host) and not around(host).nvswitches else RunOn.HERE


def _raised(host: Host) -> tuple[str, ...]:
    if _where(host) is RunOn.HYPERVISOR:
        return ("activate the partition of this virtual machine's cards in the fabric manager",)
    branch = host.driver.value.partition(".")[0] if isinstance(host.driver, Known) else "580"
    return (
        (
            "install the fabric manager of the driver's version and start it:\n"
            f"sudo apt install nvidia-fabricmanager-{branch}\nsudo systemctl enable --now nvidia-fabricmanager"
        ),
    )
