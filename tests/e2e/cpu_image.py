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
    layers = (images.base(), images.files("vllm-wrapper", {program: _VLLM}, programs=[program]))
    client.load_images([TestImage(tags=(TAG,), layers=layers, entrypoint=("vllm", "serve"))])


def override(service: str, engines: Path) -> str:
    """Compose's own merge adds the mounts and the variable to what was rendered. YAML takes JSON as it is."""
    python = next(path for path in sorted(engines.glob("vllm-*-cpu-*/bin/python")) if path.exists())
    prefix = Path(sys.base_prefix).resolve()
    mounts = [f"{engines}:{engines}:ro", *([f"{prefix}:{prefix}:ro"] if prefix != Path("/usr") else [])]
    added: Mapping[str, object] = {"environment": {"ENGINE_PYTHON": str(python)}, "volumes": mounts}
    return json.dumps({"services": {service: added}})
