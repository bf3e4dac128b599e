"""Why no shell opened elsewhere, in words. Pure."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from selfhost.core.errors import EnvironmentMissing


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """`on` names the kinds of way it counts for, empty: all. `says` is looked for in what the way's program wrote."""

    says: str
    what: str
    why: str
    fix: str
    id: str
    on: tuple[str, ...] = ()


_ENGINES = ("docker", "podman")
# In the words of OpenSSH (ssh.c, sshconnect.c, sshconnect2.c), Docker and Podman (daemon/exec.go, libpod), the runtimes
# below them (runc, crun) and kubectl. The first that is found counts.
_REASONS: Sequence[Reason] = (
    Reason(
        on=("ssh",),
        says="Host key verification failed",
        what="{name} cannot be told for what it claims to be",
        why="Its host key is not among the known ones, and nothing is asked here.",
        fix="look at its key once:\nssh {name} true",
        id="HX110",
    ),
    Reason(
        on=("ssh",),
        says=r"Permission denied \(|Too many authentication failures",
        what="{name} lets nobody in with the keys of this user",
        why="No key was accepted; a password is not asked for.",
        fix="let a key in once:\nssh-copy-id {name}",
        id="HX110",
    ),
    Reason(
        on=("ssh",),
        says="Could not resolve hostname",
        what="{name} has no address",
        why="Nobody whom this machine asks for addresses knows the name.",
        fix="name it by its address, or in ~/.ssh/config",
        id="HX110",
    ),
    Reason(
        on=("ssh",),
        says="Connection refused",
        what="{name} refuses the connection",
        why="Nothing listens on its ssh port.",
        fix="start its ssh server; another port is named so:\nselfhost detect --host ssh://user@machine:2222",
        id="HX110",
    ),
    Reason(
        on=("ssh",),
        says="timed out|No route to host|Network is unreachable|no answer within",
        what="{name} does not answer",
        why="It is off, or a firewall stands between.",
        fix="try by hand:\nssh {name} true",
        id="HX110",
    ),
    Reason(
        says=r"permission denied[^\n]{0,120}\.sock|\.sock[^\n]{0,120}permission denied",
        what="{kind} cannot be asked for {name}",
        why="This user may not open the engine's socket.",
        fix="join its group and log in again:\nsudo usermod -aG docker $USER",
        id="HX114",
        on=_ENGINES,
    ),
    Reason(
        says="(?i)cannot connect to|is the docker daemon running|dial unix|dial tcp",
        what="{kind} does not answer",
        why="Its daemon is not running, so nobody can be let into {name}.",
        fix="start it:\nsudo systemctl start {kind}",
        id="HX114",
        on=_ENGINES,
    ),
    Reason(
        on=("pod",),
        says="executable file not found|no such file or directory|command terminated with exit code 12[67]",
        what="{name} has no shell",
        why="Its image holds no `sh`, and looking goes through one.",
        fix="attach a container that has one:\nkubectl debug -it {name} --image=busybox",
        id="HX112",
    ),
    Reason(
        on=("pod",),
        says=r"(?i)\bnot ?found\b",
        what="the cluster has no pod {name}",
        why="kubectl knows none by that name in this namespace.",
        fix="list what runs, and name it as pod/NAMESPACE/NAME:\nkubectl get pods -A",
        id="HX113",
    ),
    Reason(
        on=("pod",),
        says="",
        what="pod {name} lets nobody in",
        why="kubectl opened no shell there.",
        fix="try by hand:\n{argv}",
        id="HX113",
    ),
    Reason(
        on=_ENGINES,
        says="(?i)no such (container|object)|no container with (name|id)",
        what="{kind} has no container {name}",
        why="It knows none by that name, running or not.",
        fix="list what runs:\n{kind} ps",
        id="HX111",
    ),
    Reason(
        on=_ENGINES,
        says="(?i)is not running|exec sessions on running|container state improper|is paused",
        what="container {name} does not run",
        why="Only inside a running container is there something to see.",
        fix="start it:\n{kind} start {name}",
        id="HX111",
    ),
    Reason(
        on=_ENGINES,
        says="executable file not found|no such file or directory",
        what="container {name} has no shell",
        why="Its image holds no `sh`, and looking goes through one.",
        fix="look at it from the machine:\nselfhost detect",
        id="HX112",
    ),
    Reason(
        on=_ENGINES,
        says="",
        what="container {name} lets nobody in",
        why="{kind} opened no shell there.",
        fix="try by hand:\n{argv}",
        id="HX111",
    ),
    Reason(
        on=("ssh",),
        says="not found|No such file",
        what="{name} has no shell",
        why="Looking goes through `sh`.",
        fix="try by hand:\n{argv}",
        id="HX112",
    ),
    Reason(
        says="",
        what="{name} lets nobody in",
        why="No shell opened there.",
        fix="try by hand:\n{argv}",
        id="HX110",
    ),
)


def closed(kind: str, name: str, argv: Sequence[str], said: str) -> EnvironmentMissing:
    """`kind` is ssh, docker, podman or pod; `said` what the program on the way wrote."""
    # Over ssh to a container both may have failed: ssh's own words say that it was the way there.
    kinds = (
        (kind, "ssh") if argv[0] == "ssh" and re.search(r"(?m)^(ssh: |\S+: Permission denied \()", said) else (kind,)
    )
    reason = next(one for one in _REASONS if (not one.on or set(kinds) & set(one.on)) and re.search(one.says, said))
    words = {"name": name, "kind": kind, "argv": shlex.join(argv)}
    return EnvironmentMissing(
        reason.what.format(**words),
        why=reason.why.format(**words),
        evidence=said,
        fix=(reason.fix.format(**words),),
        id=reason.id,
    )
