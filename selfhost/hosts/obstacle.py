"""Why a card that an engine has code for cannot be used here: absent, refused, broken, or silent; and what helps."""

import re
from collections.abc import Sequence

from selfhost.core.errors import EnvironmentMissing
from selfhost.hosts.engine_support import driver_floor
from selfhost.hosts.grant import BY_NUMBER, GRANTS, PLACE, Case, by_number_elsewhere, join_group
from selfhost.shapes.host import Accelerator, DeviceNode, Host, Known, Vendor

CPU_INSTEAD = "or run on the CPU:\nselfhost up MODEL --device cpu"
_ONLY_NVIDIA = "This version starts engines on NVIDIA cards and on CPUs only."


class Obstacle(EnvironmentMissing):
    """Why no engine is started on a card; `short` says it in a clause, beside the card's name in a table."""

    def __init__(
        self, what: str, *, short: str, why: str = "", fix: Sequence[str] = (), evidence: str = "", id: str = ""
    ) -> None:
        super().__init__(what, why=why, fix=fix, evidence=evidence, id=id)
        self.short = short


def obstacle(host: Host, card: Accelerator, *, others: int = 0) -> Obstacle:
    """The error for a card that an engine has code for and that cannot be used here. `others`: more of its kind."""
    refused = next((node for node in card.nodes if node.opened != "ok"), None)
    labels = [layer.label for layer in host.nesting]
    layer = next((label for label in labels if label in PLACE), "")
    case = Case(host, card, refused, layer)
    more = f" (and {others} more)" if others else ""
    if card.kernel_driver == "vfio-pci":
        return _of_another_machine(card)
    if refused is None and not isinstance(card.openable, Known):
        return _not_looked_at(case, more)
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


def _of_another_machine(card: Accelerator) -> Obstacle:
    return Obstacle(
        f"{card.name} is set aside for a virtual machine",
        short="set aside for a virtual machine (vfio-pci)",
        why="It is bound to vfio-pci, which hands a whole card to a guest; nothing outside that guest can use it.",
        evidence=f"{card.pci}: {card.kernel_driver}",
        fix=("run selfhost inside that virtual machine", CPU_INSTEAD),
        id="HX006",
    )


def _not_looked_at(case: Case, more: str) -> Obstacle:
    """A card that only a tool named: neither its nodes nor its use were seen."""
    card = case.card
    reason = card.openable.reason if not isinstance(card.openable, Known) else ""
    return Obstacle(
        f"{card.name}{more} is named by a tool, but its nodes were not seen",
        short="not looked at: its nodes were not seen",
        why=_join(f"{reason}." if reason else "", "A tool that lists a card does not prove that it can be opened."),
        fix=("look on the machine itself:\nselfhost detect", CPU_INSTEAD),
        id="HX009",
    )


def _opened_yet_unusable(case: Case, more: str) -> Obstacle:
    card = case.card
    usable = card.usable
    if isinstance(usable, Known) and usable.value:
        return Obstacle(
            f"{card.name} can be used, but not by this version",
            short="usable, not by this version",
            why=_ONLY_NVIDIA,
            fix=(CPU_INSTEAD.removeprefix("or "),),
            id="HX008",
        )
    reason = usable.how if isinstance(usable, Known) else usable.reason
    head, _, said = reason.partition(": ")
    return Obstacle(
        f"{card.name}{more} is granted here, but cannot be used",
        short=f"granted, cannot be used: {reason}",
        why=_join(f"Its nodes open, but {head}.", _scope(card)),
        evidence=said,
        fix=_in_order(card, _wake(card, reason)),
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


def _absent(case: Case, more: str) -> Obstacle:
    card, node = case.card, case.node
    missing = node.path if node else "its device node"
    if case.layer and not (case.layer == "wsl2" and card.vendor is Vendor.NVIDIA and not card.pci):
        return Obstacle(
            f"{card.name}{more} is in this machine, but is not granted to this {PLACE[case.layer]}",
            short=f"not granted to this {PLACE[case.layer]}",
            why=_join(
                f"The bus shows it at {card.pci or 'an unknown address'}; {missing} does not exist here.", _scope(card)
            ),
            evidence=f"{missing}: {node.opened if node else 'ENOENT'}",
            fix=_in_order(card, GRANTS[case.layer](case)),
            id="HX301",
        )
    bare = card.vendor is Vendor.NVIDIA and not isinstance(case.host.driver, Known)
    bound = f" and is bound to {card.kernel_driver}" if bare and card.kernel_driver not in ("", "nvidia") else ""
    lacks = f"no NVIDIA driver{bound}" if bare else f"no {missing}"
    return Obstacle(
        f"{card.name}{more} has {lacks}",
        short=lacks.replace(" and is bound", ", bound"),
        why=_join(_why_no_node(case), _scope(card)),
        evidence=f"{missing}: {node.opened if node else 'ENOENT'}",
        fix=_in_order(card, _make_nodes(case)),
        id="HX001",
    )


def _why_no_node(case: Case) -> str:
    card = case.card
    if card.vendor is not Vendor.NVIDIA:
        return f"The card is bound to {card.kernel_driver or 'no driver'}, and the driver has made no node for it."
    if isinstance(case.host.driver, Known):
        return "The kernel module is loaded, but this node is made only when somebody asks for it after a start."
    return "No NVIDIA kernel module is loaded, and it is the module that makes the card's nodes."


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


def _refused(case: Case, more: str) -> Obstacle:
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
    return Obstacle(
        f"{card.name}{more} is here, but {node.path} may not be opened",
        short=f"{node.path} may not be opened ({node.opened})",
        why=_join(why, _scope(card)),
        evidence=f"{node.path}: {node.opened}",
        fix=_in_order(card, fix),
        id="HX201" if by_mode else "HX202",
    )


def _broken(case: Case, more: str) -> Obstacle:
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
    return Obstacle(
        f"{card.name}{more} is here, but {node.path} does not open",
        short=f"{node.path} does not open ({node.opened})",
        why=_join(hint, _scope(card)),
        evidence=f"{node.path}: {node.opened}",
        fix=_in_order(card, (fix,)),
        id="HX203",
    )


def _in_order(card: Accelerator, ways: Sequence[str]) -> tuple[str, ...]:
    """Ways to bring the card in, then the CPU; the CPU first where the card would be left unused all the same."""
    if card.vendor is Vendor.NVIDIA:
        return (*ways, CPU_INSTEAD)
    return (CPU_INSTEAD.removeprefix("or "), *(f"for a version that uses this card: {way}" for way in ways))


def _scope(card: Accelerator) -> str:
    """Said beside every way to grant an AMD or Intel card, so that nobody grants it for nothing."""
    return "" if card.vendor is Vendor.NVIDIA else f"{_ONLY_NVIDIA} Granted, it would still be left unused."


def _join(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)
