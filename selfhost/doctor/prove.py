"""Open the cards' nodes in a throw-away container, once for each engine: shown, not concluded.

The image is empty and made here; the host's own programs are mounted read-only. Nothing of it stays.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from selfhost.core.system import Completed, System
from selfhost.shapes.host import Accelerator, Host, Known, Support, Vendor
from selfhost.shapes.surroundings import Engine

Outcome = Literal["good", "bad", "unknown"]

_EMPTY_TAR: Final = "\0" * 10240  # two zero blocks, padded to one record: a tar archive of nothing
_MOUNTS: Final = ("/bin", "/lib", "/lib64", "/usr")
_IMPORT_TIMEOUT_S: Final = 30.0
_RUN_TIMEOUT_S: Final = 60.0
_REMOVE_TIMEOUT_S: Final = 30.0
# `exec 3<>` would make a missing file, so what is not there is not opened.
_OPEN: Final = (
    'for node in "$@"; do if ! test -e "$node"; then echo "$node ENOENT"; '
    'elif said=$( (exec 3<>"$node") 2>&1); then echo "$node ok"; else echo "$node ${said##*: }"; fi; done; echo opened'
)
_ERRNO: Final = {
    "Operation not permitted": "EPERM",
    "Permission denied": "EACCES",
    "No such device or address": "ENXIO",
    "No such device": "ENODEV",
    "Input/output error": "EIO",
}
# A user who may not raise limits starts nothing with those that podman sets by default.
_OWN: Final = {"podman": ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")}
_FORMS: Final[dict[str, tuple[str, ...]]] = {
    "nvidia:cdi": ("--device", "nvidia.com/gpu=all"),
    "nvidia:gpus": ("--gpus", "all"),
    "nvidia:runtime": ("--runtime", "nvidia", "--env", "NVIDIA_VISIBLE_DEVICES=all"),
    "amd:cdi": ("--device", "amd.com/gpu=all"),
    "amd:runtime": ("--runtime", "amd", "--env", "AMD_VISIBLE_DEVICES=all"),
}
"""In the order in which they are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What one engine showed of one card; `card` is empty when there was none to open."""

    engine: str
    card: str
    outcome: Outcome
    said: str

    def to_json(self) -> dict[str, str]:
        return {"engine": self.engine, "card": self.card, "outcome": self.outcome, "said": self.said}


def prove(system: System, host: Host) -> tuple[Proof, ...]:
    """Every engine that answers on this machine; changes nothing that stays."""
    engines = host.surroundings.engines if host.surroundings else ()
    return tuple(proof for engine in engines for proof in _one(system, host, engine))


def _one(system: System, host: Host, engine: Engine) -> Iterator[Proof]:
    reason = _why_not(engine)
    if reason:
        yield Proof(engine=engine.kind, card="", outcome="unknown", said=reason)
        return
    cards = [card for card in host.accelerators if card.nodes and card.support is not Support.UNSUPPORTED]
    vendors = tuple(dict.fromkeys(card.vendor for card in cards))
    if not vendors:
        done = _in_container(system, engine, (), ())
        good = done.ok and "opened" in done.stdout
        said = "a container starts and ends; there is no card to open" if good else _complaint(done)
        yield Proof(engine=engine.kind, card="", outcome="good" if good else "unknown", said=said)
    for vendor in vendors:
        own = [card for card in cards if card.vendor is vendor]
        nodes = tuple(dict.fromkeys(node.path for card in own for node in card.nodes if "*" not in node.path))
        form = injection(engine, vendor, nodes)
        done = _in_container(system, engine, form, nodes)
        # What starts no container at all says nothing about the card.
        plain = done.ok or _in_container(system, engine, (), ()).ok
        yield from (_judge(engine, card, done, form, starts=plain) for card in own)


def _why_not(engine: Engine) -> str:
    if not (isinstance(engine.answers, Known) and engine.answers.value):
        return "it does not answer"
    if engine.remote:
        return f"it runs on another machine ({engine.remote})"
    if engine.desktop:
        return "its containers run in a virtual machine that mounts none of this machine's programs"
    return "its paths are those of the machine around this container" if engine.sibling else ""


def injection(engine: Engine, vendor: Vendor, nodes: Sequence[str]) -> tuple[str, ...]:
    """Options that hand in every card of `vendor`: the first form that works with this engine, else the plain nodes."""
    form = next((form for form in _FORMS if form.startswith(f"{vendor.value}:") and form in engine.injects), "")
    return _FORMS[form] if form else tuple(word for node in nodes for word in ("--device", node))


def _in_container(system: System, engine: Engine, form: Sequence[str], nodes: Sequence[str]) -> Completed:
    """Import, run, remove. The removal is tried even when we are interrupted in between."""
    name = f"selfhost-probe-{os.getpid()}"
    label = "io.selfhost.probe=doctor"
    mounts = [word for path in _MOUNTS if _is_folder(system, path) for word in ("--volume", f"{path}:{path}:ro")]
    argv = (
        *(engine.kind, "run", "--rm", "--name", name, "--label", label, "--network", "none", "--cap-drop", "ALL"),
        *(*_OWN.get(engine.kind, ()), *mounts, *form, "--env", "LC_ALL=C", name, "/bin/sh", "-c", _OPEN, "sh", *nodes),
    )
    try:
        made = system.run(
            (engine.kind, "import", "--change", f"LABEL {label}", "-", name),
            timeout_s=_IMPORT_TIMEOUT_S,
            stdin=_EMPTY_TAR,
        )
        return system.run(argv, timeout_s=_RUN_TIMEOUT_S) if made.ok else made
    finally:
        system.run((engine.kind, "rm", "--force", name), timeout_s=_REMOVE_TIMEOUT_S)
        system.run((engine.kind, "rmi", "--force", name), timeout_s=_REMOVE_TIMEOUT_S)


def _is_folder(system: System, path: str) -> bool:
    try:
        return system.stat(path).kind == "d"
    except OSError:
        return False


def _judge(engine: Engine, card: Accelerator, done: Completed, form: Sequence[str], *, starts: bool) -> Proof:
    shown = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith("/dev/") and " " in line)
    wanted = [node.path for node in card.nodes if node.path in shown]
    by = f"by {' '.join(form[:2])}" if form else "without any option"
    if not done.ok or not wanted:
        refused = starts and not done.timed_out and not done.missing and bool(form)
        said = (
            f"{by}: {_complaint(done)}"
            if starts
            else f"no container starts, with a card or without: {_complaint(done)}"
        )
        return Proof(engine=engine.kind, card=card.name, outcome="bad" if refused else "unknown", said=said)
    bad = [f"{path}: {_ERRNO.get(shown[path], shown[path])}" for path in wanted if shown[path] != "ok"]
    said = f"{by}: {', '.join(bad) or f'{len(wanted)} nodes open'}"
    return Proof(engine=engine.kind, card=card.name, outcome="bad" if bad else "good", said=said)


def _complaint(done: Completed) -> str:
    if done.timed_out:
        return "no answer in time"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    told = [line for line in lines if "error" in line.lower()] or lines[-1:]
    return told[0][:200] if told else f"it ended with {done.rc}"
