"""Why a card that an engine has code for cannot be used here: absent, refused, broken, or silent; and what helps."""

import re
from collections.abc import Sequence

from selfhost.core.errors import EnvironmentMissing
from selfhost.hosts.engine_support import driver_floor
from selfhost.hosts.grant import BY_NUMBER, GRANTS, PLACE, Case, by_number_elsewhere, join_group
from selfhost.hosts.nvidia_reading import VGPU_HOST
from selfhost.hosts.slices import slices
from selfhost.shapes.host import Accelerator, DeviceNode, Host, Known, Partitioning, Vendor

CPU_INSTEAD = "or run on the CPU:\nselfhost up MODEL --device cpu"
_CPU_FIRST = CPU_INSTEAD.removeprefix("or ")
# Set aside, or not looked at: there is nothing to grant.
_NOT_GRANTABLE = ("HX006", "HX009")
_ONLY_NVIDIA = "This version starts engines on NVIDIA cards and on CPUs only."


class Obstacle(EnvironmentMissing):
    """Why no engine is started on a card; `short` says it in a clause, beside the card's name in a table."""

    def __init__(
        self, what: str, *, short: str, why: str = "", fix: Sequence[str] = (), evidence: str = "", id: str = ""
    ) -> None:
        super().__init__(what, why=why, fix=fix, evidence=evidence, id=id)
        self.short = short


def obstacle(host: Host, card: Accelerator, *, others: int = 0) -> Obstacle:
    """Why `up` starts nothing on a card that an engine has code for. `others`: more of its kind."""
    found = fault(host, card)
    if card.partitioning is Partitioning.MIG and (found is None or found.id == "HX005"):
        return _in_containers(card) if found is None and slices(card) else _whole_only(card)
    if found is None:
        return _not_by_us(card)
    more = f" (and {others} more)" if others else ""
    what = found.what.replace(card.name, f"{card.name}{more}", 1)
    if found.id in _NOT_GRANTABLE or card.vendor is Vendor.NVIDIA:
        why, fix = found.why, (*found.fix, CPU_INSTEAD)
    else:
        # The CPU first, so that nobody grants a card that would be left unused all the same.
        why = f"{found.why} {_ONLY_NVIDIA} Granted, it would still be left unused."
        fix = (_CPU_FIRST, *(f"for a version that uses this card: {way}" for way in found.fix))
    return Obstacle(what, short=found.short, why=why, evidence=found.evidence, fix=fix, id=found.id)


def fault(host: Host, card: Accelerator) -> Obstacle | None:
    """What is wrong with a card on this machine, whoever wants to use it; None for one that computes."""
    refused = next((node for node in card.nodes if node.opened != "ok"), None)
    layer = next((one.label for one in host.nesting if one.label in PLACE), "")
    case = Case(host, card, refused, layer)
    if card.kernel_driver == "vfio-pci":
        return _of_another_machine(card)
    if refused is None and not isinstance(card.openable, Known):
        return _not_looked_at(case)
    if refused is None:
        return None if isinstance(card.usable, Known) and card.usable.value else _opened_yet_unusable(case)
    if refused.opened == "ENOENT":
        return _absent(case)
    if refused.opened in ("EPERM", "EACCES"):
        return _refused(case)
    return _broken(case)


