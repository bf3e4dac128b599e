"""Which model a container serves, how large it is, and where its files come to lie."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from selfhost.hosts.cluster_quantity import quantity
from selfhost.models.catalog import by_id
from selfhost.shapes.host import Known
from selfhost.shapes.workload import Mount
from selfhost.visibility.objects import Container

_MODEL_FLAGS: Final = ("--model", "--model-path", "--model-id")
_HUB_ID = re.compile(r"(?:hf://)?[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z")
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:(?P<times>\d+)x)?(?P<number>\d+(?:\.\d+)?)(?P<unit>[BbMm])(?![A-Za-z0-9])")
_BYTES: Final = (
    (re.compile(r"fp8|w8a8|int8|[-_]8bit|gptq-int8", re.IGNORECASE), 1.05),
    (re.compile(r"awq|gptq|int4|w4a16|nvfp4|fp4|mxfp4|bnb-4bit|[-_]4bit", re.IGNORECASE), 0.6),
)
"""Bytes of one parameter by what the name says; two for what says nothing."""
LASTING: Final = ("pvc", "hostPath", "volume")
DOWNLOAD_BYTES_S: Final = 50e6
READ_BYTES_S: Final = 500e6
START_S: Final = 60
"""Imports, profiling of the memory, compilation and graphs: the least that an engine takes besides its weights."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the first start is expected to take, from a cold cache."""

    model: str
    weights_bytes: int
    seconds: int
    downloads: bool


def model_of(container: Container) -> str:
    """The word that names the model; empty where the text does not say it."""
    named = container.flag(*_MODEL_FLAGS)
    if named is not None:
        return named
    argv = container.workload.argv
    words = [word.rpartition("/")[2] for word in argv]
    at = words.index("serve") + 1 if "serve" in words else 0 if container.by_entrypoint else len(argv)
    return argv[at] if at < len(argv) and not argv[at].startswith("-") else ""


def is_hub_id(model: str) -> bool:
    return _HUB_ID.match(model) is not None and not model.startswith((".", "/"))


def offline(container: Container) -> bool:
    env = container.workload.env
    return any(
        env.get(name, "").lower() in ("1", "true", "yes", "on") for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def weights_bytes(model: str) -> int | None:
    """By the catalog, else by what the name says of parameters and their precision."""
    row = by_id(model.removeprefix("hf://"))
    if row is not None and isinstance(row.weights_bytes, Known):
        return row.weights_bytes.value
    found = _SIZE.search(model.replace("_", "-"))
    if found is None:
        return None
    count = float(found["number"]) * int(found["times"] or 1) * (1e9 if found["unit"] in "Bb" else 1e6)
    each = next((size for pattern, size in _BYTES if pattern.search(model)), 2.0)
    return int(count * each)


def load_of(container: Container) -> Load | None:
    """None where the size of the model is not known, or nothing is loaded."""
    model = model_of(container)
    size = weights_bytes(model) if model else None
    if size is None or container.flag("--load-format") == "dummy":
        return None
    downloads = is_hub_id(model) and not offline(container)
    seconds = size / READ_BYTES_S + START_S + (size / DOWNLOAD_BYTES_S if downloads else 0)
    return Load(model, size, int(seconds), downloads)


def hub_cache(container: Container) -> tuple[str, str] | None:
    """(folder, variable or flag that says so) of what is downloaded; None where it cannot be told."""
    named = container.flag("--download-dir")
    if named is not None:
        return named, "--download-dir"
    env, unknown = container.workload.env, container.workload.env_sources
    for name, below in (
        ("HF_HUB_CACHE", ""),
        ("HUGGINGFACE_HUB_CACHE", ""),
        ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
        ("HOME", ".cache/huggingface/hub"),
    ):
        if name in env:
            return (str(PurePosixPath(env[name]) / below), name) if env[name].startswith("/") else None
        if name in unknown:
            return None
    if container.workload.user.partition(":")[0] in ("", "0") and container.engine in ("vllm", "sglang"):
        return "/root/.cache/huggingface/hub", ""
    return None


def usual_cache(container: Container) -> str:
    """The folder that the hub's library takes by itself, where something is mounted over it; else empty."""
    found = (mount.target.rstrip("/") for mount in container.wrapped.mounts)
    return next((each for each in found if each.endswith((".cache/huggingface", ".cache/huggingface/hub"))), "")


def mount_over(container: Container, folder: str) -> Mount | None:
    """The deepest mount that `folder` lies in."""
    found = [mount for mount in container.wrapped.mounts if is_below(folder, mount.target)]
    return max(found, key=lambda mount: len(mount.target), default=None)


def is_below(folder: str, parent: str) -> bool:
    plain = parent.rstrip("/")
    return bool(parent) and (folder == plain or folder.startswith(f"{plain}/"))


def gigabytes(text: str) -> float | None:
    """As LMCache counts: a bare number is GB."""
    plain = text.strip().removesuffix("B").removesuffix("b")
    number = quantity(plain)
    if number is None:
        return None
    return float(number) if re.fullmatch(r"[\d.]+", plain) else float(number) / 1e9
