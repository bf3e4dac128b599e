"""WSL2: one device for all cards, and limits that Linux alone does not have."""

from collections.abc import Iterator

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility import paste
from selfhost.visibility.allocation import nvidia_nodes
from selfhost.visibility.engine_size import processes, value_of
from selfhost.visibility.images import engine_of
from selfhost.visibility.nodes import cards, handed_in
from selfhost.visibility.paste_options import options
from selfhost.visibility.rule import Found, place, rule

WSL = "https://docs.nvidia.com/cuda/wsl-user-guide/#known-limitations-for-linux-cuda-applications"
_PINNED = ("--cpu-offload-gb", "--swap-space", "--kv-offloading-size", "--hicache-size")


def is_wsl(host: Host | None) -> bool:
    return host is not None and (
        any(layer.label.lower().startswith("wsl") for layer in host.nesting) or "microsoft" in host.kernel.lower()
    )


@rule("DV073", Severity.ERROR, source=WSL)
def beyond_wsl(workload: Workload, host: Host | None) -> Iterator[Found]:
    if not is_wsl(host) or workload.pod is not None:
        return
    nodes = [(path, key) for path, key in handed_in(workload) if path.startswith("/dev/nvidia")]
    if nodes or dict(nvidia_nodes(workload)):
        yield Found(
            title=f"{workload.label} asks for {nodes[0][0]}, which WSL2 does not have",
            place=place(workload, nodes[0][1] or "devices"),
            evidence=f"{nodes[0][0]} in its devices",
            why="In WSL2 every card is reached through /dev/dxg, and the driver is Windows' own.",
            fix=(f"let the toolkit bring it in, and remove the nodes:\n{paste.all_cards(workload)}",),
        )
    if engine_of(workload) is None or not cards(host, Vendor.NVIDIA):
        return
    count = processes(workload)
    if count > 1:
        yield Found(
            title=f"{workload.label} spreads over {count} cards under WSL2",
            place=place(workload),
            evidence=f"tensor × pipeline × data = {count}",
            why="WSL2 has no way between cards and little memory that stays in place: NCCL fails or hangs.",
            fix=(
                "use one card here, or run on Linux itself",
                f"to try all the same:\n{options(workload, ('-e', 'NCCL_P2P_DISABLE=1'))}",
            ),
        )
    pinned = [name for name in _PINNED if (value_of(workload.argv, (name,)) or "0") not in ("0", "0.0")]
    if pinned:
        yield Found(
            title=f"{pinned[0]} needs memory that WSL2 does not pin",
            place=place(workload),
            evidence=f"{pinned[0]} {value_of(workload.argv, (pinned[0],))}",
            why="Windows caps memory that is pinned for a card, far below what is free: `CUDA error: out of memory` "
            "with most of the card empty.",
            fix=(f"remove {pinned[0]}",),
            severity=Severity.WARNING,
        )
