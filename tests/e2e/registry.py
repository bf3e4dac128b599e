"""A registry of our own on loopback: Debian's docker-registry, with or without a login, and a slow door before it."""

import json
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from selfhost.runtimes.ports import free_port
from tests.e2e.debian13 import unpacked

USER, PASSWORD = "tester", "not-secret"
# By bcrypt, the only kind that the registry takes.
_HTPASSWD = f"{USER}:$2b$04$OR.JSDlNeF.H5IGB5kyJK.wruq7FI5XX7CX4hkx2B/vAqjQzkw1BS\n"
_MANIFESTS = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, slots=True)
class Registry:
    port: int
    folder: Path

    @property
    def address(self) -> str:
        """`127.0.0.1`: docker talks to loopback without TLS."""
        return f"127.0.0.1:{self.port}"

    def digest(self, repository: str, tag: str) -> str:
        """As the registry itself says it."""
        url = f"http://{self.address}/v2/{repository}/manifests/{tag}"
        request = urllib.request.Request(url, method="HEAD", headers={"Accept": _MANIFESTS})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.headers["Docker-Content-Digest"])

    def layers(self, repository: str, tag: str) -> list[int]:
        """The sizes of its files on the registry's own disk, the image's description not among them."""
        digest = self.digest(repository, tag)
        blobs = self.folder / "docker/registry/v2/blobs/sha256"
        manifest = json.loads((blobs / digest[7:9] / digest[7:] / "data").read_text())
        names = [str(layer["digest"])[7:] for layer in manifest["layers"]]
        return [(blobs / name[:2] / name / "data").stat().st_size for name in names]

    def forget(self, repository: str, tag: str) -> None:
        """Its owner removed the tag."""
        shutil.rmtree(self.folder / "docker/registry/v2/repositories" / repository / "_manifests/tags" / tag)


@contextmanager
def registry(folder: Path, *, login: bool = False) -> Iterator[Registry]:
    made = Registry(free_port(5100), folder)
    config: dict[str, object] = {
        "version": "0.1",
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(folder)}},
        "http": {"addr": made.address},
    }
    if login:
        (folder / "htpasswd").write_text(_HTPASSWD)
        config["auth"] = {"htpasswd": {"realm": "tests", "path": str(folder / "htpasswd")}}
    (folder / "config.yml").write_text(json.dumps(config))
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(unpacked() / "usr/bin/docker-registry"), "serve", str(folder / "config.yml")], stdout=log, stderr=log
        )
    try:
        _until_it_answers(made, folder / "log")
        yield made
    finally:
        server.terminate()
        server.wait(timeout=20)


def _until_it_answers(made: Registry, log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            urllib.request.urlopen(f"http://{made.address}/v2/", timeout=5).close()
        except urllib.error.HTTPError:
            return  # it wants a login
        except OSError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        else:
            return


class _Door(BaseHTTPRequestHandler):
    """Passes everything on; layers in small parts."""

    protocol_version = "HTTP/1.1"
    beyond, bytes_per_s = "", 0

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        request = urllib.request.Request(self.beyond + self.path, method=self.command, headers=headers)
        try:
            answer = urllib.request.urlopen(request, timeout=30)
        except urllib.error.HTTPError as refused:
            answer = refused
        with answer:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            self._body(answer)

    def _body(self, answer) -> None:
        while part := answer.read(self.bytes_per_s // 20):
            try:
                self.wfile.write(part)
            except OSError:  # the daemon is gone
                self.close_connection = True
                return
            if "/blobs/" in self.path:
                time.sleep(0.05)


@contextmanager
def slow_door(made: Registry, *, bytes_per_s: int) -> Iterator[str]:
    """The registry by another port, whose layers come slowly."""
    kind = type("Door", (_Door,), {"beyond": f"http://{made.address}", "bytes_per_s": bytes_per_s})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
