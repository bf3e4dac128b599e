"""What a pull will bring, asked of registries of our own: Debian's, and small ones that answer as public ones do."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from selfhost.runtimes.image_size import address_of, pull_bytes
from selfhost.shapes.fact import Known, Unknown

INDEX = "application/vnd.oci.image.index.v1+json"
Answer = tuple[int, Mapping[str, str], object]


@contextmanager
def answering(answer: Callable[[str, Mapping[str, str]], Answer]) -> Iterator[str]:
    class Door(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            status, headers, body = answer(self.path, {name.lower(): said for name, said in self.headers.items()})
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, said in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, said)
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def manifest(*sizes: int) -> dict[str, object]:
    return {"schemaVersion": 2, "config": {"size": 7}, "layers": [{"size": size} for size in sizes]}


@pytest.mark.parametrize(
    ("reference", "url", "path"),
    [
        ("busybox", "https://registry-1.docker.io", "/v2/library/busybox/manifests/latest"),
        (
            "docker.io/vllm/vllm-openai:v0.32.0",
            "https://registry-1.docker.io",
            "/v2/vllm/vllm-openai/manifests/v0.32.0",
        ),
        ("lmsysorg/sglang:v1", "https://registry-1.docker.io", "/v2/lmsysorg/sglang/manifests/v1"),
        ("nvcr.io/nvidia/vllm:25.09-py3", "https://nvcr.io", "/v2/nvidia/vllm/manifests/25.09-py3"),
        ("127.0.0.1:5000/a/b:c", "http://127.0.0.1:5000", "/v2/a/b/manifests/c"),
        ("localhost:5000/a", "http://localhost:5000", "/v2/a/manifests/latest"),
        ("ghcr.io/a/b:c@sha256:12", "https://ghcr.io", "/v2/a/b/manifests/sha256:12"),
    ],
)
def test_a_reference_is_read_as_container_engines_read_it(reference: str, url: str, path: str) -> None:
    assert (address_of(reference).url, address_of(reference).path) == (url, path)


def test_the_layers_of_one_image_are_added_up() -> None:
    with answering(lambda *_: (200, {}, manifest(100, 20, 3))) as at:
        assert pull_bytes(f"{at}/a/b:1", architecture="amd64") == Known(123, how=f"the manifest at http://{at}")


def test_of_a_list_the_one_for_this_processor_counts() -> None:
    def answer(path: str, _: Mapping[str, str]) -> Answer:
        if path.endswith("/sha256:arm"):
            return 200, {}, manifest(5, 6)
        platforms = {"sha256:amd": "amd64", "sha256:arm": "arm64", "sha256:doc": "unknown"}
        rows = [{"digest": digest, "platform": {"os": "linux", "architecture": a}} for digest, a in platforms.items()]
        return 200, {"Content-Type": INDEX}, {"manifests": rows}

    with answering(answer) as at:
        found = pull_bytes(f"{at}/a/b:1", architecture="arm64")
        assert isinstance(found, Known)
        assert found.value == 11
        missing = pull_bytes(f"{at}/a/b:1", architecture="riscv64")
        assert isinstance(missing, Unknown)
        assert "linux/riscv64" in missing.reason


def test_a_registry_that_gives_tokens_to_anybody_is_asked_for_one() -> None:
    asked: list[str] = []

    def answer(path: str, headers: Mapping[str, str]) -> Answer:
        asked.append(path)
        if path.startswith("/token?"):
            return 200, {}, {"token": "for-anybody"}
        if headers.get("authorization") == "Bearer for-anybody":
            return 200, {}, manifest(8)
        realm = f"http://{headers['host']}/token"
        challenge = f'Bearer realm="{realm}",service="tests",scope="repository:a/b:pull"'
        return 401, {"WWW-Authenticate": challenge}, {}

    with answering(answer) as at:
        found = pull_bytes(f"{at}/a/b:1", architecture="amd64")
    assert isinstance(found, Known)
    assert found.value == 8
    assert asked[1] == "/token?service=tests&scope=repository%3Aa%2Fb%3Apull"


@pytest.mark.parametrize(
    ("status", "headers", "body", "why"),
    [
        (401, {"WWW-Authenticate": 'Basic realm="tests"'}, {}, "wants a login"),
        (401, {"WWW-Authenticate": 'Bearer realm="file:///etc/passwd"'}, {}, "wants a login"),
        (404, {}, {}, "HTTP 404"),
        (307, {"Location": "http://127.0.0.1:1/"}, {}, "HTTP 307"),
        (200, {}, ["not", "a", "manifest"], "no manifest"),
        (200, {}, {"schemaVersion": 1, "fsLayers": []}, "without the sizes"),
        (200, {}, {"layers": [{"size": 1}, {}]}, "without the sizes"),
    ],
)
def test_what_can_not_be_known_is_unknown_with_its_reason(
    status: int, headers: dict[str, str], body: object, why: str
) -> None:
    with answering(lambda *_: (status, headers, body)) as at:
        found = pull_bytes(f"{at}/a/b:1", architecture="amd64")
    assert isinstance(found, Unknown)
    assert why in found.reason


def test_nobody_at_all_is_unknown() -> None:
    found = pull_bytes("127.0.0.1:9/a/b:1", architecture="amd64")
    assert isinstance(found, Unknown)
    assert "no connection" in found.reason
