"""Memory that is one pool with the machine's, and copies between cards that the machine turns aside."""

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from selfhost.shapes.finding import Place, RunOn, Severity
from selfhost.shapes.host import Accelerator, Host, Known, Link, Vendor
from selfhost.visibility.rule import Found, host_rule
from selfhost.visibility.rules.host_layers import around, layers, machine, usable

_GIB: Final = 1024**3


@host_rule("DV076", Severity.INFO, source="https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/1073")
def card_has_no_memory_of_its_own(host: Host) -> Iterator[Found]:
    for card in host.usable_accelerators:
        if not card.unified:
            continue
        yield Found(
            title=f"{card.name} computes in the machine's own memory",
            place=Place(object=card.name),
            evidence=_amounts(host, card),
            why="There is no second pool: what the engine takes, the system loses. A tool that asks for the card's "
            "memory "
            "gets none or the carve-out alone, and --gpu-memory-utilization is a share of it all.",
            fix=("count with MemAvailable, and leave some gigabytes to the system",),
        )
        return


def _amounts(host: Host, card: Accelerator) -> str:
    said = {"the card says": card.memory_total, "the machine has": host.memory.total, "free": host.memory.available}
    known = (f"{what} {fact.value / _GIB:.1f} GiB" for what, fact in said.items() if isinstance(fact, Known))
    return ", ".join(known) or "no amount is known"


@host_rule("DV080", Severity.WARNING, source="https://github.com/NVIDIA/nccl/issues/2079")
def copies_between_cards_are_translated(host: Host) -> Iterator[Found]:
    kind = around(host).iommu
    if kind in ("", "identity") or "vm" in layers(host) or "wsl2" in layers(host):
        return
    pair = next(_apart(host), None)
    if pair is None:
        return
    yield Found(
        title="the IOMMU translates what cards copy to each other, and they have no link of their own",
        place=Place(object=f"{pair[0].pci} and {pair[1].pci}"),
        evidence=f"iommu_groups: {kind}; no NVLink or XGMI between cards {pair[0].index} and {pair[1].index}",
        why="Copies over PCIe then go astray: an engine on several cards hangs after NCCL or RCCL has started, or "
        "computes with wrong data.",
        fix=(
            (
                "let the kernel pass them through: add iommu=pt to its command line (GRUB_CMDLINE_LINUX), then\n"
                "sudo update-grub\nsudo reboot"
            ),
            "or keep the cards from direct copies: NCCL_P2P_DISABLE=1, and --disable-custom-all-reduce for vLLM",
        ),
        run_on=machine(host),
    )


def _apart(host: Host) -> Iterator[tuple[Accelerator, Accelerator]]:
    """Pairs of one vendor that copy over PCIe: neither linked, nor kept from direct copies by their driver."""
    links = {(link.a, link.b): link for link in host.links} | {(link.b, link.a): link for link in host.links}
    own = [card for card in usable(host) if not card.integrated and not card.unified and card.pci]
    for one, other in combinations(own, 2):
        same = one.vendor is other.vendor and one.vendor in (Vendor.NVIDIA, Vendor.AMD)
        linked = one.link_group and one.link_group == other.link_group
        parts = one.pci.rpartition(".")[0] == other.pci.rpartition(".")[0]
        if same and not linked and not parts and _copies_over_pcie(links.get((one.index, other.index))):
            yield one, other


def _copies_over_pcie(link: Link | None) -> bool:
    if link is None:
        return True
    return not link.kind.startswith(("NV", "XGMI")) and link.peer_access in ("", "OK")


@host_rule("DV081", Severity.ERROR, source="https://docs.vllm.ai/en/latest/getting_started/installation/cpu/")
def processor_lacks_avx2(host: Host) -> Iterator[Found]:
    cpu = host.cpu
    if "vm" not in layers(host) or cpu.architecture not in ("x86_64", "amd64"):
        return
    if not cpu.features or "avx2" in cpu.features:
        return
    yield Found(
        title="this virtual machine's processor has no AVX2",
        place=Place(object=cpu.model),
        evidence=f"flags of /proc/cpuinfo that engines use: {', '.join(cpu.features)}",
        why="A hypervisor shows a processor model of its own choice. PyTorch and every engine for CPUs are built "
        "for AVX2 "
        "and end with `Illegal instruction`.",
        fix=("give the machine the processor's own model: `host` (Proxmox, libvirt: host-passthrough), then boot it",),
        run_on=RunOn.HYPERVISOR,
    )
