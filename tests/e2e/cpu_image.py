"""The image that selfhost plans for the CPU, made here: Debian, and a `vllm` that runs this machine's engine.

The engine's environment (3 GiB) and its Python are not copied: they are mounted by `overrides/compose.override.yaml`,
which is what that file is for.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e import images
from tests.e2e.containers import Client
from tests.e2e.images import TestImage

if TYPE_CHECKING:
    from collections.abc import Mapping

TAG = "vllm/vllm-openai-cpu:v0.32.0-x86_64"
_VLLM = b"""#!/bin/sh
# Stands for the image's own `vllm`. The console script of the CPU build asks for metadata that it does not have.
[ "$1" = serve ] && shift
model=$1
shift
exec "$ENGINE_PYTHON" -m vllm.entrypoints.openai.api_server --model "$model" "$@"
"""


def load(client: Client) -> None:
    program = "usr/local/bin/vllm"
    wrapper = images.files("vllm-wrapper", {program: _VLLM}, programs=[program])
    layers = (images.base(), images.installed("g++", "libnuma1"), wrapper)
    client.load_images([TestImage(tags=(f"docker.io/{TAG}",), layers=layers, entrypoint=("vllm", "serve"))])


def override(service: str, engines: Path) -> str:
    """Compose's own merge adds the mounts and the variable to what was rendered. YAML takes JSON as it is."""
    python, mounts = engine(engines)
    added: Mapping[str, object] = {"environment": {"ENGINE_PYTHON": python}, "volumes": [f"{one}:ro" for one in mounts]}
    return json.dumps({"services": {service: added}})


def run_words(engines: Path) -> tuple[str, ...]:
    """The same for `docker run` and `podman run`, whose lines have no file for additions."""
    python, mounts = engine(engines)
    return ("--env", f"ENGINE_PYTHON={python}", *(word for one in mounts for word in ("--volume", f"{one}:ro")))


def engine(engines: Path) -> tuple[str, tuple[str, ...]]:
    python = next(path for path in sorted(engines.glob("vllm-*-cpu-*/bin/python")) if path.exists())
    prefix = Path(sys.base_prefix).resolve()
    folders = (engines, *((prefix,) if prefix != Path("/usr") else ()))
    return str(python), tuple(f"{folder}:{folder}" for folder in folders)
