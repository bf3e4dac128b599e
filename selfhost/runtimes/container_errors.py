"""What container engines say when something is missing → what it means, why, and what to do."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from selfhost.core.errors import EnvironmentMissing
from selfhost.runtimes import containers
from selfhost.runtimes.container_client import CallFailed, Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`pattern` is looked for in the engine's words. `{kind}`, `{where}`, `{subject}` stand for what was asked."""

    id: str
    pattern: str
    what: str
    why: str
    fix: tuple[str, ...]
    kinds: tuple[str, ...] = ("docker", "podman")


_DELEGATE = """delegate them, then log in again:
sudo mkdir -p /etc/systemd/system/user@.service.d
printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf
sudo systemctl daemon-reload"""
_OTHER_RUNTIME = """try another OCI runtime:
mkdir -p ~/.config/containers
printf '[engine]\\nruntime = "runc"\\n' >> ~/.config/containers/containers.conf"""
ROWS: Sequence[Row] = (
    Row(
        id="RT060",
        pattern=r"is not installed",
        what="{kind} is not installed here",
        why="The command {kind} was not found.",
        fix=(
            "install it:\nsudo apt-get install {kind}",
            "or run the engine as a process:\nselfhost up --runtime process",
        ),
    ),
    Row(
        id="RT068",
        pattern=r"^podman .* answers at",
        what="`docker` is podman here: {text}",
        why="Its interface is like Docker's and not the same: restarts, groups and devices differ.",
        fix=("let podman run it under its own name:\nselfhost up --runtime podman",),
        kinds=("docker",),
    ),
    Row(
        id="RT067",
        pattern=r"daemon is too old|client version .* is too (new|old)|API versions? below|Minimum supported API",
        what="the Docker daemon at {where} is too old, or too new for this library",
        why="selfhost was tried with Docker 20.10 and later.",
        fix=("look at both versions:\ndocker version", "upgrade Docker:\nhttps://docs.docker.com/engine/install/"),
        kinds=("docker",),
    ),
    Row(
        id="RT064",
        pattern=r"permission denied.*(sock|daemon|dial)|PermissionError\(13|Errno 13|connect: permission denied",
        what="this user may not open the socket of {kind}: {where}",
        why="Whoever may open it is as powerful as root, so only root and the members of its group may.",
        fix=(
            "join the group and log in again:\nsudo usermod -aG docker $USER",
            "or use an engine that needs no rights:\nselfhost up --runtime podman",
        ),
    ),
    Row(
        id="RT066",
        pattern=r"ssh: |ssh command|Host key verification|dial-stdio|name resolution|Name or service not known"
        r"|Failed to resolve|No route to host|Network is unreachable|timed out.*tcp|ConnectTimeout"
        r"|certificate verify failed|SSLError",
        what="the daemon of {kind} at {where} can't be reached",
        why="It is on another machine.",
        fix=("try the connection by itself:\ndocker version", "or use the daemon here:\ndocker context use default"),
    ),
    Row(
        id="RT070",
        pattern=r"no space left on device|disk quota exceeded|not enough space",
        what="the disk of {kind} is full",
        why="Images, containers and volumes lie in the engine's own folder, and nothing more fits there.",
        fix=(
            "see what takes the room:\n{kind} system df",
            "free what no container uses (asks first):\n{kind} image prune",
        ),
    ),
    Row(
        id="RT071",
        pattern=r"cgroup controller .* (is )?not available|controller `?\w+`? is not available|cgroups?: cannot"
        r"|invalid cgroup|cgroup mode|cannot set .* limit|cgroup path.*permission|join cgroup|creating cgroup",
        what="{kind} can't make a control group for the container",
        why="A user without rights gets only the control groups that systemd delegates.",
        fix=(_DELEGATE,),
    ),
    Row(
        id="RT071",
        pattern=r"crun: .*(rlimit|cgroup)|setrlimit.*operation not permitted",
        what="{kind} can't set up the container on this machine",
        why="Its OCI runtime was refused a control group or a limit.",
        fix=(_OTHER_RUNTIME,),
    ),
    Row(
        id="RT073",
        pattern=r"could not select device driver|unresolvable CDI device|cdi device injection failed"
        r"|unknown or invalid runtime name|default OCI runtime .* not found|nvidia-container-cli|setting up CDI devices"
        r"|error gathering device information|invalid runtime",
        what="{kind} could not hand the devices into the container",
        why="The file asks for them in a way that this engine does not know, or they are gone.",
        fix=(
            "see what is in the way:\nselfhost doctor",
            "write the list of NVIDIA devices anew:\nsudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
        ),
    ),
    Row(
        id="RT074",
        pattern=r"No such image|image not known|unable to find image|no such image|initializing source",
        what="the image {subject} is not on this machine",
        why="It was removed, or never pulled.",
        fix=("bring it here:\n{kind} pull {subject}",),
    ),
    Row(
        id="RT085",
        pattern=r"bind source path does not exist|Mounts denied|statfs .*no such file|error while creating mount source"
        r"|not shared from the host|stat .*: no such file",
        what="{kind} does not find a folder that the container mounts",
        why="It looks on the machine of its daemon: a snap, Docker Desktop and a daemon elsewhere see other folders.",
        fix=("see which folder: it is in the words below; then see what the daemon sees:\n{kind} info",),
    ),
    Row(
        id="RT079",
        pattern=r"exec format error|does not match the detected host platform|image platform",
        what="the image {subject} is for another kind of processor",
        why="Its programs can't run here.",
        fix=("see for which one it was made:\n{kind} image inspect {subject} --format '{{{{.Architecture}}}}'",),
    ),
    Row(
        id="RT063",
        pattern=r"Connection refused|No such file or directory|Cannot connect|is the docker daemon running"
        r"|FileNotFoundError|ConnectionRefusedError",
        what="the daemon of {kind} does not run: nothing answers at {where}",
        why="Its socket is not there, or nobody listens to it.",
        fix=(
            "start it:\nsudo systemctl start docker",
            "Docker of one user (rootless):\nsystemctl --user start docker",
            "or see which daemon is meant:\ndocker context ls",
        ),
        kinds=("docker",),
    ),
    Row(
        id="RT069",
        pattern=r"Connection aborted|Connection reset|Remote end closed|BrokenPipe|IncompleteRead|EOF|Read timed out"
        r"|Connection broken|gave no answer in time",
        what="{kind} broke off in the middle of an answer",
        why="The daemon was ended, restarted, or hangs. Nothing of ours is lost: a rerun looks at what is there.",
        fix=("see how it is:\nsystemctl status docker", "then do the same again:\nselfhost up"),
    ),
)


