"""Version of the NVIDIA driver's user-space library here, by the names of its files: nothing is loaded."""

import posixpath
import re
from collections.abc import Iterator

from selfhost.core.system import System
from selfhost.hosts.glance import names
from selfhost.shapes.host import Fact, Known, Unknown

# Where distributions, container toolkits, WSL2, NixOS and NVIDIA's GKE and Flatcar installers put it.
_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/x86_64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib64/nvidia",
    "/run/opengl-driver/lib",
    "/opt/nvidia/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
)
_NAMES = ("libnvidia-ml.so", "libcuda.so")


def library(system: System) -> Fact[str]:
    """The version that the link of the loader leads to; else that of the only files there are."""
    found: dict[str, str] = {}
    for folder in _FOLDERS:
        here = names(system, folder)
        for name in _NAMES:
            linked = _linked(system, f"{folder}/{name}.1")
            if linked:
                return Known(linked, f"{folder}/{name}.1")
            found |= {version: f"{folder}/{name}.{version}" for version in _versions(here, name)}
    for path in system.libraries() or ():
        name = posixpath.basename(path)
        found |= {version: name for stem in _NAMES for version in _versions((name,), stem)}
    if len(found) == 1:
        return next(Known(version, path) for version, path in found.items())
    if found:
        return Unknown(f"libraries of several versions lie here: {', '.join(sorted(found))}")
    return Unknown("no library of the driver was found")


def is_here(system: System) -> bool:
    """Whether a file of that name is in one of the folders, whatever its version."""
    return any(name.startswith(_NAMES) for folder in _FOLDERS for name in names(system, folder))


def _linked(system: System, path: str) -> str:
    try:
        target = posixpath.basename(system.readlink(path))
    except OSError:
        return ""
    return next((version for name in _NAMES for version in _versions((target,), name)), "")


def _versions(files: tuple[str, ...], name: str) -> Iterator[str]:
    for file in files:
        found = re.fullmatch(rf"{re.escape(name)}\.(\d{{3,}}(?:\.\d+)+)", file, re.ASCII)
        if found:
            yield found[1]