def version(text: str) -> tuple[int, ...]:
    """`580.95.05` as numbers that compare."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _of_another_machine(card: Accelerator) -> Obstacle:
    return Obstacle(
        f"{card.name} is set aside for a virtual machine",
        short="set aside for a virtual machine (vfio-pci)",
        why="It is bound to vfio-pci, which hands a whole card to a guest; nothing outside that guest can use it.",
        evidence=f"{card.pci}: {card.kernel_driver}",
        fix=("run selfhost inside that virtual machine",),
        id="HX006",
    )


def _not_looked_at(case: Case) -> Obstacle:
    """A card that only a tool named: neither its nodes nor its use were seen."""
    card = case.card
    reason = card.openable.reason if not isinstance(card.openable, Known) else ""
    return Obstacle(
        f"{card.name} is named by a tool, but its nodes were not seen",
        short="not looked at: its nodes were not seen",
        why=_join(f"{reason}." if reason else "", "A tool that lists a card does not prove that it can be opened."),
        fix=("look on the machine itself:\nselfhost detect",),
        id="HX009",
    )


def _not_by_us(card: Accelerator) -> Obstacle:
    return Obstacle(
        f"{card.name} can be used, but not by this version",
        short="usable, not by this version",
        why=_ONLY_NVIDIA,
        fix=(_CPU_FIRST,),
        id="HX008",
    )


def _in_containers(card: Accelerator) -> Obstacle:
    return Obstacle(
        f"{card.name} can be used, but not by a process of this version: it is cut into MIG instances",
        short="cut into MIG instances, which this version uses in containers only",
        why="A container is given one instance; processes are started on whole cards only.",
        fix=(
            "let a container have one:\nselfhost up MODEL --runtime docker",
            "or switch MIG off on the machine itself:\nsudo nvidia-smi -mig 0",
            CPU_INSTEAD,
        ),
        id="HX008",
    )


def _whole_only(card: Accelerator) -> Obstacle:
    return Obstacle(
        f"{card.name} cannot be used: it is cut into MIG instances",
        short="cut into MIG instances: this version starts engines on whole cards only",
        why="MIG is on, and this version starts engines on whole cards only.",
        fix=("switch MIG off on the machine itself:\nsudo nvidia-smi -mig 0", CPU_INSTEAD),
        id="HX005",
    )


def _opened_yet_unusable(case: Case) -> Obstacle:
    card = case.card
    usable = card.usable
    reason = usable.how if isinstance(usable, Known) else usable.reason
    head, _, said = reason.partition(": ")
    unsure = is_unsure(reason)
    return Obstacle(
        f"{card.name} opens here, and nothing shows that it computes"
        if unsure
        else f"{card.name} is granted here, but cannot be used",
        short=f"granted, cannot be used: {reason}",
        why=f"Its nodes open, but {head}.",
        evidence=said,
        fix=_BY_FLAG if _lacks_flag(case, reason) else _wake(card, reason),
        id="HX005",
    )


_UNSURE = ("cut off", "is not installed", "no KFD topology is here", "lists its instances", "listed without")


def is_unsure(reason: str) -> bool:
    """A tool is missing, was cut short or was not asked for enough: that says nothing of the card."""
    return any(word in reason for word in _UNSURE)


_DRIVER_LOG = "sudo dmesg | grep -iE 'amdgpu|kfd|i915|xe '"
_LOGGED = "sudo dmesg | grep -i -e NVRM -e Xid"
# By a word of the reason; the first that is found is taken.
_WAYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mismatch", ("the driver was updated while the old module is loaded: restart the machine",)),
    (
        "not installed",
        ("install the driver's own tools (in a container: grant the capability `utility`), then:\nnvidia-smi",),
    ),
    ("lists its instances", ("list them:\nnvidia-smi -L",)),
    ("listed without", ("list what computes in them:\nnvidia-smi -L",)),
    ("cut off", ("ask it again, whole:\nnvidia-smi -q -x",)),
    (
        "MIG",
        (
            "switch MIG off on the machine itself:\nsudo nvidia-smi -mig 0",
            "or cut the card into instances:\nsudo nvidia-smi mig -lgip",
        ),
    ),
    (VGPU_HOST.partition(":")[0], ("run engines in a virtual machine that was given one of its cards or vGPUs",)),
    (
        "no answer within",
        (f"see what the kernel logged; a card that hangs comes back with a restart of the machine:\n{_LOGGED}",),
    ),
    (
        "cannot reach",
        (f"see what the kernel logged, then switch the machine off and on again:\n{_LOGGED}",),
    ),
)


_BY_FLAG = ("start it again with the driver's own files:\napptainer exec --nv IMAGE …",)


def _lacks_flag(case: Case, reason: str) -> bool:
    """Apptainer hands in every node by itself, and the driver's programs and libraries only when asked."""
    inside = any(layer.label == "apptainer" for layer in case.host.nesting)
    return inside and case.card.vendor is Vendor.NVIDIA and "is not installed" in reason


def _wake(card: Accelerator, reason: str) -> tuple[str, ...]:
    """What brings a card back whose nodes open."""
    if card.vendor is not Vendor.NVIDIA:
        return (f"look what the kernel says about it:\n{_DRIVER_LOG}",)
    for word, ways in _WAYS:
        if word in reason:
            return ways
    return (
        "see what it says, and what the kernel logged about the card:\nnvidia-smi; sudo dmesg | grep -i -e NVRM -e Xid",
    )


def _absent(case: Case) -> Obstacle:
    card, node = case.card, case.node
    missing = node.path if node else "its device node"
    if case.layer and not (case.layer == "wsl2" and card.vendor is Vendor.NVIDIA and not card.pci):
        return Obstacle(
            f"{card.name} is in this machine, but is not granted to this {PLACE[case.layer]}",
            short=f"not granted to this {PLACE[case.layer]}",
            why=f"The bus shows it at {card.pci or 'an unknown address'}; {missing} does not exist here.",
            evidence=f"{missing}: {node.opened if node else 'ENOENT'}",
            fix=GRANTS[case.layer](case),
            id="HX301",
        )
    bare = card.vendor is Vendor.NVIDIA and not isinstance(case.host.driver, Known)
    bound = f" and is bound to {card.kernel_driver}" if bare and card.kernel_driver not in ("", "nvidia") else ""
    lacks = f"no NVIDIA driver{bound}" if bare else f"no {missing}"
    return Obstacle(
        f"{card.name} has {lacks}",
        short=lacks.replace(" and is bound", ", bound"),
        why=_why_no_node(case),
        evidence=f"{missing}: {node.opened if node else 'ENOENT'}",
        fix=_make_nodes(case),
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
    if card.vendor is not Vendor.NVIDIA and card.kernel_driver:
        return (f"look why it made none:\n{_DRIVER_LOG}",)
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


def _refused(case: Case) -> Obstacle:
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
        if card.vendor is Vendor.AMD:
            fix = (*fix, "or let a role do it:\nselfhost prepare --only amd_access")
    elif by_mode:
        fix = BY_NUMBER.get(case.layer, by_number_elsewhere)(node)
    elif case.layer:
        fix = GRANTS[case.layer](case)
    else:
        fix = ("the unit or job that started this restricts devices: allow this one there (systemd: DeviceAllow=)",)
    return Obstacle(
        f"{card.name} is here, but {node.path} may not be opened",
        short=f"{node.path} may not be opened ({node.opened})",
        why=why,
        evidence=f"{node.path}: {node.opened}",
        fix=fix,
        id="HX201" if by_mode else "HX202",
    )


def _broken(case: Case) -> Obstacle:
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
        f"{card.name} is here, but {node.path} does not open",
        short=f"{node.path} does not open ({node.opened})",
        why=hint,
        evidence=f"{node.path}: {node.opened}",
        fix=(fix,),
        id="HX203",
    )


def _join(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)
