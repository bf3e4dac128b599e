"""Images of the GPU engines as selfhost plans them, in which a stand-in serves: no card, no torch, 120 MB."""

import os
import subprocess
from pathlib import Path

from tests.e2e import images
from tests.e2e.images import TestImage
from tests.engines.contract.conftest import _beside, _unpacked

HERE = Path(__file__).parent
FAKE = HERE.parents[1] / "fakes" / "engine.py"
VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23"}
VLLM = ("vllm/vllm-openai:v0.33.0", "vllm/vllm-openai-rocm:v0.33.0", "vllm/vllm-openai-xpu:v0.33.0")
SGLANG = ("lmsysorg/sglang:v0.5.23", "lmsysorg/sglang-rocm:v0.5.20-rocm10-mi30x-20260920")
HUB = "docker.io"
"""Docker drops it when it loads an image, podman would put `localhost` where it is missing."""
_PROGRAM = """#!/bin/sh
exec python3 /opt/stand-in/stand_in.py {engine} "$@"
"""


def grammar(engine: str, python: str) -> bytes:
    """The engine's parser as data, read by a Python that has what the parser imports."""
    folders = [str(_unpacked(engine, VERSIONS[engine])), *_beside(engine, python)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "VLLM_TARGET_DEVICE": "cpu", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [python, "-W", "ignore", str(HERE / "grammar.py"), engine],
        capture_output=True, timeout=300, check=False, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return done.stdout.splitlines()[-1]


def stand_ins(python: str) -> list[TestImage]:
    """vLLM's images serve by themselves, SGLang's are told to."""
    layers = (images.base(), _layer(python))
    return [
        *(TestImage(tags=(f"{HUB}/{tag}",), layers=layers, entrypoint=("vllm", "serve")) for tag in VLLM),
        *(TestImage(tags=(f"{HUB}/{tag}",), layers=layers) for tag in SGLANG),
    ]


def _layer(python: str) -> images.Layer:
    programs = {f"usr/local/bin/{engine}": _PROGRAM.format(engine=engine).encode() for engine in VERSIONS}
    content: dict[str, bytes | Path] = {
        **programs,
        "opt/stand-in/stand_in.py": HERE / "stand_in.py",
        "opt/stand-in/engine.py": FAKE,
        **{f"opt/stand-in/{engine}.grammar.json": grammar(engine, python) for engine in VERSIONS},
    }
    return images.files("stand-ins", content, programs=programs)


CPU = "vllm/vllm-openai-cpu:v0.32.0-x86_64"
_CPU_PROGRAM = b"""#!/bin/sh
[ "$1" = serve ] && shift
exec python3 /opt/stand-in/engine.py "$@"
"""


def cpu_stand_in() -> TestImage:
    """What is planned for the processor, quick to start and asking for no parser: for killing and breaking."""
    program = "usr/local/bin/vllm"
    content: dict[str, bytes | Path] = {program: _CPU_PROGRAM, "opt/stand-in/engine.py": FAKE}
    layers = (images.base(), images.files("cpu-stand-in", content, programs=[program]))
    return TestImage(tags=(f"{HUB}/{CPU}",), layers=layers, entrypoint=("vllm", "serve"))
