"""The surroundings of a machine with cards, without cards: a mount namespace of our own with stand-ins for their nodes,
for CDI files and for NVIDIA's hook. Engines, allocation and device rules are real; a node is another one of the kernel.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

NULL = (1, 3)
"""May be opened in every container."""
FUSE = (10, 229)
"""May be opened where an engine's device rules say so."""
HOOK = "nvidia-container-runtime-hook"
_KEPT = ("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "fuse")

_SET_UP = """set -e
mkdir -p {folder}/dev {folder}/upper {folder}/work
mount -t tmpfs -o mode=755 tmpfs {folder}/dev
for name in {kept}; do [ -e /dev/$name ] && cp -a /dev/$name {folder}/dev/; done
for name in pts shm mqueue; do
  [ -d /dev/$name ] || continue
  mkdir {folder}/dev/$name
  mount --rbind /dev/$name {folder}/dev/$name
done
ln -s /proc/self/fd {folder}/dev/fd
ln -s /proc/self/fd/0 {folder}/dev/stdin
ln -s /proc/self/fd/1 {folder}/dev/stdout
ln -s /proc/self/fd/2 {folder}/dev/stderr
{nodes}
mount --rbind {folder}/dev /dev
mount -t overlay overlay -o lowerdir=/etc,upperdir={folder}/upper,workdir={folder}/work /etc
mkdir -p /etc/cdi
[ ! -e {folder}/cdi.yaml ] || cp {folder}/cdi.yaml /etc/cdi/nvidia.yaml
"""
_WINDOWS_LIBRARIES = """
mkdir -p {folder}/lib-upper/wsl/lib {folder}/lib-work
mount -t overlay overlay -o lowerdir=/usr/lib,upperdir={folder}/lib-upper,workdir={folder}/lib-work /usr/lib
"""

# As NVIDIA's own: it enters the container that is being made and puts in what NVIDIA_VISIBLE_DEVICES names.
_HOOK = """#!/usr/bin/python3
import json, os, stat, subprocess, sys
state = json.load(sys.stdin)
config = json.load(open(os.path.join(state["bundle"], "config.json")))
env = dict(pair.split("=", 1) for pair in config["process"]["env"] if "=" in pair)
cards = json.load(open("CARDS"))
asked = env.get("NVIDIA_VISIBLE_DEVICES", "")
names = list(cards) if asked == "all" else [name for name in asked.split(",") if name]
root = config["root"]["path"]
root = root if os.path.isabs(root) else os.path.join(state["bundle"], root)
for path in sorted({"/dev/nvidiactl", "/dev/nvidia-uvm"}.union(*(cards[name] for name in names))):
    subprocess.run(["nsenter", "-t", str(state["pid"]), "-m", "--", "sh", "-c",
                    '[ -e "$1" ] || { mkdir -p "${1%/*}" && mknod "$1" c 1 3 && chmod 666 "$1"; }', "sh", root + path],
                   check=True)
"""

# A runtime that is called `nvidia`: runc, with that hook.
_RUNTIME = """#!/usr/bin/python3
import json, os, sys
words = sys.argv[1:]
if "create" in words:
    bundle = words[words.index("--bundle") + 1] if "--bundle" in words else "."
    path = os.path.join(bundle, "config.json")
    config = json.load(open(path))
    hooks = config.setdefault("hooks", {}).setdefault("prestart", [])
    if not any("HOOK" in hook["path"] for hook in hooks):
        hooks.append({"path": "HOOK", "args": ["HOOK", "prestart"]})
        json.dump(config, open(path, "w"))
os.execvp("runc", ["runc", *words])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What NVIDIA's tools call a card or a slice of one beside its UUID, and its own nodes."""

    number: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """What lies in /dev there: path → (mode, group). `cards`: by UUID."""

    paths: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    cards: Mapping[str, Card] = field(default_factory=dict)
    cdi: bool = False
    numbers: tuple[int, int] = FUSE
    """Major and minor of all of them."""


def nodes_of(snapshot: Path, *, cdi: bool = False, hook: bool = False) -> Nodes:
    """The device nodes of a recorded machine, with their modes and groups there."""
    recorded = json.loads(snapshot.read_text())
    paths = {
        path: (int(str(node.get("mode", "0666")), 8), int(node.get("gid", 0)))
        for path, node in recorded.get("nodes", {}).items()
        if node.get("type") == "c" and path.startswith(("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/dxg"))
    }
    cards = _cards(snapshot)
    paths |= {path: (0o666, 0) for card in cards.values() for path in card.nodes if "-caps/" in path}
    # udev makes one for every render node; snapshots hold only what was looked at.
    renders = [path.rpartition("/")[2] for path in paths if path.startswith("/dev/dri/renderD")]
    links = {f"/dev/dri/by-path/pci-0000:0{number}:00.0-render": f"../{name}" for number, name in enumerate(renders, 3)}
    return Nodes(paths=paths, links=links, cards=cards, cdi=cdi, numbers=NULL if hook else FUSE)


def _cards(snapshot: Path) -> dict[str, Card]:
    """NVIDIA's on a PCI bus or of a Jetson; of a card that is cut its slices, each with its two capabilities."""
    from selfhost.core.recorded import Recorded
    from selfhost.hosts.detect import detect

    found: dict[str, Card] = {}
    for card in detect(Recorded.load(snapshot)).accelerators:
        own = f"/dev/nvidia{card.index}"
        for number, part in enumerate(card.partitions):
            caps = tuple(f"/dev/nvidia-caps/nvidia-cap{30 + 2 * number + kind}" for kind in (0, 1))
            found[part.uuid] = Card(number=f"{card.index}:{number}", nodes=(own, *caps))
        if card.uuid and not card.partitions:
            found[card.uuid] = Card(number=str(card.index), nodes=(own,))
    return found


class Around:
    """A mount namespace that lives as long as its holder."""

    def __init__(self, folder: Path, nodes: Nodes) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        self._write_toolkit(nodes.cards)
        if nodes.cdi:
            (folder / "cdi.yaml").write_text(json.dumps(cdi_of(nodes.cards)))
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sleep", "infinity"], start_new_session=True
        )
        self._until_apart()
        made = "\n".join(_made(self.folder / "dev", nodes))
        windows = _WINDOWS_LIBRARIES if "/dev/dxg" in nodes.paths else ""
        script = (_SET_UP + windows).format(folder=folder, kept=" ".join(_KEPT), nodes=made)
        done = subprocess.run(
            [*self.prefix, "sh", "-c", script], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, done.stderr

    @property
    def prefix(self) -> tuple[str, ...]:
        """Before a command that is to run there."""
        return ("nsenter", "--target", str(self._holder.pid), "--mount", f"--wdns={self.folder}", "--")

    @property
    def runtime(self) -> str:
        return str(self.folder / "bin" / "nvidia-container-runtime")

    def end(self) -> None:
        self._holder.kill()
        self._holder.wait(timeout=10)

    def _until_apart(self) -> None:
        own = os.readlink("/proc/self/ns/mnt")
        deadline = time.monotonic() + 10
        while os.readlink(f"/proc/{self._holder.pid}/ns/mnt") == own:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def _write_toolkit(self, cards: Mapping[str, Card]) -> None:
        folder, hook = self.folder / "bin", self.folder / "bin" / HOOK
        (self.folder / "cards.json").write_text(json.dumps({uuid: card.nodes for uuid, card in cards.items()}))
        hook.write_text(_HOOK.replace("CARDS", str(self.folder / "cards.json")))
        (folder / "nvidia-container-runtime").write_text(_RUNTIME.replace("HOOK", str(hook)))
        for program in folder.iterdir():
            program.chmod(0o755)


def _made(root: Path, nodes: Nodes) -> Iterator[str]:
    for path, (mode, group) in nodes.paths.items():
        place = root / path.removeprefix("/dev/")
        yield f"mkdir -p {place.parent}"
        yield f"mknod -m {mode:o} {place} c {nodes.numbers[0]} {nodes.numbers[1]} && chown 0:{group} {place}"
    for path, target in nodes.links.items():
        place = root / path.removeprefix("/dev/")
        yield f"mkdir -p {place.parent} && ln -sfn {target} {place}"


def cdi_of(cards: Mapping[str, Card]) -> dict[str, object]:
    """As `nvidia-ctk cdi generate` names devices: by number, by UUID, and all of them."""

    def device(name: str, paths: Iterable[str]) -> dict[str, object]:
        return {"name": name, "containerEdits": {"deviceNodes": [{"path": path} for path in paths]}}

    named = [device(card.number, card.nodes) for card in cards.values()]
    named += [device(uuid, card.nodes) for uuid, card in cards.items()]
    every = sorted({path for card in cards.values() for path in card.nodes})
    shared = [{"path": path} for path in ("/dev/nvidiactl", "/dev/nvidia-uvm")]
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": [*named, device("all", every)],
        "containerEdits": {"deviceNodes": shared},
    }


@contextmanager
def around(folder: Path, nodes: Nodes) -> Iterator[Around]:
    made = Around(folder, nodes)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(folder / "dev", ignore_errors=True)
