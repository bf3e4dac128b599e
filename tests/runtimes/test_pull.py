"""Pulls by real docker and podman from a real registry on loopback."""

import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.runtimes.all import runtime_of
from selfhost.runtimes.base import ContainerRuntime
from selfhost.shapes.event import Event
from tests.e2e.containers import Client, docker, docker_daemon, podman
from tests.e2e.images import TestImage, files, write_archive
from tests.runtimes.registry import PASSWORD, USER, Registry, registry
from tests.runtimes.toy_image import short_folder

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
START = {"docker": docker, "podman": podman}
LAYERS = (3, 5)
"""MiB of noise, which no registry can shorten."""


class Events:
    def __init__(self) -> None:
        self.seen: list[Event] = []

    def on(self, event: Event) -> None:
        self.seen.append(event)

    def close(self) -> None:
        return


@pytest.fixture(scope="module", params=["docker", "podman"])
def client(request) -> Iterator[Client]:
    with short_folder() as folder, START[request.param](folder) as made:
        (folder / "auth.json").write_text("{}")
        made.env["CONTAINERS_REGISTRIES_CONF"] = str(folder / "registries.conf")
        made.env["REGISTRY_AUTH_FILE"] = str(folder / "auth.json")
        made.env.setdefault("DOCKER_CONFIG", str(folder / "config"))
        yield made


@pytest.fixture(scope="module")
def shelf(client, tmp_path_factory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("registry")
    with registry(folder / "open") as made:
        publish(client, made, "noise", tmp_path_factory.mktemp("image"))
        yield made


@pytest.fixture
def runtime(client, paths: Paths) -> ContainerRuntime:
    return runtime_of(client.kind, paths=paths, system=LocalSystem(client.env))


def publish(client: Client, to: Registry, name: str, folder: Path, *, arch: str = "amd64", words: str = "") -> str:
    """Push an image of noise and remove it here."""
    allow(client, to)
    size = [files(f"noise-{name}-{one}", {f"noise/{one}": os.urandom(one * 2**20)}) for one in LAYERS]
    tag = f"{to.address}/tests/{name}:1"
    image = TestImage(tags=(tag,), layers=tuple(size), entrypoint=("/serve",), arch=arch, labels={"words": words})
    archive = folder / "noise.tar"
    with archive.open("wb") as out:
        write_archive([image], out)
    client.run("load", "--input", str(archive))
    insecure = () if client.kind == "docker" else ("--tls-verify=false",)
    client.run("push", *insecure, tag)
    client.run("rmi", "-f", tag)
    return tag


def allow(client: Client, plain: Registry) -> None:
    """Without TLS. Docker allows that on loopback by itself."""
    if client.kind == "podman":
        conf = Path(client.env["CONTAINERS_REGISTRIES_CONF"])
        conf.write_text(f'[[registry]]\nlocation = "{plain.address}"\ninsecure = true\n')


def digest_in(to: Registry, name: str) -> str:
    accept = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"
    request = urllib.request.Request(f"http://{to.address}/v2/tests/{name}/manifests/1", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers["Docker-Content-Digest"]


def failed(runtime: ContainerRuntime, reference: str) -> EnvironmentMissing:
    with pytest.raises(EnvironmentMissing) as raised:
        runtime.pull(reference, sink=Events(), step="fetch")
    assert raised.value.fix
    return raised.value


def test_a_pull_gives_the_digest_and_progress_that_never_goes_back(runtime, client, shelf) -> None:
    events = Events()
    image = runtime.pull(f"{shelf.address}/tests/noise:1", sink=events, step="fetch")
    assert image.digest == digest_in(shelf, "noise")
    assert image.platform == "linux/amd64"
    assert image.entrypoint == ("/serve",)
    assert runtime.image(f"{shelf.address}/tests/noise:1") == image
    done = [event.done for event in events.seen if event.done is not None]
    assert done == sorted(done)
    assert all(event.total is None or (event.done or 0) <= event.total for event in events.seen)
    if client.kind == "docker":  # podman's command says nothing of bytes without a terminal
        assert events.seen[-1].total is not None
        assert events.seen[-1].done == events.seen[-1].total > 7 * 2**20
    assert events.seen[-1].text.endswith(": 2 of 2 layers" if client.kind == "docker" else ": 3 layers")


def test_by_digest_the_same_comes(runtime, shelf) -> None:
    digest = digest_in(shelf, "noise")
    assert runtime.pull(f"{shelf.address}/tests/noise@{digest}", sink=Events(), step="fetch").digest == digest


def test_a_tag_that_is_not_there(runtime, shelf) -> None:
    error = failed(runtime, f"{shelf.address}/tests/noise:none")
    assert error.id == "RT075"
    assert f"{shelf.address}/tests/noise:none" in error.what


def test_a_digest_that_is_not_there(runtime, shelf) -> None:
    assert failed(runtime, f"{shelf.address}/tests/noise@sha256:{'0' * 64}").id == "RT075"


def test_content_that_was_changed_in_the_registry(runtime, client, shelf, tmp_path) -> None:
    tag = publish(client, shelf, "damaged", tmp_path)
    blobs = [path for path in (shelf.folder / "data").rglob("data") if path.stat().st_size > 4 * 2**20]
    layer = max(blobs, key=lambda path: path.stat().st_mtime_ns)
    content = bytearray(layer.read_bytes())
    content[len(content) // 2] ^= 0xFF
    layer.write_bytes(content)
    assert failed(runtime, tag).id == "RT080"
    assert runtime.image(tag) is None


def test_no_registry_at_all(runtime) -> None:
    assert failed(runtime, "127.0.0.1:9/tests/noise:1").id == "RT077"


def test_a_registry_that_wants_a_login(runtime, client, tmp_path, paths) -> None:
    with registry(tmp_path / "closed", login=True) as closed:
        tag = f"{closed.address}/tests/noise:1"
        allow(client, closed)
        error = failed(runtime, tag)
        assert error.id == "RT076"
        assert any(f"login {closed.address}" in fix for fix in error.fix)
        insecure = () if client.kind == "docker" else ("--tls-verify=false",)
        client.run("login", *insecure, "-u", USER, "-p", PASSWORD, closed.address)
        publish(client, closed, "noise", tmp_path)
        anew = runtime_of(client.kind, paths=paths, system=LocalSystem(client.env))
        assert anew.pull(tag, sink=Events(), step="fetch").digest.startswith("sha256:")


def test_a_daemon_that_dies_during_a_pull_is_told_and_the_next_pull_is_whole(tmp_path, paths) -> None:
    with registry(tmp_path / "registry") as shelf, short_folder() as folder, docker_daemon(folder) as daemon:
        tag = publish(daemon.client, shelf, "noise", tmp_path)
        made = runtime_of("docker", paths=paths, system=LocalSystem(daemon.client.env))

        class Killing(Events):
            def on(self, event: Event) -> None:
                super().on(event)
                if len(self.seen) == 1:
                    daemon.kill()

        with pytest.raises(EnvironmentMissing) as raised:
            made.pull(tag, sink=Killing(), step="fetch")
        assert raised.value.id in ("RT069", "RT063")
        # Its containerd died with it; where nobody reaps it, the next daemon would take it for a running one.
        (folder / "exec/containerd/containerd.pid").unlink(missing_ok=True)
        daemon.start()
        again = runtime_of("docker", paths=paths, system=LocalSystem(daemon.client.env))
        assert again.pull(tag, sink=Events(), step="fetch").digest == digest_in(shelf, "noise")
