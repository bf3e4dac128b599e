"""Volumes, tmpfs and ports of a Compose service, short and long."""

from typing import Final

from selfhost.core.tree import Tree, as_written
from selfhost.shapes.workload import Mount
from selfhost.visibility.readers.compose_project import Project
from selfhost.visibility.readers.placed import Placed
from selfhost.visibility.readers.sizes import size_bytes

_KINDS: Final = {"bind": "bind", "volume": "volume", "tmpfs": "tmpfs", "image": "image", "npipe": "bind"}


def volumes(draft: Placed, tree: Tree, project: Project) -> None:
    del project
    for element in tree.elements():
        if element.map is None:
            draft.option("volume", element)
            continue
        size = element.at("tmpfs", "size")
        key = f"mounts.{len(draft.mounts)}"
        draft.mounts.append(
            Mount(
                target=element.said("target"),
                source=element.said("source"),
                kind=_KINDS.get(element.said("type"), "volume"),
                read_only=element.yes("read_only"),
                size_bytes=size_bytes(as_written(size)) if size is not None else None,
                key=key,
            )
        )
        draft.mark_tree(key, element)


def tmpfs(draft: Placed, tree: Tree, project: Project) -> None:
    del project
    draft.options("tmpfs", tree)


def ports(draft: Placed, tree: Tree, project: Project) -> None:
    """Long ones in the words of the short: `127.0.0.1:8000:8000/tcp`."""
    del project
    for element in tree.elements():
        if element.map is None:
            draft.option("publish", element)
            continue
        parts = [part for part in (element.said("host_ip"), element.said("published"), element.said("target")) if part]
        protocol = element.said("protocol")
        target = element.at("target")
        if target is not None:
            draft.option("publish", target, ":".join(parts) + (f"/{protocol}" if protocol else ""))
