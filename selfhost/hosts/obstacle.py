"""Why a card that an engine has code for cannot be used here: absent, refused, broken, or silent; and what helps."""

import re

from selfhost.core.errors import EnvironmentMissing
from selfhost.hosts.grant import BY_NUMBER, GRANTS, PLACE, Case, by_number_elsewhere, join_group
from selfhost.hosts.pci_table import driver_floor
from selfhost.shapes.host import Accelerator, DeviceNode, Host, Known, Vendor

CPU_INSTEAD = "or run on the CPU:\nselfhost up MODEL --device cpu"
_ONLY_NVIDIA = "This version starts engines on NVIDIA cards and on CPUs only."


def obstacle(host: Host, card: Accelerator, *, others: int = 0) -> EnvironmentMissing:
    """The error for a card that an engine has code for and that cannot be used here. `others`: more of its kind."""
    refused = next((node for node in card.nodes if node.opened != "ok"), None)
    labels = [layer.label for layer in host.nesting]
    layer = next((label for label in labels if label in PLACE), "")
    case = Case(host, card, refused, layer)
    more = f" (and {others} more)" if others else ""
    if refused is None:
        return _opened_yet_unusable(case, more)
    if refused.opened == "ENOENT":
        return _absent(case, more)
    if refused.opened in ("EPERM", "EACCES"):
        return _refused(case, more)
    return _broken(case, more)


def version(text: str) -> tuple[int, ...]:
    """`580.95.05` as numbers that compare."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _opened_yet_unusable(case: Case, more: str) -> EnvironmentMissing:
    card = case.card
    usable = card.usable
    if isinstance(usable, Known) and usable.value:
        return EnvironmentMissing(
            f"{card.name}{more} can be used, but not by this version",
            why=_ONLY_NVIDIA,
            fix=(CPU_INSTEAD.removeprefix("or "),),
            id="HX008",
        )
    reason = usable.how if isinstance(usable, Known) else usable.reason
    head, _, said = reason.partition(": ")
    return EnvironmentMissing(
        f"{card.name}{more} is granted here, but cannot be used",
        why=_join(f"Its nodes open, but {head}.", _scope(card)),
        evidence=said,
        fix=(*_wake(card, reason), CPU_INSTEAD),
        id="HX005",
    )


def _wake(card: Accelerator, reason: str) -> tuple[str, ...]:
    """What brings a card back whose nodes open."""
    if card.vendor is not Vendor.NVIDIA:
        return ("look what the kernel says about it:\nsudo dmesg | grep -iE 'amdgpu|i915|xe '",)
    if "mismatch" in reason:
        return ("the driver was updated while the old module is loaded: restart the machine",)
    if "not installed" in reason:
        return ("install the driver's own tools (in a container: grant the capability `utility`), then:\nnvidia-smi",)
    if "MIG" in reason:
        return ("switch MIG off on the machine itself:\nsudo nvidia-smi -mig 0",)
    return (
        "see what it says, and what the kernel logged about the card:\nnvidia-smi; sudo dmesg | grep -i -e NVRM -e Xid",
    )


def _absent(case: Case, more: str) -> EnvironmentMissing:
    card, node = case.card, case.node
    missing = node.path if node else "its device node"
    if case.layer and not (case.layer == "wsl2" and card.vendor is Vendor.NVIDIA and not card.pci):
        return EnvironmentMissing(
            f"{card.name}{more} is in this machine, but is not granted to this {PLACE[case.layer]}",
            why=_join(
                f"The bus shows it at {card.pci or 'an unknown address'}; {missing} does not exist here.", _scope(card)
            ),
            evidence=f"{missing}: {node.opened if node else 'ENOENT'}",
            fix=(*GRANTS[case.layer](case), CPU_INSTEAD),
            id="HX301",
        )
    return EnvironmentMissing(
        f"{card.name}{more} has no {missing}",
        why=_join(_why_no_node(case), _scope(card)),
        evidence=f"{missing}: {node.opened if node else 'ENOENT'}",
        fix=(*_make_nodes(case), CPU_INSTEAD),
        id="HX001",
    )


def _why_no_node(case: Case) -> str:
    card = case.card
    if card.vendor is not Vendor.NVIDIA:
        return f"The card is bound to {card.kernel_driver or 'no driver'}, and the driver has made no node for it."
    if isinstance(case.host.driver, Known):
        return "The kernel module is loaded, but this node is made only when somebody asks for it after a start."
    bound = f"; the card is bound to {card.kernel_driver}" if card.kernel_driver not in ("", "nvidia") else ""
    return f"No NVIDIA kernel module is loaded{bound}."


def _make_nodes(case: Case) -> tuple[str, ...]:
    card = case.card
    if card.vendor is Vendor.AMD:
        return ("load the driver:\nsudo modprobe amdgpu",)
    if card.vendor is Vendor.INTEL:
        return ("load the driver:\nsudo modprobe xe || sudo modprobe i915",)
    if isinstance(case.host.driver, Known):
        return ("make the nodes:\nsudo nvidia-modprobe -u -c=0",)
    if "ubuntu" in case.host.os.lower():
        return ("install the driver, then restart:\nsudo ubuntu-drivers install",)
    floor = driver_floor()
    return (f"install the NVIDIA driver of your distribution ({floor} or later), then restart the machine",)


def _refused(case: Case, more: str) -> EnvironmentMissing:
    card = case.card
    node = case.node or DeviceNode(path="its device node", opened="EACCES")
    by_mode = node.opened == "EACCES"
    why = (
        f"Its mode is {node.mode:04o} and its group is number {node.gid}, to which this process does not belong."
        if by_mode
        else "The node is here, but the device rules of the layer around us (cgroup) do not allow it."
    )
    fix: tuple[str, ...]
    if by_mode and not case.layer:
        fix = (f"join the group with number {node.gid} and log in again:\n{join_group(node)}",)
    elif by_mode:
        fix = BY_NUMBER.get(case.layer, by_number_elsewhere)(node)
    elif case.layer:
        fix = GRANTS[case.layer](case)
    else:
        fix = ("the unit or job that started this restricts devices: allow this one there (systemd: DeviceAllow=)",)
    return EnvironmentMissing(
        f"{card.name}{more} is here, but {node.path} may not be opened",
        why=_join(why, _scope(card)),
        evidence=f"{node.path}: {node.opened}",
        fix=(*fix, CPU_INSTEAD),
        id="HX201" if by_mode else "HX202",
    )


def _broken(case: Case, more: str) -> EnvironmentMissing:
    card, node = case.card, case.node or DeviceNode(path="its device node", opened="EIO")
    hint = (
        "The file is an empty one: the host had no such device when this container started."
        if node.opened == "ENODEV"
        else "The driver refuses it: the card has fallen off the bus, or the node's number is of an earlier start."
    )
    fix = (
        "make the node on the host, then restart this container:\nsudo nvidia-modprobe -u -c=0"
        if node.opened == "ENODEV" and card.vendor is Vendor.NVIDIA
        else "look what the kernel logged about it:\nsudo dmesg | tail -n 50"
    )
    return EnvironmentMissing(
        f"{card.name}{more} is here, but {node.path} does not open",
        why=_join(hint, _scope(card)),
        evidence=f"{node.path}: {node.opened}",
        fix=(fix, CPU_INSTEAD),
        id="HX203",
    )


def _scope(card: Accelerator) -> str:
    """Said beside every way to grant an AMD or Intel card, so that nobody grants it for nothing."""
    return "" if card.vendor is Vendor.NVIDIA else f"{_ONLY_NVIDIA} Granted, it would still be left unused."


def _join(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)
