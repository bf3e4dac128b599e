"""A Compose file (and what it extends, includes and is overridden by) → one Workload per service."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from selfhost.core.tree import Tree, as_written
from selfhost.shapes.workload import ContainerEngine, EnvSource, Form, Spot, Workload
from selfhost.visibility.files import Files
from selfhost.visibility.readers.compose_command import words
from selfhost.visibility.readers.compose_devices import deploy, devices, gpus
from selfhost.visibility.readers.compose_life import TAKERS as LIFE
from selfhost.visibility.readers.compose_life import named_volumes, network
from selfhost.visibility.readers.compose_merge import by_name
from selfhost.visibility.readers.compose_mounts import ports, tmpfs, volumes
from selfhost.visibility.readers.compose_project import Project, Service, services
from selfhost.visibility.readers.dotenv import entries, raw_entries
from selfhost.visibility.readers.kinds import check_service
from selfhost.visibility.readers.placed import Placed
from selfhost.visibility.readers.run import filled, image_of
from selfhost.visibility.readers.words import Piece, Word

Taker = Callable[[Placed, Tree, Project], None]


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """Every service that is a container. Raises InputError for what Compose would refuse."""
    project, found = services(text, path=path, files=files)
    return tuple(_workload(service, project) for service in found if service.tree.at("provider") is None)


def _workload(service: Service, project: Project) -> Workload:
    tree = service.tree
    check_service(tree)
    draft = Placed(files=project.files, own=project.path)
    draft.at["name"] = service.spot
    draft.opaque += [f"extends {name}" for name in service.missing]
    if tree.at("build") is not None and set(tree.map or {}) <= _RECIPE:
        draft.opaque.append("how it is run, for here it is only built")
    for key, taker in _TAKERS.items():
        value = tree.at(key)
        if value is not None and not value.is_null:
            taker(draft, value, project)
    for key, spot_key in _KEYS.items():
        if tree.at(key) is not None:
            draft.at.setdefault(spot_key, project.spot_of(tree.key_spot(key)))
    draft.mounts = named_volumes(draft.mounts, project)
    if "network" not in draft.single:
        draft.single["network"] = network(tree, project)
    podman = project.podman or any(key.startswith("x-podman") for key in tree.map or {})
    argv, spots = words(tree.at("command"), project)
    entrypoint, entry_spots = words(tree.at("entrypoint"), project)
    draft.at |= {f"argv.{number}": spot for number, spot in enumerate(spots or [])}
    if entry_spots:
        draft.at["entrypoint"] = entry_spots[0]
    said = Workload(
        name=service.name,
        argv=argv or (),
        path=project.path,
        form=Form.COMPOSE,
        container_engine=ContainerEngine.UNKNOWN if podman else ContainerEngine.DOCKER,
        image=_image(draft, tree.at("image"), project),
    )
    return replace(filled(said, draft), entrypoint=entrypoint, restart=_restart(tree))


def _image(draft: Placed, tree: Tree | None, project: Project) -> str:
    """As far as it is certain; see `run.image_of`."""
    if tree is None or not tree.is_scalar or tree.is_null:
        return ""
    draft.at["image"] = project.spot(tree)
    if not tree.unknown:
        return tree.text
    known, _, rest = tree.text.partition("${")
    word = Word(tree.text, tree.line, dynamic=True)
    word.add(known, quoted=True)
    word.pieces.append(Piece(kind="variable", text=f"${{{rest}"))
    return image_of(word)


def _environment(draft: Placed, tree: Tree, project: Project) -> None:
    listed = by_name(tree)
    for name, value in listed.items():
        if value.is_null:
            spot = project.spot_of(listed.key_spot(name))
            draft.variable(name, None, spot, EnvSource.PASSED_THROUGH)
        elif value.is_scalar:
            draft.variable_of(name, value)


def _env_file(draft: Placed, tree: Tree, project: Project) -> None:
    for entry in tree.elements() if tree.list is not None else (tree,):
        named = entry if entry.is_scalar else entry.at("path")
        if named is None or not named.text:
            continue
        place = project.beside(named, named.text)
        text = None if named.unknown else project.files.text(place)
        draft.env_files.append(place if place.startswith("/") else named.text)
        if text is None:
            draft.opaque.append(f"--env-file {named.text}")
            continue
        raw = entry.said("format") == "raw"
        for found in raw_entries(text) if raw else entries(text, {}):
            spot = Spot(line=found.line, path=project.shown(place))
            if found.value is None:
                draft.variable(found.name, None, spot, EnvSource.PASSED_THROUGH)
            elif found.value.unknown:
                draft.variable(found.name, None, spot, EnvSource.REFERENCE)
            else:
                draft.variable(found.name, found.value.text, spot, EnvSource.ENV_FILE)


def _privileged(draft: Placed, tree: Tree, project: Project) -> None:
    if tree.unknown:
        draft.opaque.append("--privileged")
        return
    draft.privileged = tree.yes()
    draft.at["privileged"] = project.spot(tree)


def _as_option(name: str) -> Taker:
    def take(draft: Placed, tree: Tree, project: Project) -> None:
        del project
        draft.options(name, tree)

    return take


def _restart(tree: Tree) -> str:
    """Its own word, else the policy below `deploy`, which Compose obeys too."""
    said = tree.at("restart")
    if said is not None and not said.is_null:
        return as_written(said)
    condition = tree.at("deploy", "restart_policy")
    if condition is None or condition.map is None:
        return ""
    return {"none": "no", "on-failure": "on-failure"}.get(condition.said("condition"), "always")


_TAKERS: Final[dict[str, Taker]] = {
    "env_file": _env_file,
    "environment": _environment,
    "gpus": gpus,
    "deploy": deploy,
    "devices": devices,
    "runtime": _as_option("runtime"),
    "privileged": _privileged,
    "user": _as_option("user"),
    "group_add": _as_option("group-add"),
    "cap_add": _as_option("cap-add"),
    "cap_drop": _as_option("cap-drop"),
    "security_opt": _as_option("security-opt"),
    "device_cgroup_rules": _as_option("device-cgroup-rule"),
    "ipc": _as_option("ipc"),
    "pid": _as_option("pid"),
    "userns_mode": _as_option("userns"),
    "network_mode": _as_option("network"),
    "shm_size": _as_option("shm-size"),
    "volumes": volumes,
    "tmpfs": tmpfs,
    "ports": ports,
    **LIFE,
}
"""By the key of a service; variables of a file come first, for those of the service win."""

_RECIPE: Final = frozenset(("build", "image", "extends", "profiles", "platform", "labels", "pull_policy"))
"""Keys of a service in a file that only builds images: nothing here says how one is run."""

_KEYS: Final = {
    "command": "argv",
    "entrypoint": "entrypoint",
    "environment": "env",
    "env_file": "env_file",
    "gpus": "requests",
    "deploy": "requests",
    "devices": "devices",
    "group_add": "group_add",
    "cap_add": "cap_add",
    "cap_drop": "cap_drop",
    "security_opt": "security_opt",
    "volumes": "mounts",
    "ports": "publish",
    "restart": "restart",
    "image": "image",
}
"""Where a whole list stands: the key in the file, and the key of its spot."""
