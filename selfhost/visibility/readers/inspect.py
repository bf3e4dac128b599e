"""What `docker inspect` or `podman inspect` prints of a container → the Workload that it is."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from selfhost.core.tree import Tree, as_written
from selfhost.core.yaml import documents
from selfhost.shapes.workload import ContainerEngine, DeviceRequest, Form, Mount, Workload
from selfhost.visibility.files import NO_FILES, Files
from selfhost.visibility.readers.draft import device
from selfhost.visibility.readers.inspect_life import inspected, restart_of
from selfhost.visibility.readers.placed import Placed
from selfhost.visibility.readers.run import filled, from_call
from selfhost.visibility.readers.script import Call
from selfhost.visibility.readers.sizes import size_bytes
from selfhost.visibility.readers.words import Word

_OF_PODMAN: Final = ("ConmonPidFile", "OCIRuntime", "OCIConfigPath", "BoundingCaps")
_ROOTLESS = re.compile(r"/run/user/\d+/|/home/[^/]+/\.local/share/containers/")
_LISTS: Final = {
    "GroupAdd": "group-add",
    "CapAdd": "cap-add",
    "CapDrop": "cap-drop",
    "SecurityOpt": "security-opt",
    "DeviceCgroupRules": "device-cgroup-rule",
}
_SINGLE: Final = {"IpcMode": "ipc", "PidMode": "pid", "NetworkMode": "network", "UsernsMode": "userns"}


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """Every container of a list, or the only one. An image's or a volume's description holds none."""
    del files
    found = []
    for document in documents(text, path=path):
        for entry in document.elements() if document.list is not None else (document,):
            host, config = entry.at("HostConfig"), entry.at("Config")
            if host is not None and host.map is not None and config is not None and config.map is not None:
                found.append(_workload(entry, host, config, path))
    return tuple(found)


def _workload(entry: Tree, host: Tree, config: Tree, path: str) -> Workload:
    draft = Placed(files=NO_FILES, own=path)
    name = entry.at("Name")
    draft.mark_tree("name", name if name is not None and name.text else entry)
    podman = any(entry.at(key) is not None for key in _OF_PODMAN)
    for key, option in _LISTS.items():
        if (listed := host.at(key)) is not None and not listed.is_null:
            draft.mark_spot(option.replace("-", "_"), host.key_spot(key))
            draft.options(option, listed)
    for key, option in _SINGLE.items():
        value = host.at(key)
        if value is not None and host.said(key):
            draft.option(option, value)
    _environment(draft, config)
    _limits(draft, host, config)
    _requests(draft, host)
    _devices(draft, host)
    _mounts(draft, entry, host)
    inspected(draft, host, config)
    argv = _words(draft, config, "Cmd", "argv")
    image = config.at("Image")
    if image is not None:
        draft.mark_tree("image", image)
    said = Workload(
        name=entry.said("Name").lstrip("/") or entry.said("Id")[:12] or "container",
        argv=argv or (),
        path=path,
        form=Form.INSPECT,
        container_engine=ContainerEngine.PODMAN if podman else ContainerEngine.DOCKER,
        image=_image(entry, config),
        rootless=_rootless(entry) if podman else None,
    )
    entrypoint = _words(draft, config, "Entrypoint", "entrypoint")
    result = replace(
        filled(said, draft),
        entrypoint=entrypoint,
        runtime=_runtime(draft, entry, host, podman=podman),
        restart=restart_of(host),
        ports=tuple(_ports(host)),
        init=host.yes("Init"),
        read_only=host.yes("ReadonlyRootfs"),
    )
    return _as_created(result, config, path) if podman else result


def _environment(draft: Placed, config: Tree) -> None:
    listed = config.at("Env")
    if listed is None:
        return
    draft.mark_spot("env", config.key_spot("Env"))
    for element in listed.elements():
        name, equals, value = element.text.partition("=")
        if name and equals:
            draft.variable(name, value, element.spot)
            draft.mark_tree(f"env.{name}", element)


def _limits(draft: Placed, host: Tree, config: Tree) -> None:
    privileged, size, user = host.at("Privileged"), host.at("ShmSize"), config.at("User")
    if privileged is not None:
        draft.privileged = privileged.yes()
        draft.mark_tree("privileged", privileged)
    if size is not None and not size.is_null:
        draft.shm_bytes = size_bytes(as_written(size))
        draft.mark_tree("shm_size", size)
    if user is not None and user.text:
        draft.option("user", user)


def _requests(draft: Placed, host: Tree) -> None:
    """A count of 0 beside ids is Docker's way to say none."""
    listed = host.at("DeviceRequests")
    if listed is None or listed.is_null:
        return
    draft.mark_spot("requests", host.key_spot("DeviceRequests"))
    for element in listed.elements():
        ids, count = _texts(element.at("DeviceIDs")), element.at("Count")
        number = count.scalar if count is not None and not count.is_null else None
        key = f"requests.{len(draft.requests)}"
        request = DeviceRequest(
            driver=element.said("Driver"),
            count=None if (ids and not number) or not isinstance(number, int) else int(number),
            ids=ids,
            capabilities=_texts(element.at("Capabilities")),
            spelling="DeviceRequests",
            key=key,
        )
        draft.requests.append(request)
        draft.mark_tree(key, element)
        for field, name in (("Driver", "driver"), ("Count", "count"), ("DeviceIDs", "ids")):
            value = element.at(field)
            if value is not None:
                draft.mark_tree(f"{key}.{name}", value)
        names = element.at("DeviceIDs")
        if request.driver == "cdi" and names is not None:
            for name_tree in names.elements():
                draft.place = name_tree.path
                device(draft, name_tree.text, Word(name_tree.text, name_tree.line, column=name_tree.column))


