"""Whether a value is of the kind that its key takes: where it is not, the whole file is refused, so it must be said."""

from collections.abc import Iterator, Mapping
from typing import Final

from selfhost.core.errors import InputError
from selfhost.core.tree import Tree
from selfhost.shapes.finding import Place

TEXT, LIST, MAP = "a text", "a list", "a map"
Kinds = Mapping[str, tuple[str, ...]]

COMPOSE: Final[Kinds] = {
    "image": (TEXT,),
    "command": (TEXT, LIST),
    "entrypoint": (TEXT, LIST),
    "environment": (LIST, MAP),
    "env_file": (TEXT, LIST),
    "gpus": (TEXT, LIST),
    "deploy": (MAP,),
    "devices": (LIST,),
    "volumes": (LIST,),
    "ports": (LIST,),
    "tmpfs": (TEXT, LIST),
    "shm_size": (TEXT,),
    "runtime": (TEXT,),
    "user": (TEXT,),
    "ipc": (TEXT,),
    "privileged": (TEXT,),
}
"""Keys of a service (the Compose specification), without those that podman-compose and Compose take differently."""
RESOURCES: Final[Kinds] = {"reservations": (MAP,), "limits": (MAP,)}
RESERVATIONS: Final[Kinds] = {"devices": (LIST,)}
CONTAINER: Final[Kinds] = {
    "image": (TEXT,),
    "command": (LIST,),
    "args": (LIST,),
    "env": (LIST,),
    "envFrom": (LIST,),
    "resources": (MAP,),
    "volumeMounts": (LIST,),
    "securityContext": (MAP,),
    "ports": (LIST,),
}
"""Keys of a container in a pod (the API reference, core/v1)."""
POD: Final[Kinds] = {
    "containers": (LIST,),
    "initContainers": (LIST,),
    "volumes": (LIST,),
    "tolerations": (LIST,),
    "nodeSelector": (MAP,),
    "resourceClaims": (LIST,),
}
AMOUNTS: Final[Kinds] = {"limits": (MAP,), "requests": (MAP,), "claims": (LIST,)}


def misfits(tree: Tree | None, kinds: Kinds) -> Iterator[tuple[str, Tree, str]]:
    """Key, value and what belongs there. Nothing at all (null) is allowed everywhere."""
    for key, value in tree.items() if tree is not None else ():
        wanted = kinds.get(key)
        if wanted is not None and not value.is_null and kind_of(value) not in wanted:
            yield key, value, " or ".join(wanted)


def kind_of(tree: Tree) -> str:
    return MAP if tree.map is not None else LIST if tree.list is not None else TEXT


def check_service(service: Tree) -> None:
    """Raises InputError at the first value that Compose would refuse."""
    reserved = service.at("deploy", "resources", "reservations")
    places = ((service, COMPOSE), (service.at("deploy", "resources"), RESOURCES), (reserved, RESERVATIONS))
    for tree, kinds in places:
        for key, value, wanted in misfits(tree, kinds):
            raise InputError(
                _said(key, value, wanted),
                why="Compose refuses the file, so nothing of it starts.",
                fix=(f"write {wanted}", "see what Compose says of it:\ndocker compose config"),
                id="CF044",
                place=_place(value),
            )


def check_container(container: Tree) -> None:
    """Raises InputError at the first value that the API server would refuse."""
    _check_pod(container, CONTAINER)
    _check_pod(container.at("resources"), AMOUNTS)


def check_pod(spec: Tree) -> None:
    """As `check_container`, for what stands around the containers."""
    _check_pod(spec, POD)


def _check_pod(tree: Tree | None, kinds: Kinds) -> None:
    for key, value, wanted in misfits(tree, kinds):
        raise InputError(
            _said(key, value, wanted),
            why="The API server refuses the object, so nothing of it starts.",
            fix=(f"write {wanted}", "see what the cluster says of it:\nkubectl apply --dry-run=server -f FILE"),
            id="CF048",
            place=_place(value),
        )


def _said(key: str, value: Tree, wanted: str) -> str:
    return f"`{key}` is {kind_of(value)}; {wanted} belongs there"


def _place(value: Tree) -> Place:
    return Place(path=value.path, line=value.line, column=value.column)
