"""Through which eyes a command looks: this machine, a snapshot, another machine, a container, a pod."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from selfhost.cli._context import Invocation
from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.system import System

if TYPE_CHECKING:
    from selfhost.core.far_doors import Door
    from selfhost.shapes.host import Host

_MACHINE = re.compile(r"ssh://[^\s-]\S*|[\w.][\w.-]*@[\w.\[:][\w.:\]%-]*")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_POD = re.compile(r"(?:[a-z0-9][a-z0-9.-]*/)?[a-z0-9][a-z0-9.-]*")
_FORMS = "docker:NAME, podman:NAME, pod/NAME, pod/NAMESPACE/NAME, or a container's NAME"


def eyes(at_work: Invocation, *, host: str | None, inside: str | None) -> System:
    """`host` is a snapshot's file or `user@machine`, `inside` a container or a pod there.

    Raises InputError for what is none of these, EnvironmentMissing when there is no way in.
    """
    if host is None and inside is None:
        return at_work.system
    is_file = host is not None and (Path(host).exists() or not _MACHINE.fullmatch(host))
    if is_file:
        if inside is not None:
            raise InputError(
                f"--inside {inside} cannot be looked into: {host} is a snapshot",
                why="A snapshot holds one place; inside a container of it is another.",
                fix=(f"save a snapshot of that container:\nselfhost detect --inside {inside} --save inside.json",),
                id="CF097",
            )
        from selfhost.core.recorded import Recorded  # at use: most runs look at this machine

        return Recorded.load(str(host))
    return _elsewhere(at_work, host, inside)


def facts_of(at_work: Invocation, host: str | None, *, wide: bool = False) -> "Host | None":
    """The machine that `--host` names, looked at; None is the one that this runs on. Raises as `eyes` does.

    `wide`: with what is around it, such as the nodes of a cluster that a snapshot holds.
    """
    if host is None:
        return None
    from selfhost.cli._service import refuse_address
    from selfhost.hosts.detect import detect, with_links

    refuse_address(host)
    system = eyes(at_work, host=host, inside=None)
    return with_links(detect(system, wide=wide), system)


def _elsewhere(at_work: Invocation, host: str | None, inside: str | None) -> System:
    from selfhost.core import far_doors

    if inside is None:
        return far_doors.through(far_doors.ssh(str(host)), at_work.env)
    refused: list[EnvironmentMissing] = []
    for inner in _doors(inside):
        door = inner if host is None else far_doors.over(far_doors.ssh(host), inner)
        try:
            return far_doors.through(door, at_work.env)
        except EnvironmentMissing as error:
            refused.append(error)
    # A container that is there but lets nobody in tells more than the engine that does not know it.
    raise next((error for error in refused if error.id == "HX112"), None) or _nowhere(inside, refused)


def _doors(inside: str) -> "tuple[Door, ...]":
    """A bare name is one of docker, or else of podman."""
    from selfhost.core import far_doors

    kind, _, name = inside.partition(":")
    if kind in ("docker", "podman") and _NAME.fullmatch(name):
        return (far_doors.container(kind, name),)
    if inside.startswith("pod/") and _POD.fullmatch(inside.removeprefix("pod/")):
        return (far_doors.pod(inside.removeprefix("pod/")),)
    if _NAME.fullmatch(inside):
        return far_doors.container("docker", inside), far_doors.container("podman", inside)
    raise InputError(
        f"--inside {inside} names neither a container nor a pod",
        why=f"It takes {_FORMS}.",
        fix=("list what runs:\ndocker ps",),
        id="CF096",
    )


def _nowhere(inside: str, refused: list[EnvironmentMissing]) -> EnvironmentMissing:
    if len(refused) == 1:
        return refused[0]
    return EnvironmentMissing(
        f"no running container here is called {inside}",
        why="Neither docker nor podman has one that lets us in.",
        evidence="\n".join(
            f"{error.what}: {error.evidence.splitlines()[0] if error.evidence else error.why}" for error in refused
        ),
        fix=("list what runs:\ndocker ps\npodman ps", "for a pod of a cluster:\nselfhost detect --inside pod/NAME"),
        id="HX111",
    )
