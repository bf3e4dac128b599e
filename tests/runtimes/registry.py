"""Debian's docker-registry on loopback, with its content in a test's folder."""

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

USER, PASSWORD = "ana", "secret-of-ana"


@dataclass(frozen=True, slots=True)
class Registry:
    address: str
    folder: Path


@contextmanager
def registry(folder: Path, *, login: bool = False) -> Iterator[Registry]:
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lines = [
        "version: 0.1",
        "log: {level: error}",
        "storage:",
        f"  filesystem: {{rootdirectory: {folder}/data}}",
        "  delete: {enabled: true}",
        f"http: {{addr: '127.0.0.1:{port}', secret: x}}",
    ]
    if login:
        made = subprocess.run(["htpasswd", "-Bbn", USER, PASSWORD], capture_output=True, text=True, check=True)
        (folder / "htpasswd").write_text(made.stdout)
        lines.append(f"auth: {{htpasswd: {{realm: tests, path: {folder}/htpasswd}}}}")
    (folder / "config.yml").write_text("\n".join(lines) + "\n")
    program = shutil.which("docker-registry")
    assert program, "apt-get install docker-registry"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(folder / "config.yml")], stdout=log, stderr=log)
    try:
        _until_it_answers(port)
        yield Registry(f"127.0.0.1:{port}", folder)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _until_it_answers(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=2):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the registry does not answer")
