"""The vendors' container toolkits: which version is installed, and what its configuration decides."""

import re
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from selfhost.core.recorded import Recorded
from selfhost.core.system import System
from selfhost.hosts.glance import exists
from selfhost.shapes.host import Accelerator, Fact, Known, Unknown, Vendor
from selfhost.shapes.surroundings import Toolkit

_CONFIG = "/etc/nvidia-container-runtime/config.toml"
_TIMEOUT_S = 4.0
_NVIDIA = (
    ("nvidia-ctk", "--version"),
    ("nvidia-container-cli", "--version"),
    ("nvidia-container-runtime", "--version"),
)
_AMD = (("amd-ctk", "--version"), ("amd-container-runtime", "--version"))
_VERSION = re.compile(r"(?:[Vv]ersion:?|cli-version:)\s+v?(\d+\.\d+\.\d+)")


def read(system: System, cards: Sequence[Accelerator], runtimes: Sequence[str]) -> tuple[Toolkit, ...]:
    """Asked only where a card or a registered runtime of the vendor is; a tool that is missing is no toolkit."""
    vendors = {card.vendor for card in cards}
    found: list[Toolkit] = []
    if Vendor.NVIDIA in vendors or "nvidia" in runtimes or exists(system, _CONFIG) or _is_recorded(system, _NVIDIA):
        found += _nvidia(system)
    if Vendor.AMD in vendors or "amd" in runtimes or _is_recorded(system, _AMD):
        version = _version(system, _AMD)
        found += [Toolkit(vendor=Vendor.AMD, version=version)] if isinstance(version, Known) else []
    return tuple(found)


def _nvidia(system: System) -> list[Toolkit]:
    version = _version(system, _NVIDIA)
    chosen = _configuration(system, _CONFIG)
    if isinstance(version, Unknown) and not chosen.is_here:
        return []
    folder = system.env.get("XDG_CONFIG_HOME", "")
    own = _configuration(system, f"{folder}/nvidia-container-runtime/config.toml") if folder else _Configuration()
    return [
        Toolkit(
            vendor=Vendor.NVIDIA,
            version=version,
            no_cgroups=_flag(chosen.tree, "nvidia-container-cli", "no-cgroups"),
            mode=str(_at(chosen.tree, "nvidia-container-runtime", "mode") or ""),
            accepts_env_unprivileged=_flag(chosen.tree, "accept-nvidia-visible-devices-envvar-when-unprivileged"),
            user_no_cgroups=_flag(own.tree, "nvidia-container-cli", "no-cgroups"),
            fault=chosen.fault,
        )
    ]


def _is_recorded(system: System, questions: Sequence[tuple[str, ...]]) -> bool:
    programs = {question[0] for question in questions}
    return isinstance(system, Recorded) and any(argv and argv[0] in programs for argv in system.argvs)


def _version(system: System, questions: Sequence[tuple[str, ...]]) -> Fact[str]:
    with ThreadPoolExecutor(len(questions)) as pool:
        answers = tuple(pool.map(lambda argv: system.run(argv, timeout_s=_TIMEOUT_S), questions))
    for done in answers:
        found = _VERSION.search(done.stdout) if not done.missing else None
        if found:
            return Known(found[1], " ".join(done.argv))
    tried = [done for done in answers if not done.missing]
    if tried:
        return Unknown(f"{' '.join(tried[0].argv)} names no version")
    return Unknown(f"{questions[0][0]} is not installed here")


@dataclass(frozen=True, slots=True)
class _Configuration:
    is_here: bool = False
    tree: Any = None
    fault: str = ""


def _configuration(system: System, path: str) -> _Configuration:
    try:
        text = system.read(path)
    except FileNotFoundError:
        return _Configuration()
    except OSError as error:
        return _Configuration(is_here=True, fault=f"{path} cannot be read: {error.strerror or error}")
    try:
        return _Configuration(is_here=True, tree=tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        return _Configuration(is_here=True, fault=f"{path} is not TOML: {error}")


def _at(tree: Any, *keys: str) -> Any:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _flag(tree: Any, *keys: str) -> bool | None:
    said = _at(tree, *keys)
    return said if isinstance(said, bool) else None
