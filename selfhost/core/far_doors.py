"""Ways to a shell elsewhere: ssh, docker, podman, kubectl."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.far_reasons import closed
from selfhost.core.far_shell import FarShell, ShellGone, ShellSilent
from selfhost.core.remote import RemoteSystem

_OPEN_S = 20.0
# No question is asked, nothing of ours goes along: ssh_config(5).
_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ClearAllForwardings=yes")
_SSH_MORE = ("-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "PermitLocalCommand=no")
_SHELL = ("sh",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """`argv` ends with the shell. `kind` is ssh, docker, podman or pod."""

    kind: str
    name: str
    argv: tuple[str, ...]


def ssh(target: str) -> Door:
    return Door(kind="ssh", name=target, argv=(*_SSH, *_SSH_MORE, "--", target, *_SHELL))


def container(engine: str, name: str) -> Door:
    return Door(kind=engine, name=name, argv=(engine, "exec", "-i", name, *_SHELL))


def pod(name: str) -> Door:
    """`name` may be NAMESPACE/NAME."""
    space, _, own = name.rpartition("/")
    chosen = ("-n", space) if space else ()
    return Door(kind="pod", name=name, argv=("kubectl", "exec", *chosen, "-i", own, "--", *_SHELL))


def over(outer: Door, inner: Door) -> Door:
    """A container on a machine that ssh reaches."""
    return Door(kind=inner.kind, name=inner.name, argv=(*outer.argv[:-1], shlex.join(inner.argv)))


def through(door: Door, env: Mapping[str, str]) -> RemoteSystem:
    """Raises EnvironmentMissing."""
    return RemoteSystem(opener(door, env))


def opener(door: Door, env: Mapping[str, str]) -> Callable[[], FarShell]:
    def open_shell() -> FarShell:
        try:
            return FarShell(door.argv, env=env, timeout_s=_OPEN_S)
        except FileNotFoundError:
            raise EnvironmentMissing(
                f"`{door.argv[0]}` is not installed here",
                why=f"It is the way to {door.name}.",
                fix=("install it, or save a snapshot there and name that:\nselfhost detect --save machine.json",),
                id="HX114",
            ) from None
        except (ShellGone, ShellSilent) as error:
            said = error.said if isinstance(error, ShellGone) else f"no answer within {_OPEN_S:.0f} s\n{error.stderr}"
            raise closed(door.kind, door.name, door.argv, said.strip()) from None

    return open_shell
