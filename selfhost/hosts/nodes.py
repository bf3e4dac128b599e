"""Device nodes: the only truth about what a process was granted is what opening says."""

from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.shapes.host import DeviceNode, Fact, Known, Unknown


def tried(system: System, path: str) -> DeviceNode:
    """Open `path` for reading and writing; the answer comes with mode and group number for whoever must change it."""
    opened = system.try_open(path)
    try:
        seen = system.stat(path)
    except OSError:
        return DeviceNode(path=path, opened=opened)
    if opened == "ok" and seen.kind == "f":
        # `create=file` bind lines leave an empty file where the host had no node at the container's start.
        return DeviceNode(path=path, opened="ENODEV", mode=seen.mode, gid=seen.gid)
    return DeviceNode(path=path, opened=opened, mode=seen.mode, gid=seen.gid)


def openable(nodes: Sequence[DeviceNode]) -> Fact[bool]:
    """True when every node opened; else the first that did not, by name."""
    if not nodes:
        return Unknown("no device node is known for it")
    refused = next((node for node in nodes if node.opened != "ok"), None)
    if refused is None:
        return Known(value=True, how=f"opened {' '.join(node.path for node in nodes)}")
    return Known(value=False, how=f"{refused.path}: {refused.opened}")
