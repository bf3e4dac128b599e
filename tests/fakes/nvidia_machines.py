"""Recorded machines with NVIDIA cards, put together from literal outputs in tests/cases/host-fixtures/nvidia."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from selfhost.core.recorded import Recorded

OUTPUTS = Path(__file__).parent.parent / "cases" / "host-fixtures" / "nvidia"
DRIVER_580 = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22-I3-B17-02-5)"
)


def output(name: str) -> str:
    return (OUTPUTS / name).read_text(encoding="utf-8")


def smi(*arguments: str, file: str = "", text: str = "", rc: int = 0, **more: object) -> dict[str, Any]:
    """A recorded call of nvidia-smi; its output is that of `file`, or `text`."""
    said = output(file) if file else text
    return {"argv": ["nvidia-smi", *arguments], "rc": rc, "stdout": said, "stderr": "", **more}


def failed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output(f"fail/{name}"))
    return found


def nodes(*minors: int, without: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Device nodes that open: the cards', and the two that every CUDA program needs."""
    paths = {f"/dev/nvidia{minor}": (195, minor) for minor in minors}
    paths |= {"/dev/nvidiactl": (195, 255), "/dev/nvidia-uvm": (498, 0)}
    return {
        path: {"type": "c", "major": major, "minor": minor, "mode": "0666"}
        for path, (major, minor) in paths.items()
        if path not in without
    }


def machine(
    functions: Mapping[str, str],
    *commands: Mapping[str, Any],
    files: Mapping[str, str] | None = None,
    opens: Mapping[str, Any] | None = None,
    version: str = DRIVER_580,
    **more: object,
) -> Recorded:
    """PCI functions as address → device id, with a node for each unless `opens` says which there are."""
    seen: dict[str, str] = {"/proc/driver/nvidia/version": version} if version else {}
    links: dict[str, str] = {}
    for address, device in functions.items():
        base = f"/sys/bus/pci/devices/{address}"
        seen |= {f"{base}/class": "0x030200\n", f"{base}/vendor": "0x10de\n", f"{base}/device": f"0x{device}\n"}
        links[f"{base}/driver"] = "../../../bus/pci/drivers/nvidia"
    return Recorded(
        {
            "files": {**seen, **(files or {})},
            "links": links,
            "nodes": nodes(*range(len(functions))) if opens is None else opens,
            "commands": list(commands),
            **more,
        }
    )
