"""The argument parsers of both engines as they were published: wheels of exact versions, their Python files only.

The wheels come through pip's own settings, once; what is unpacked stays in SELFHOST_TEST_CACHE, or beside the engines
that `make up` installed. They are read by a Python that has vLLM for the CPU: torch and transformers are there.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_ROOT = os.environ.get("SELFHOST_TEST_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "selfhost", "test-wheels"
)
_BESIDE = {"vllm": ("orjson",), "sglang": ("orjson", "ipython", "traitlets")}
"""What the parser imports and an environment of vLLM for the CPU may lack."""
_WHEEL = ("--only-binary", ":all:", "--no-deps", "--implementation", "cp", "--python-version", "3.11")
_PLATFORMS = (
    "--platform",
    "manylinux_2_34_x86_64",
    "--platform",
    "manylinux_2_28_x86_64",
    "--abi",
    "abi3",
    "--abi",
    "cp311",
)

Parse = Callable[[str, str, list[list[str]]], dict[str, Any]]


def _run(argv: list[str], *, stdin: str = "", env: dict[str, str] | None = None) -> str:
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=600, check=False, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _unpacked(engine: str, version: str) -> Path:
    """A folder with the engine's package, whole or not there."""
    target = Path(_ROOT) / f"{engine}-{version}"
    if target.is_dir():
        return target
    making = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    wheel = making / "wheel"
    _run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *_WHEEL, *_PLATFORMS,
          "--dest", str(wheel), f"{engine}=={version}"])  # fmt: skip
    (found,) = wheel.glob("*.whl")
    with zipfile.ZipFile(found) as archive:
        names = [name for name in archive.namelist() if name.endswith((".py", "/METADATA"))]
        archive.extractall(making, names)
    shutil.rmtree(wheel)
    try:
        making.rename(target)
    except OSError:  # another run was faster
        shutil.rmtree(making)
    return target


def _beside(engine: str, python: str) -> list[str]:
    """Folders with what is missing in `python` for this engine's parser."""
    if not _BESIDE[engine]:
        return []
    tag = _run([python, "-c", "import sys; print(f'py{sys.version_info[0]}{sys.version_info[1]}')"]).strip()
    target = Path(_ROOT) / f"beside-{engine}-{tag}"
    if not target.is_dir():
        making = target.with_name(f"{target.name}.{os.getpid()}")
        _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target",
              str(making), *_BESIDE[engine]])  # fmt: skip
        try:
            making.rename(target)
        except OSError:
            shutil.rmtree(making)
    return [str(target)]


@pytest.fixture(scope="session")
def published(parser_python: str) -> Parse:
    """Parse command lines with an engine's parser: `parsed` or `refused` for each, and every name that it knows."""

    def parse(engine: str, version: str, lines: list[list[str]]) -> dict[str, Any]:
        folders = [str(_unpacked(engine, version)), *_beside(engine, parser_python)]
        script = Path(__file__).with_name(f"read_{engine}.py")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "VLLM_TARGET_DEVICE": "cpu", "HF_HUB_OFFLINE": "1"}
        out = _run([parser_python, "-W", "ignore", str(script)], stdin=json.dumps(lines), env=env)
        answer: dict[str, Any] = json.loads(out.splitlines()[-1])
        assert answer["version"] == version
        return answer

    return parse