def _devices(draft: Placed, host: Tree) -> None:
    listed = host.at("Devices")
    if listed is None or listed.is_null:
        return
    draft.mark_spot("devices", host.key_spot("Devices"))
    for element in listed.elements():
        source, target = element.at("PathOnHost"), element.said("PathInContainer")
        if source is not None and source.text:
            draft.option("device", source, f"{source.text}:{target}" if target else source.text)


def _mounts(draft: Placed, entry: Tree, host: Tree) -> None:
    mounted, binds, tmpfs = entry.at("Mounts"), host.at("Binds"), host.at("Tmpfs")
    for element in mounted.elements() if mounted is not None else ():
        key = f"mounts.{len(draft.mounts)}"
        read_write = element.at("RW")
        draft.mounts.append(
            Mount(
                target=element.said("Destination"),
                source=element.said("Name") or element.said("Source"),
                kind=element.said("Type") or "volume",
                read_only=read_write is not None and not read_write.yes(),
                key=key,
            )
        )
        draft.mark_tree(key, element)
    if not draft.mounts and binds is not None and not binds.is_null:
        draft.options("volume", binds)
    for target, flags in tmpfs.items() if tmpfs is not None else ():
        draft.option("tmpfs", flags, f"{target}:{flags.text}")


def _words(draft: Placed, config: Tree, name: str, key: str) -> tuple[str, ...] | None:
    """A list; of an older podman one text."""
    said = config.at(name)
    if said is None or said.is_null or said.map is not None:
        return None
    draft.mark_spot(key, config.key_spot(name))
    if said.list is None:
        try:
            return tuple(shlex.split(said.text)) or None
        except ValueError:
            return (said.text,)
    for number, element in enumerate(said.list):
        draft.mark_tree(f"{key}.{number}", element)
    return tuple(element.text for element in said.list)


def _texts(tree: Tree | None) -> tuple[str, ...]:
    """Of a list, or of lists in a list."""
    if tree is None or tree.is_null:
        return ()
    return (tree.text,) if tree.list is None else tuple(text for element in tree.list for text in _texts(element))


def _image(entry: Tree, config: Tree) -> str:
    return config.said("Image") or entry.said("ImageName")


def _runtime(draft: Placed, entry: Tree, host: Tree, *, podman: bool) -> str:
    """Podman calls every runtime `oci` there, and names it beside."""
    value = entry.at("OCIRuntime") if podman else host.at("Runtime")
    if value is None or not value.text:
        return ""
    draft.mark_tree("runtime", value)
    return value.text


def _ports(host: Tree) -> Iterator[str]:
    bindings = host.at("PortBindings")
    for inner, listed in bindings.items() if bindings is not None else ():
        for binding in listed.elements():
            parts = (binding.said("HostIp"), binding.said("HostPort"), inner)
            yield ":".join(part for part in parts if part)


def _rootless(entry: Tree) -> bool | None:
    """By where podman keeps the container; None where it does not say."""
    places = " ".join(entry.said(key) for key in ("ConmonPidFile", "PidFile", "StaticDir", "OCIConfigPath"))
    if not places.strip():
        return None
    return bool(_ROOTLESS.search(places))


def _as_created(workload: Workload, config: Tree, path: str) -> Workload:
    """Podman shows the nodes that a CDI name stood for; the names are in the command that made the container."""
    listed = config.at("CreateCommand")
    words = [Word(each.text, each.line, column=each.column) for each in listed.elements()] if listed is not None else []
    created = from_call(Call(words=words), path=path, files=NO_FILES) if words else None
    if created is None:
        return workload
    named = {device.source for device in created.devices}
    keeps = tuple(group for group in created.group_add if group == "keep-groups" and group not in workload.group_add)
    spots = {key: spot for key, spot in created.at.items() if key.startswith("cdi.")}
    return replace(
        workload,
        cdi=created.cdi or workload.cdi,
        devices=tuple(each for each in workload.devices if not created.cdi or each.source in named),
        group_add=(*workload.group_add, *keeps),
        hooks_dirs=created.hooks_dirs,
        at={**workload.at, **spots},
    )
