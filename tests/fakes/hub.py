"""A small model hub on loopback, speaking as much of the hub's API as huggingface_hub 2.x asks for.

Repositories are folders `ROOT/org/name`; each has one commit (the digest of its files) on the branch `main`.
Faults are options of the constructor and of the command line:

    python tests/fakes/hub.py --root DIR --port 0 [--gated org/name] [--break-after BYTES] …

It prints `http://127.0.0.1:PORT` and serves until it is ended. Set HF_ENDPOINT to that address.
"""

import argparse
import hashlib
import json
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

LFS_SUFFIXES = (".safetensors", ".bin", ".gguf")


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that leaves in the middle of a file is no error of the hub's."""


class FakeHub:
    """The hub. `requests` lists what was asked (method, path, range), `tokens` which tokens came along."""

    def __init__(
        self,
        root: Path,
        *,
        port: int = 0,
        token: str = "",
        gated: tuple[str, ...] = (),
        break_after: int | None = None,
        breaks: int = 1,
        rate_limit: bool = False,
        status: int = 0,
        ignore_range: bool = False,
        corrupt: bool = False,
        chunk_delay_s: float = 0.0,
    ) -> None:
        self.root = Path(root)
        self.token, self.gated = token, gated
        self.break_after, self.breaks_left = break_after, breaks
        self.rate_limit, self.status = rate_limit, status
        self.ignore_range, self.corrupt, self.chunk_delay_s = ignore_range, corrupt, chunk_delay_s
        self.requests: list[tuple[str, str, str]] = []
        self.tokens: list[str] = []
        self.lock = threading.Lock()
        self._digests: dict[Path, str] = {}
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = _Server(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def paths(self, method: str = "GET") -> list[str]:
        """What was asked for by `method`, in order."""
        return [path for asked, path, _ in self.requests if asked == method]

    def files(self, repo_id: str) -> dict[str, Path]:
        folder = self.root / repo_id
        return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}

    def exists(self, repo_id: str) -> bool:
        return repo_id.count("/") == 1 and (self.root / repo_id).is_dir()

    def commit(self, repo_id: str) -> str:
        total = hashlib.sha1(repo_id.encode())
        for name, path in self.files(repo_id).items():
            total.update(f"{name}\0{self.etag(path)}\0".encode())
        return total.hexdigest()

    def etag(self, path: Path) -> str:
        """SHA-256 for large files, as Git LFS has it; Git's own SHA-1 of a blob for the others."""
        if path not in self._digests:
            data = path.read_bytes()
            is_lfs = path.name.endswith(LFS_SUFFIXES)
            git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            self._digests[path] = hashlib.sha256(data).hexdigest() if is_lfs else git
        return self._digests[path]

    def take_break(self) -> bool:
        with self.lock:
            if self.break_after is None or self.breaks_left <= 0:
                return False
            self.breaks_left -= 1
            return True


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes: 40 ms of delayed ACK for each answer else

    def log_message(self, *_: object) -> None:
        return None

    def do_HEAD(self) -> None:
        self._serve(with_body=False)

    def do_GET(self) -> None:
        self._serve(with_body=True)

    def _serve(self, *, with_body: bool) -> None:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        with self.hub.lock:
            self.hub.requests.append((self.command, path, self.headers.get("Range", "")))
            self.hub.tokens.append(self.headers.get("Authorization", "").removeprefix("Bearer "))
        if path == "/":
            return self._json({"hub": "fake"})
        if self.hub.status:
            return self._refuse(self.hub.status, "", "the hub has trouble")
        if self.hub.rate_limit:
            return self._refuse(429, "", "too many requests", {"Retry-After": "17"})
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/(.+?))?/?", path)
        if api:
            return self._api(api[1], kind=api[2] or "revision", revision=api[3] or "main")
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if file:
            return self._file(file[1], revision=file[2], name=file[3], with_body=with_body)
        return self._refuse(404, "", "not found")

    def _refused(self, repo_id: str, revision: str) -> bool:
        """Answer what forbids to go on. A missing repository looks like a private one to a stranger, as on the hub."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        hub = self.hub
        if token and hub.token and token != hub.token:
            self._refuse(401, "", "Invalid credentials in Authorization header")
        elif not hub.exists(repo_id):
            status, word = (404, "Repository not found") if token else (401, "Invalid username or password.")
            self._refuse(status, "RepoNotFound", word)
        elif revision not in ("main", hub.commit(repo_id)):
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return False
        return True

    def _gated(self, repo_id: str) -> bool:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if repo_id not in self.hub.gated or (token and token == self.hub.token):
            return False
        self._refuse(403 if token else 401, "GatedRepo", f"Access to model {repo_id} is restricted.")
        return True

    def _api(self, repo_id: str, *, kind: str, revision: str) -> None:
        if self._refused(repo_id, revision):
            return
        files = self.hub.files(repo_id)
        if kind == "tree":
            self._json([self._entry(name, path) for name, path in files.items()])
        else:
            gated: Any = "manual" if repo_id in self.hub.gated else False
            sized = "blobs=true" in self.path.lower()
            siblings = [
                {"rfilename": name, **({"size": path.stat().st_size} if sized else {})} for name, path in files.items()
            ]
            self._json(
                {"_id": "0", "id": repo_id, "modelId": repo_id, "sha": self.hub.commit(repo_id), "private": False,
                 "gated": gated, "disabled": False, "tags": [], "downloads": 0, "likes": 0, "siblings": siblings}
            )  # fmt: skip

    def _entry(self, name: str, path: Path) -> dict[str, Any]:
        size, etag = path.stat().st_size, self.hub.etag(path)
        entry: dict[str, Any] = {"type": "file", "oid": etag[:40], "size": size, "path": name}
        if path.name.endswith(LFS_SUFFIXES):
            entry["lfs"] = {"oid": etag, "size": size, "pointerSize": 134}
        return entry

    def _file(self, repo_id: str, *, revision: str, name: str, with_body: bool) -> None:
        if self._refused(repo_id, revision) or self._gated(repo_id):
            return
        path = self.hub.files(repo_id).get(name)
        if path is None:
            self._refuse(404, "EntryNotFound", f"Entry not found: {name}")
            return
        data = path.read_bytes()
        etag = self.hub.etag(path)
        asked = None if self.hub.ignore_range else re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        if asked and start >= len(data):
            self._refuse(416, "", "the range lies behind the end", {"Content-Range": f"bytes */{len(data)}"})
            return
        if self.hub.corrupt and with_body:
            data = data[:-1] + bytes([data[-1] ^ 255])
        body = data[start : int(asked[2]) + 1 if asked and asked[2] else None]
        self.send_response(206 if asked else 200)
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Repo-Commit", self.hub.commit(repo_id))
        if path.name.endswith(LFS_SUFFIXES):
            self.send_header("X-Linked-Etag", f'"{etag}"')
            self.send_header("X-Linked-Size", str(len(data)))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{len(data)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self._send(body, may_break=path.name.endswith(LFS_SUFFIXES))

    def _send(self, body: bytes, *, may_break: bool) -> None:
        cut = self.hub.break_after
        if may_break and cut is not None and len(body) > cut and self.hub.take_break():
            self.wfile.write(body[:cut])
            self.wfile.flush()
            self.close_connection = True
            return
        step = 64 * 1024
        for start in range(0, len(body), step):
            try:
                self.wfile.write(body[start : start + step])
            except (BrokenPipeError, ConnectionResetError):
                return
            if self.hub.chunk_delay_s:
                threading.Event().wait(self.hub.chunk_delay_s)

    def _json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        body = json.dumps({"error": message}).encode()
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake model hub on loopback.")
    parser.add_argument("--root", type=Path, required=True, help="folder with org/name/ repositories")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default="", help="the one token that is valid and has access to gated repositories")
    parser.add_argument("--gated", action="append", default=[], metavar="ORG/NAME")
    parser.add_argument("--break-after", type=int, metavar="BYTES", help="close the connection within a weight file")
    parser.add_argument("--breaks", type=int, default=1, help="how often to do that")
    parser.add_argument("--rate-limit", action="store_true", help="answer 429 to everything")
    parser.add_argument("--status", type=int, default=0, help="answer this status to everything")
    parser.add_argument("--ignore-range", action="store_true", help="answer 200 and the whole file to a range")
    parser.add_argument("--corrupt", action="store_true", help="flip the last byte of each file")
    parser.add_argument("--chunk-delay", type=float, default=0.0, metavar="SECONDS", help="pause after each 64 KiB")
    asked = parser.parse_args()
    hub = FakeHub(
        asked.root, port=asked.port, token=asked.token, gated=tuple(asked.gated), break_after=asked.break_after,
        breaks=asked.breaks, rate_limit=asked.rate_limit, status=asked.status, ignore_range=asked.ignore_range,
        corrupt=asked.corrupt, chunk_delay_s=asked.chunk_delay,
    )  # fmt: skip
    with hub:
        print(hub.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
