"""Variables that the user passes on to the engine, and those that are none of his to pass on."""

import re
from collections.abc import Iterator

from selfhost.core.errors import InputError
from selfhost.core.redact import is_secret, mask
from selfhost.engines.base import ENGINES
from selfhost.shapes.plan import Decision, Evidence
from selfhost.shapes.service import Service

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALLOCATION = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "AMD_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "ONEAPI_DEVICE_SELECTOR",
    "ZE_FLAT_DEVICE_HIERARCHY",
    "CUDA_DEVICE_ORDER",
)
"""They choose cards, or change which card a number means."""
_KEYS = frozenset({module.KEY_VARIABLE for module in ENGINES.values()} - {""})


def engine_env(service: Service) -> dict[str, str]:
    """Raises InputError, which holds no value, for a variable that chooses cards or holds a secret."""
    for name, value in service.engine_env.items():
        _refuse(name, value, service)
    return dict(service.engine_env)


def env_decisions(service: Service, *, planned: dict[str, str]) -> Iterator[Decision]:
    """`planned` are selfhost's own variables."""
    for name, value in service.engine_env.items():
        instead = planned.get(name)
        beside = f"; it counts before selfhost's own {instead}" if instead not in (None, value) else ""
        yield Decision(
            field="engine variable",
            value=f"{name}={value}",
            reason=f"passed on to the engine as it is{beside}; what it does to memory is not computed",
            source="user",
            evidence=Evidence.ASSUMED,
            by=_origin(service, name),
        )


def _origin(service: Service, name: str) -> str:
    """Without the value, which may be a secret."""
    said = service.origins.get("engine_env", "")
    shows = not said or any(value and value in said for value in service.engine_env.values())
    return f"engine_env {name}" if shows else said


def _refuse(name: str, value: str, service: Service) -> None:
    if not _NAME.fullmatch(name) or "\0" in value or "\n" in value:
        raise InputError(
            f"`{mask(name)}` is no variable that an engine can be given",
            why="A name is letters, digits and underscores, and a value is one line.",
            fix=("correct it in engine_env",),
            evidence=_origin(service, name),
            id="PL083",
        )
    if name in _ALLOCATION:
        raise InputError(
            f"engine_env sets {name}, which chooses cards",
            why="Cards are allocated once, before the start, by stable id; a second choice behind it picks others or "
            "none.",
            fix=("ask selfhost for them:\nselfhost up MODEL --device INDEX",),
            evidence=_origin(service, name),
            id="PL084",
        )
    if name in _KEYS or is_secret(name) or mask(value) != value:
        raise InputError(
            f"engine_env sets {name}, which holds a secret",
            why="It would stand in the files of the deployment. The engine's key is made by selfhost and handed over "
            "in a file for its owner only, and the engine asks no hub, so it needs no token.",
            fix=("leave it out; a token for downloads is taken from the login of the hub:\nhf auth login",),
            evidence=_origin(service, name),
            id="PL085",
        )
