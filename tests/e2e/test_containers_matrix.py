"""`up` on machines with cards, in containers, with stand-ins for what only exists beside a card.

The machine is looked at through a snapshot, the container engines are real, and what stands for vLLM and SGLang takes
its command line by their own parser and says what it was given. What this cannot show: that an engine finds the card.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.around import Around, around, nodes_of
from tests.e2e.containers import Client, docker_daemon, podman
from tests.e2e.debian13 import unpacked
from tests.e2e.engine_images.stand_ins import HUB, VERSIONS, stand_ins
from tests.e2e.world import ROOT, World
from tests.fakes.qwen3 import in_hub_cache

_ENGINES_HERE = pytest.mark.skipif(
    os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("dockerd", "podman", "nsenter")),
    reason="container engines of our own need root and `make test`'s packages (scripts/test_tools.sh)",
)
pytestmark = [_ENGINES_HERE]
SNAPSHOTS = ROOT / "tests" / "snapshots"
NVIDIA = ("/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl")
SLICE = ("/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31", *NVIDIA)
AMD = ("/dev/dri/renderD128", "/dev/kfd")
INTEL = ("/dev/dri/renderD128",)
WINDOWS = ("/dev/dxg",)
STAND_IN_SYSTEMD = ROOT / "tests" / "runtimes" / "stand_in_systemd.py"
ARM = ("gb10", "jetson-thor")
RENDER = 992
"""The group of render nodes on the machines that were recorded."""
_GRANTED = {
    "a100-mig-slice": "MIG-a1003000-5909-1af0-2d07-ba92fc076426",
    "gb10": "GPU-025e6de3-5909-1af0-2d07-ba92fc076426",
    "h100": "GPU-68100000-5909-1af0-2d07-ba92fc076426",
    "h100-mig-slices": "MIG-025e6de3-5909-1af0-2d07-ba92fc076426",
    "jetson-thor": "all",
    "rtx3060": "GPU-30600000-5909-1af0-2d07-ba92fc076426",
    "rtx4090": "GPU-40900000-5909-1af0-2d07-ba92fc076426",
    "two-5090": "GPU-50900000-5909-1af0-2d07-ba92fc076426",
}
"""What NVIDIA's toolkit is told to let in."""
_SYSTEMD = ("STAND_IN_SYSTEMD", "STAND_IN_QUADLET", "QUADLET_UNIT_DIRS", "AS_PODMAN")
_MASKS = (
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    *("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One start. `by`: what the machine offers: NVIDIA's `hook`, its `runtime` alone, `cdi`, `nodes`. `devices`: all
    seen inside; `groups`: beside the first one; `more`: further words."""

    snapshot: str
    engine: str
    runtime: str
    by: str
    devices: tuple[str, ...]
    groups: tuple[int, ...] = ()
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.snapshot}-{self.engine}-{self.runtime}-{self.by}"


ROWS = (
    Row("rtx4090", "vllm", "docker", "hook", NVIDIA),
    Row("rtx4090", "sglang", "docker", "hook", NVIDIA),
    Row("rtx4090", "vllm", "podman", "cdi", NVIDIA),
    Row("rtx4090", "sglang", "podman", "cdi", NVIDIA),
    Row("rtx4090", "vllm", "quadlet", "cdi", NVIDIA),
    Row("rtx4090", "sglang", "quadlet", "cdi", NVIDIA),
    Row("rtx4090", "vllm", "docker", "cdi", NVIDIA),
    Row("rtx4090", "vllm", "docker", "runtime", NVIDIA),
    Row("rtx3060", "vllm", "docker", "hook", NVIDIA),
    Row("h100", "vllm", "docker", "hook", NVIDIA),
    Row("h100", "sglang", "docker", "runtime", NVIDIA),
    Row("jetson-thor", "vllm", "docker", "runtime", NVIDIA),
    Row("h100", "sglang", "docker", "cdi", NVIDIA),
    Row("h100", "sglang", "podman", "cdi", NVIDIA),
    Row("a100-mig-slice", "vllm", "docker", "hook", SLICE),
    Row("a100-mig-slice", "vllm", "podman", "cdi", SLICE),
    Row("h100-mig-slices", "sglang", "docker", "hook", SLICE),
    Row("h100-mig-slices", "sglang", "docker", "cdi", SLICE),
    Row("gb10", "vllm", "docker", "cdi", NVIDIA),
    Row("gb10", "sglang", "docker", "hook", NVIDIA),
    Row("two-5090", "vllm", "docker", "hook", NVIDIA),
    Row("two-5090", "vllm", "podman", "cdi", NVIDIA),
    Row("wsl2-rtx", "vllm", "docker", "nodes", WINDOWS, more=("--context", "8k")),
    Row("wsl2-rtx", "sglang", "podman", "nodes", WINDOWS, more=("--context", "8k")),
    Row("amd-mi300x", "vllm", "docker", "nodes", AMD, (RENDER,)),
    Row("amd-mi300x", "sglang", "docker", "nodes", AMD, (RENDER,)),
    Row("amd-mi300x", "vllm", "podman", "nodes", AMD, (RENDER,)),
    Row("amd-mi300x", "sglang", "podman", "nodes", AMD, (RENDER,)),
    Row("rx7900xtx", "vllm", "docker", "nodes", AMD, (RENDER,)),
    Row("rx7900xtx", "vllm", "podman", "nodes", AMD, (RENDER,)),
    Row("rx7900xtx", "vllm", "quadlet", "nodes", AMD, (RENDER,)),
    Row("strix-halo", "vllm", "podman", "nodes", AMD),
    Row("arc-b580", "vllm", "docker", "nodes", INTEL, (RENDER,)),
    Row("arc-b580", "vllm", "podman", "nodes", INTEL, (RENDER,)),
    Row("arc-b580", "vllm", "quadlet", "nodes", INTEL, (RENDER,)),
)
LEAN = ("rtx4090-vllm-podman-cdi",)


@pytest.fixture(scope="module")
def made(engine_python: str | None) -> list[Any]:
    if engine_python is None:
        pytest.skip("no Python with vLLM to read the parsers with: `make up` installs one")
    return stand_ins(str(engine_python))


@pytest.fixture(scope="module")
def hub_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("hub")
    in_hub_cache(home)
    return home


@contextmanager
def machine(row: Row, folders: pytest.TempPathFactory, images: list[Any]) -> Iterator[tuple[Around, Client]]:
    """Short folders: podman refuses one of more than 50 letters."""
    nodes = nodes_of(SNAPSHOTS / f"{row.snapshot}.json", cdi=row.by == "cdi", hook=row.by in ("hook", "runtime"))
    with around(folders.mktemp("a"), nodes) as there, _engine(row, folders.mktemp("e"), there) as client:
        arch = "arm64" if row.snapshot in ARM else "amd64"  # of the machine that is played; the programs are this one's
        client.load_images([replace(one, arch=arch) for one in images if f"{HUB}/{_tag(row)}" in one.tags])
        yield there, client


def _tag(row: Row) -> str:
    by_vendor = {AMD: "-rocm", INTEL: "-xpu"}.get(row.devices, "")
    if row.engine == "vllm":
        return f"vllm/vllm-openai{by_vendor}:v0.33.0"
    return f"lmsysorg/sglang{by_vendor}:" + ("v0.5.20-rocm10-mi30x-20260920" if by_vendor else "v0.5.23")


@contextmanager
def _engine(row: Row, place: Path, there: Around) -> Iterator[Client]:
    if row.runtime in ("podman", "quadlet"):
        with podman(place, prefix=there.prefix) as client:
            if row.runtime == "quadlet":
                client.env |= _systemd(place, client.env["PATH"])
            yield client
        return
    options, path = [], ""
    if row.by == "runtime":
        options = ["--add-runtime", f"nvidia={there.runtime}"]
    if row.by == "hook":
        path = str(there.folder / "bin")  # the daemon looks for the hook in its PATH when it starts
    if row.by == "cdi":
        new = unpacked()
        path = f"{new}/usr/bin:{new}/usr/sbin"
        (place / "daemon.json").write_text(json.dumps({"features": {"cdi": True}, "cdi-spec-dirs": ["/etc/cdi"]}))
        options = ["--config-file", str(place / "daemon.json")]
    with docker_daemon(place, prefix=there.prefix, path=path, options=options) as daemon:
        yield daemon.client


def _systemd(place: Path, path: str) -> dict[str, str]:
    """What stands for it, beside the generator of the podman that this one says that it is."""
    for program in ("systemctl", "journalctl"):
        (place / "bin" / program).write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN_SYSTEMD} {program} "$@"\n')
        (place / "bin" / program).chmod(0o755)
    (place / "systemd").mkdir()
    return {
        "PATH": f"{place / 'bin'}:{path}",
        "STAND_IN_SYSTEMD": str(place / "systemd"),
        "STAND_IN_QUADLET": str(unpacked() / "usr/libexec/podman/quadlet"),
        "QUADLET_UNIT_DIRS": str(place / "units"),
        "AS_PODMAN": "5.4.2",
    }


def snapshot_with_toolkit(row: Row, folder: Path) -> Path:
    """The machine as recorded, with what NVIDIA's packages put in its usual place: hook and runtime, or that alone."""
    seen = json.loads((SNAPSHOTS / f"{row.snapshot}.json").read_text())
    if row.by in ("hook", "runtime"):
        seen.setdefault("files", {})["/usr/bin/nvidia-container-runtime"] = ""
    if row.by == "hook":
        seen["files"]["/usr/bin/nvidia-container-runtime-hook"] = ""
    file = folder / "machine.json"
    file.write_text(json.dumps(seen))
    return file


def selfhost(row: Row, world: World, there: Around, *words: str) -> subprocess.CompletedProcess[str]:
    snapshot = snapshot_with_toolkit(row, world.base)
    argv = [*there.prefix, sys.executable, str(ROOT / "tests" / "e2e" / "as_machine.py"), str(snapshot), *words]
    return subprocess.run(argv, env=world.env, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "row", [pytest.param(row, id=str(row), marks=[] if str(row) in LEAN else pytest.mark.slow) for row in ROWS]
)
def test_up_ends_with_a_passing_smoke(
    row: Row, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, made: list[Any], hub_home: Path, published: Any
) -> None:
    with machine(row, tmp_path_factory, made) as (there, client):
        variables = {
            name: client.env[name]
            for name in (*("DOCKER_HOST", "DOCKER_CONFIG", "CONTAINERS_CONF", "PATH"), *_SYSTEMD)
            if name in client.env
        }
        base = tmp_path / "home"
        base.mkdir()
        world = World(base=base, wheels=None, extra_env={**variables, "HF_HOME": str(hub_home)})
        words = ("qwen3-4b", "--name", world.name, "--engine", row.engine, "--runtime", row.runtime, *row.more)
        done = selfhost(row, world, there, "up", *words, "--json", "--yes", "--progress", "json")
        try:
            result = json.loads(done.stdout)
            assert "smoke" in result, done.stderr[-2000:] + _log(client, world)[-2000:]
            bad = [one for one in result["smoke"]["checks"] if one["state"] not in ("passed", "skipped")]
            allowed = {("SM130", "undecided")} if row.engine == "sglang" else set()  # it scores no prompt by token ids
            assert {(one["id"], one["state"]) for one in bad} <= allowed, json.dumps(bad, indent=1)
            assert done.returncode == 0, done.stderr[-2000:]
            told = said(client, world)
            assert_as_promised(row, told)
            heard = published(row.engine, VERSIONS[row.engine], [told["argv"]])["lines"][0]
            assert "parsed" in heard, heard
        finally:
            ended = selfhost(row, world, there, "down", world.name)
        assert ended.returncode == 0, ended.stderr
        assert client.run("ps", "-aq") == ""
        assert "selfhost" not in client.run("network", "ls")


def assert_as_promised(row: Row, told: dict[str, Any]) -> None:
    assert tuple(path for path, state in told["devices"].items() if state == "opens") == row.devices
    assert set(told["devices"].values()) <= {"opens", "link"}
    assert tuple(group for group in told["groups"] if group != told["user"][1]) == row.groups
    values, granted = told["values"], {"hook": _GRANTED, "runtime": _GRANTED}.get(row.by, {}).get(row.snapshot)
    assert values.get("NVIDIA_VISIBLE_DEVICES") == granted
    assert not set(_MASKS) & set(told["environment"])
    assert {name: values[name] for name in ("HOME", "USER")} == {"HOME": "/var/tmp", "USER": "selfhost"}
    assert values["HF_HUB_OFFLINE"] == "1"
    assert not [name for name in told["environment"] if "TOKEN" in name or name == "HF_HOME"]
    assert ("VLLM_API_KEY" in told["environment"]) == (row.engine == "vllm")
    assert (values.get("LD_LIBRARY_PATH") == "/usr/lib/wsl/lib") == (row.devices == WINDOWS)
    assert told["capabilities"]["CapEff"].strip("0") == ""
    assert told["capabilities"]["NoNewPrivs"] == "1"
    assert told["shm_bytes"] == 2**30
    assert "/model" not in told["writable"]
    assert "/var/tmp" in told["writable"]


def said(client: Client, world: World) -> dict[str, Any]:
    """What the stand-in says that it was given."""
    (line,) = [line for line in _log(client, world).splitlines() if line.startswith("stand-in ")]
    return json.loads(line.removeprefix("stand-in "))


def _log(client: Client, world: World) -> str:
    done = subprocess.run(
        [*client.argv, "logs", f"selfhost-{world.name}"], capture_output=True, text=True, env=client.env, check=False
    )
    return done.stdout + done.stderr
