"""The toy engine in an image, and container engines for tests."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.containers import Client
from tests.e2e.images import TestImage, base, files, write_archive

TAG = "selfhost-test/toy:1"
HERE = Path(__file__).parent


def toy_image() -> TestImage:
    layer = files("toy-engine", {"workspace/toy_engine.py": HERE / "toy_engine.py"})
    return TestImage(tags=(TAG,), layers=(base(), layer), entrypoint=("python3", "/workspace/toy_engine.py"))


def load(client: Client, folder: Path) -> str:
    archive = folder / "toy.tar"
    with archive.open("wb") as out:
        write_archive([toy_image()], out)
    client.run("load", "--input", str(archive))
    archive.unlink()
    return TAG if client.kind == "docker" else f"localhost/{TAG}"


@contextmanager
def short_folder() -> Iterator[Path]:
    """podman takes a runroot of at most 50 characters, and a socket's path may have 108 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="c"))
    try:
        yield folder
    finally:
        for line in Path("/proc/mounts").read_text().splitlines():  # of a daemon that was killed
            if line.split()[1].startswith(f"{folder}/"):
                subprocess.run(["umount", "--lazy", line.split()[1]])
        shutil.rmtree(folder, ignore_errors=True)


def own_networks(client: Client) -> None:
    """Root's networks are the machine's otherwise, and seen by every other podman."""
    if client.kind == "podman":
        conf = Path(client.env["CONTAINERS_CONF"])
        with conf.open("a") as out:
            out.write(f'[network]\nnetwork_config_dir = "{conf.parent}/networks"\n')
