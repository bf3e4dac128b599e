"""What an engine can hand into a container, by what was seen of it, of CDI and of the toolkits. Never more."""

from collections.abc import Sequence

from selfhost.core.system import System
from selfhost.core.versions import numbers
from selfhost.hosts.glance import exists
from selfhost.shapes.host import Known
from selfhost.shapes.surroundings import CdiSpec, Engine

_VENDORS = ("nvidia", "amd", "intel")
_FOLDERS = ("/usr/bin", "/usr/local/bin", "/usr/local/nvidia/toolkit", "/usr/sbin")
_HOOK = "nvidia-container-runtime-hook"
_RUNTIME = "nvidia-container-runtime"
_CDI_HOOK = "nvidia-cdi-hook"
_GPUS_BY_CDI = (29,)  # moby/moby#50228: --gpus tries CDI first, and the hook only without


def injects(system: System, engine: Engine, specs: Sequence[CdiSpec]) -> tuple[str, ...]:
    if not (isinstance(engine.answers, Known) and engine.answers.value):
        return ()
    found = [f"{vendor}:cdi" for vendor in _VENDORS if _has_cdi(engine, specs, vendor)]
    is_rootless = isinstance(engine.rootless, Known) and engine.rootless.value
    if "nvidia" in engine.runtimes:
        found.append("nvidia:runtime")
    # AMD's runtime refuses to work for a daemon without root (ROCm/container-toolkit, requirements).
    if "amd" in engine.runtimes and not is_rootless:
        found.append("amd:runtime")
    if engine.kind == "docker" and _has_gpus(system, engine, found):
        found.append("nvidia:gpus")
    if not engine.desktop:
        found.append("nodes")
    return tuple(sorted(found))


def _has_cdi(engine: Engine, specs: Sequence[CdiSpec], vendor: str) -> bool:
    kind = f"{vendor}.com/gpu"
    if not (isinstance(engine.cdi_enabled, Known) and engine.cdi_enabled.value):
        return False
    if any(name.startswith(f"{kind}=") for name in engine.cdi_devices):
        return True
    return is_local(engine) and any(
        spec.kind == kind and spec.devices and not spec.fault and _is_read(engine, spec) for spec in specs
    )


def _is_read(engine: Engine, spec: CdiSpec) -> bool:
    folder = spec.file.rpartition("/")[0].replace("/var/run/", "/run/")
    return not engine.cdi_dirs or folder in {one.rstrip("/").replace("/var/run/", "/run/") for one in engine.cdi_dirs}


def _has_gpus(system: System, engine: Engine, found: Sequence[str]) -> bool:
    """`--gpus` runs NVIDIA's hook out of the daemon's PATH. A registered runtime came with that hook, unless only
    NVIDIA's package `nvidia-container-toolkit-base` is here, which has the one without the other.
    """
    if "nvidia:runtime" in found:
        return not is_local(engine) or _is_here(system, _HOOK) or not _is_here(system, _RUNTIME)
    if not is_local(engine):
        return False
    if _is_here(system, _HOOK) and not engine.snap:
        return True
    return numbers(engine.version) >= _GPUS_BY_CDI and "nvidia:cdi" in found and _is_here(system, _CDI_HOOK)


def is_local(engine: Engine) -> bool:
    """Whether files that are seen here are files that the daemon sees."""
    return not (engine.remote or engine.sibling or engine.desktop)


def _is_here(system: System, program: str) -> bool:
    return any(exists(system, f"{folder}/{program}") for folder in _FOLDERS)