def worded(client: Client, failed: CallFailed, *, subject: str = "", rows: Sequence[Row] = ROWS) -> EnvironmentMissing:
    """The first row whose pattern is found; the engine's own words where none is."""
    first = subject.partition("/")[0]
    registry = first if "/" in subject and ("." in first or ":" in first) else ""
    facts = {
        "kind": client.kind,
        "where": client.where,
        "subject": subject or "it",
        "registry": registry,
        "text": failed.text[:200],
    }
    for row in rows:
        if client.kind in row.kinds and re.search(row.pattern, failed.text, re.IGNORECASE):
            return _error(row, facts, failed)
    return EnvironmentMissing(
        f"{client.kind} refused{f' for {subject}' if subject else ''}",
        why=f"Its own words are below; it was asked at {client.where}.",
        evidence=_last(failed.text),
        fix=(f"see whether it answers at all:\n{client.kind} version",),
        id="RT084",
    )


def _error(row: Row, facts: Mapping[str, str], failed: CallFailed) -> EnvironmentMissing:
    return EnvironmentMissing(
        row.what.format(**facts),
        why=row.why.format(**facts),
        evidence=_last(failed.text),
        fix=tuple(one.format(**facts) for one in row.fix),
        id=row.id,
    )


def _last(text: str) -> str:
    return "\n".join(line[:300] for line in text.strip().splitlines()[-5:])


_PORT = re.compile(
    r"port is already allocated|address already in use|cannot listen on the TCP port|port .* in use", re.IGNORECASE
)


def is_port_taken(failed: CallFailed) -> bool:
    return bool(_PORT.search(failed.text))


def foreign(kind: str, name: str, labels: Mapping[str, str]) -> EnvironmentMissing:
    """A container of our name that is not ours: it is left alone."""
    container, other = containers.container_name(name), labels.get(containers.FOLDER, "")
    return EnvironmentMissing(
        f"a container named {container} exists, and selfhost did not make it for `{name}`",
        why=f"It belongs to the deployment in {other}, and is left alone."
        if other
        else "It has none of selfhost's labels, so it is left alone.",
        fix=(
            f"see what it is:\n{kind} inspect {container}",
            "take another name:\nselfhost up --name NAME",
            f"or remove it, if nobody needs it:\n{kind} rm --force {container}",
        ),
        id="RT061",
    )


def foreign_network(kind: str, name: str) -> EnvironmentMissing:
    network = containers.container_name(name)
    return EnvironmentMissing(
        f"a network named {network} exists, and selfhost did not make it for `{name}`",
        why="It has none of selfhost's labels for this deployment, so it is left alone.",
        fix=(
            f"see who uses it:\n{kind} network inspect {network}",
            "or take another name:\nselfhost up --name NAME",
        ),
        id="RT062",
    )
