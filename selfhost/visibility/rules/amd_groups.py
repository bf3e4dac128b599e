"""AMD: whether the user of the process belongs to the groups that open the nodes."""

from collections.abc import Iterator

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import DeviceNode, Host, Vendor
from selfhost.shapes.workload import ContainerEngine, Form, Workload
from selfhost.visibility.images import vendor_of
from selfhost.visibility.nodes import (
    KFD,
    by_other_means,
    cards,
    has,
    in_a_container,
    key_of,
    render_nodes,
    rootless,
)
from selfhost.visibility.paste_options import options
from selfhost.visibility.rule import Found, place, rule

_NON_ROOT_IMAGES = ("rocm/rocm-terminal",)


def _is_root(user: str) -> bool:
    return user.partition(":")[0] in ("0", "root")


def _closed_nodes(host: Host | None) -> tuple[DeviceNode, ...]:
    """Nodes of the host's AMD cards that only root and one group may open, as udev leaves them."""
    found = {node.path: node for card in cards(host, Vendor.AMD) for node in card.nodes if node.mode}
    return tuple(node for node in found.values() if node.mode & 0o006 != 0o006)


@rule("DV042", Severity.ERROR, source="https://github.com/ROCm/ROCm-docker/issues/90")
def group_by_number(workload: Workload, host: Host | None) -> Iterator[Found]:
    if not in_a_container(workload) or by_other_means(workload, Vendor.AMD):
        return
    handed = has(workload, KFD) or (vendor_of(workload.image) is Vendor.AMD and bool(render_nodes(workload)))
    non_root = (workload.user and not _is_root(workload.user)) or (
        not workload.user and any(workload.image.startswith(name) for name in _NON_ROOT_IMAGES)
    )
    if not handed or not non_root or "keep-groups" in workload.group_add:
        return
    numbers = {group for group in workload.group_add if group.isdecimal()}
    own, _, primary = workload.user.partition(":")
    numbers |= {primary} if primary.isdecimal() and primary != own else set()  # 1000:1000 is a person's own group
    closed = _closed_nodes(host)
    if cards(host, Vendor.AMD):
        lacking = [node for node in closed if str(node.gid) not in numbers]
        if not lacking:
            return
        wanted = sorted({str(node.gid) for node in lacking})
        seen = ", ".join(f"{node.path} is group {node.gid}, mode {node.mode:04o}" for node in lacking)
    elif numbers:
        return  # some number is given; whether it is this machine's cannot be said without it
    else:
        wanted, seen = [_unknown(workload)], f"groups given: {', '.join(workload.group_add) or 'none'}"
    yield Found(
        title=f"{workload.label} runs as {workload.user or 'the user of its image'}, who may not open the AMD nodes",
        place=place(workload, "user" if workload.user else "image"),
        evidence=seen,
        why="The kernel compares numbers. A group's name is looked up inside the image, where `render` is another "
        "number or missing, so only the number of the machine's own group opens /dev/kfd and the render node.",
        fix=(
            "add the number of the group that owns them on the machine (stat -c %g /dev/kfd /dev/dri/renderD*):\n"
            + options(workload, *(("--group-add", gid) for gid in wanted)),
        ),
    )


@rule("DV043", Severity.ERROR, source="https://github.com/vllm-project/vllm/issues/34573")
def rootless_podman_drops_groups(workload: Workload, host: Host | None) -> Iterator[Found]:
    if workload.container_engine is not ContainerEngine.PODMAN or not in_a_container(workload):
        return
    if not has(workload, KFD) or "keep-groups" in workload.group_add:
        return
    if vendor_of(workload.image) is not Vendor.AMD and any(name.kind == "nvidia.com/gpu" for name in workload.cdi):
        return  # a unit for cards of several makers, which takes what is there
    without_root = rootless(workload, host)
    if without_root is False or (cards(host, Vendor.AMD) and not _closed_nodes(host)):
        return
    yield Found(
        title=f"{workload.label} would lose the groups that open /dev/kfd",
        place=place(workload, "group_add" if workload.group_add else key_of(workload, KFD)),
        evidence=f"podman, groups added: {', '.join(workload.group_add) or 'none'}",
        why="A rootless Podman starts containers without your supplementary groups, and a group that is added by name "
        "or number is mapped into its user namespace, where it opens nothing."
        + ("" if without_root else " The text does not say whether this Podman is rootless; with sudo it is not."),
        fix=(f"keep your own groups (crun does, runc does not):\n{options(workload, ('--group-add', 'keep-groups'))}",),
        severity=Severity.ERROR if without_root else Severity.WARNING,
    )


def _unknown(workload: Workload) -> str:
    """A shell can look the number up; a file can not."""
    return "$(stat -c %g /dev/kfd)" if workload.form is Form.RUN else "<the number>"
