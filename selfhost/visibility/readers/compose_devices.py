"""Devices of a Compose service: `gpus`, reservations under `deploy`, and `devices` with CDI names among them."""

import re
from typing import Final

from selfhost.core.tree import Tree, as_written
from selfhost.shapes.workload import DeviceRequest
from selfhost.visibility.readers.compose_project import Project
from selfhost.visibility.readers.draft import device
from selfhost.visibility.readers.placed import Placed
from selfhost.visibility.readers.words import Word

_COUNT = re.compile(r"-?\d{1,9}\Z")
_FIELDS: Final = {"driver": "driver", "count": "count", "device_ids": "ids", "capabilities": "capabilities"}
"""A field in the file, and in the key of its spot."""


def gpus(draft: Placed, tree: Tree, project: Project) -> None:
    """`all`, or a list of requests."""
    del project
    if tree.list is not None:
        for element in tree.list:
            _request(draft, element, "gpus")
    elif tree.unknown:
        draft.opaque.append("--gpus")
    elif tree.is_scalar:
        key = f"requests.{len(draft.requests)}"
        draft.requests.append(DeviceRequest(count=_count(as_written(tree)), spelling="gpus", key=key))
        draft.mark_tree(key, tree)
        draft.mark_tree(f"{key}.count", tree)


def deploy(draft: Placed, tree: Tree, project: Project) -> None:
    del project
    reserved = tree.at("resources", "reservations", "devices")
    for element in reserved.elements() if reserved is not None else ():
        _request(draft, element, "deploy")


def devices(draft: Placed, tree: Tree, project: Project) -> None:
    """`/dev/x[:/dev/y[:rwm]]`, a CDI name, or a map of source and target."""
    del project
    for element in tree.elements():
        if element.map is None:
            draft.option("device", element)
            continue
        source, target = element.at("source"), element.said("target")
        if source is None or not source.text:
            continue
        draft.option("device", source, source.text if "=" in source.text or not target else f"{source.text}:{target}")


def _request(draft: Placed, tree: Tree, spelling: str) -> None:
    if tree.map is None:
        return
    count = tree.at("count")
    if count is not None and count.unknown:
        draft.opaque.append("--gpus")
        return
    key = f"requests.{len(draft.requests)}"
    ids = _texts(tree.at("device_ids"))
    request = DeviceRequest(
        driver=tree.said("driver"),
        count=_count(as_written(count)) if count is not None else None,
        ids=ids,
        capabilities=_capabilities(tree, spelling),
        spelling=spelling,
        key=key,
    )
    draft.requests.append(request)
    draft.mark_tree(key, tree)
    for field, name in _FIELDS.items():
        value = tree.at(field)
        if value is not None:
            draft.mark_tree(f"{key}.{name}", value)
    if request.driver == "cdi":
        _cdi(draft, tree)


def _cdi(draft: Placed, tree: Tree) -> None:
    """Names that the driver `cdi` is handed are CDI devices as those under `devices`."""
    names = tree.at("device_ids")
    for element in names.elements() if names is not None else ():
        if element.is_scalar and "=" in element.text and not element.text.startswith("/"):
            draft.place = element.path
            device(draft, element.text, Word(element.text, element.line, column=element.column))


def _capabilities(tree: Tree, spelling: str) -> tuple[str, ...] | None:
    said = tree.at("capabilities")
    if said is None or said.is_null:
        return ("gpu",) if spelling == "gpus" else None
    found = _texts(said)
    return (*found, "gpu") if spelling == "gpus" and "gpu" not in found else found


def _texts(tree: Tree | None) -> tuple[str, ...]:
    """Of a list, of lists in it, or of a single text."""
    if tree is None or tree.is_null or tree.map is not None:
        return ()
    if tree.list is None:
        return (as_written(tree),)
    return tuple(text for element in tree.list for text in _texts(element))


def _count(text: str) -> int | None:
    if text == "all":
        return -1
    return int(text) if _COUNT.match(text) else None
