"""A kubelet that runs no containers: the pods of one node become processes of this machine, as a test says.

It speaks to an API server over HTTP or HTTPS, and serves what an API server asks of a kubelet: logs, and port-forwards
as websockets (`v4.channel.k8s.io`). Standard library only.
"""

import base64
import datetime as dt
import hashlib
import json
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

Object = dict[str, Any]
ENGINE = "engine"
BACK_OFF_S = 2.0


@dataclass(frozen=True)
class Waiting:
    """A container that does not start, as a kubelet reports it."""

    reason: str
    message: str = ""


Run = Sequence[str] | Waiting | None
"""The process that stands for a container; None for one that ends well at once."""


def default_image(pod: Object, container: Object) -> Run:  # noqa: ARG001
    return None


@dataclass
class _Started:
    process: subprocess.Popen[bytes] | None = None
    log: Path | None = None
    previous: Path | None = None
    restarts: int = 0
    last: Object | None = None
    since: str = ""
    ready: bool = False
    done: Object | None = None
    waiting: Waiting | None = None
    again_at: float = 0.0


@dataclass
class _Pod:
    pod: Object
    containers: dict[str, _Started] = field(default_factory=dict)
    going_since: float = 0.0


def now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet:
    """`run(pod, container)` gives the process of a container. `engine_port` is where the engine's process listens."""

    def __init__(
        self,
        folder: Path,
        *,
        server: str,
        token: str = "",
        node: str = "node-1",
        run: Callable[[Object, Object], Run] = default_image,
        engine_port: int = 0,
        start_after_s: float = 0.0,
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        self.folder, self.server, self.token, self.node = folder, server, token, node
        self.run, self.engine_port, self.start_after_s = run, engine_port, start_after_s
        self.pods: dict[str, _Pod] = {}
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self.service: ThreadingHTTPServer | None = None
        if tls is not None:
            self._serve(tls)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(timeout=10)
        for pod in self.pods.values():
            for one in pod.containers.values():
                if one.process is not None and one.process.poll() is None:
                    one.process.kill()
                    one.process.wait()
        if self.service is not None:
            self.service.shutdown()
            self.service.server_close()

    def ask(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Object:
        context = None
        if self.server.startswith("https"):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.server}{path}", data=data, method=method)
        request.add_header("Content-Type", kind)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return json.load(answer)

    def _loop(self) -> None:
        while not self._end.wait(0.1):
            try:
                query = urllib.parse.urlencode({"fieldSelector": f"spec.nodeName={self.node}"})
                listed = self.ask("GET", f"/api/v1/pods?{query}").get("items") or []
                seen = {one["metadata"]["uid"]: one for one in listed}
                for uid, pod in seen.items():
                    self._keep(self.pods.setdefault(uid, _Pod(pod)), pod)
                for uid in [uid for uid in self.pods if uid not in seen]:
                    self._kill(self.pods.pop(uid), signal.SIGKILL)
            except (urllib.error.URLError, OSError, ValueError):
                continue

    def _keep(self, mine: _Pod, pod: Object) -> None:
        mine.pod = pod
        if pod["metadata"].get("deletionTimestamp"):
            self._leave(mine)
            return
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            return
        inits = pod["spec"].get("initContainers") or []
        for container in inits:
            if not self._ended(mine, container, once=True):
                self._report(mine)
                return
        for container in pod["spec"]["containers"]:
            self._ended(mine, container, once=pod["spec"].get("restartPolicy") == "Never")
        self._report(mine)

    def _ended(self, mine: _Pod, container: Object, *, once: bool) -> bool:
        """Start it when it was not, look after it, and say whether it is done for good."""
        name = container["name"]
        started = mine.containers.get(name)
        if started is None:
            started = mine.containers[name] = _Started()
            self._start(mine, container, started)
        elif started.again_at:
            if time.monotonic() >= started.again_at:
                started.again_at, started.waiting = 0.0, None
                started.restarts += 1
                self._start(mine, container, started)
        elif started.waiting is not None:
            what = self.run(mine.pod, container)
            if not isinstance(what, Waiting):
                started.waiting = None
                self._start(mine, container, started)
        if started.process is not None and started.process.poll() is not None:
            code = started.process.returncode
            started.last = {
                "exitCode": 128 - code if code < 0 else code, "startedAt": started.since, "finishedAt": now(),
                "reason": "Completed" if code == 0 else "Error",
            }  # fmt: skip
            started.process, started.ready = None, False
            if once:
                started.done = started.last
            else:
                started.previous, started.again_at = started.log, time.monotonic() + BACK_OFF_S
                started.waiting = Waiting("CrashLoopBackOff", "back-off 10s restarting failed container")
        if started.process is not None and name == ENGINE:
            started.ready = self._healthy()
        return started.done is not None and started.done["exitCode"] == 0

    def _start(self, mine: _Pod, container: Object, started: _Started) -> None:
        what = self.run(mine.pod, container)
        started.since = now()
        if isinstance(what, Waiting):
            started.waiting = what
            return
        if what is None:
            started.done = {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}
            return
        time.sleep(self.start_after_s)
        started.log = self.folder / f"{mine.pod['metadata']['name']}.{container['name']}.{started.restarts}.log"
        env = {each["name"]: str(each["value"]) for each in container.get("env") or () if "value" in each}
        for each in container.get("env") or ():
            if "valueFrom" in each:
                env[each["name"]] = self._secret(mine.pod, each)
        with started.log.open("wb") as log:
            started.process = subprocess.Popen(
                what,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"PATH": "/usr/bin:/bin", **env, "HOME": str(self.folder)},
                cwd=self.folder,
            )

    def _secret(self, pod: Object, variable: Object) -> str:
        source = variable["valueFrom"].get("secretKeyRef")
        if not source:
            return ""
        try:
            found = self.ask("GET", f"/api/v1/namespaces/{pod['metadata']['namespace']}/secrets/{source['name']}")
            return base64.b64decode(found["data"][source["key"]]).decode()
        except (urllib.error.HTTPError, KeyError):
            return ""

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.engine_port}/health", timeout=10) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _leave(self, mine: _Pod) -> None:
        mine.going_since = mine.going_since or time.monotonic()
        grace = float(mine.pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        over = time.monotonic() - mine.going_since > grace
        self._kill(mine, signal.SIGKILL if over else signal.SIGTERM)
        if all(one.process is None or one.process.poll() is not None for one in mine.containers.values()):
            meta = mine.pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            self.ask("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})

    def _kill(self, mine: _Pod, what: signal.Signals) -> None:
        for one in mine.containers.values():
            if one.process is not None and one.process.poll() is None:
                one.process.send_signal(what)

    def _report(self, mine: _Pod) -> None:
        status = self.status_of(mine)
        if status == {key: mine.pod.get("status", {}).get(key) for key in status}:
            return
        meta = mine.pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        conditions = {each["type"]: each for each in mine.pod.get("status", {}).get("conditions") or ()}
        conditions |= {each["type"]: each for each in status["conditions"]}
        body = {"status": {**status, "conditions": list(conditions.values())}}
        self.ask("PATCH", path, body, "application/merge-patch+json")

    def status_of(self, mine: _Pod) -> Object:
        spec = mine.pod["spec"]
        inits = [self._of(mine, each) for each in spec.get("initContainers") or ()]
        mains = [self._of(mine, each) for each in spec["containers"]]
        ready = all(each["ready"] for each in mains)
        done = [mine.containers.get(each["name"], _Started()).done for each in spec["containers"]]
        phase = "Running" if any("running" in each["state"] for each in mains) else "Pending"
        if any(each["restartCount"] for each in mains):
            phase = "Running"
        if all(done):
            phase = "Succeeded" if all(each["exitCode"] == 0 for each in done if each) else "Failed"
        found: Object = {
            "phase": phase, "hostIP": "127.0.0.1", "podIP": "127.0.0.1", "containerStatuses": mains,
            "conditions": [
                {"type": kind, "status": "True" if ready else "False", "lastTransitionTime": mains[0]["since"] or None}
                for kind in ("Ready", "ContainersReady")
            ],
        }  # fmt: skip
        for each in (*mains, *inits):
            each.pop("since")
        if inits:
            found["initContainerStatuses"] = inits
        return found

    def _of(self, mine: _Pod, container: Object) -> Object:
        one = mine.containers.get(container["name"])
        state: Object = {"waiting": {"reason": "PodInitializing"}}
        if one is not None and one.waiting is not None:
            state = {"waiting": {"reason": one.waiting.reason, "message": one.waiting.message}}
        elif one is not None and one.done is not None:
            state = {"terminated": one.done}
        elif one is not None and one.process is not None:
            state = {"running": {"startedAt": one.since}}
        found: Object = {
            "name": container["name"], "image": container["image"], "imageID": f"stand-in://{container['image']}",
            "ready": bool(one and one.ready), "restartCount": one.restarts if one else 0, "state": state,
            "since": one.since if one else "",
        }  # fmt: skip
        if one is not None and one.last is not None and one.done is None:
            found["lastState"] = {"terminated": one.last}
        return found

    def log_of(self, pod: str, container: str, query: Mapping[str, str]) -> str | None:
        """As a kubelet serves it; None where the container was never started."""
        for mine in list(self.pods.values()):
            if mine.pod["metadata"]["name"] == pod:
                one = mine.containers.get(container)
                file = None if one is None else one.previous if query.get("previous") == "true" else one.log
                return None if file is None else _stamped(file, query, one.since if one else "")
        return None

    def _serve(self, tls: tuple[Path, Path]) -> None:
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                parts = urllib.parse.urlsplit(self.path)
                query = dict(urllib.parse.parse_qsl(parts.query))
                words = parts.path.strip("/").split("/")
                if words[0] == "containerLogs":
                    text = kubelet.log_of(words[2], words[3], query)
                    body = (text or "").encode()
                    self.send_response(200 if text is not None else 400)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                elif words[0] == "portForward":
                    self.close_connection = True
                    forward_websocket(self, kubelet.engine_port, int(query.get("port") or query.get("ports") or 0))
                else:
                    self.send_error(404)

            do_POST = do_GET  # noqa: N815 -- the base class calls it so

        self.service = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        self.service.socket = context.wrap_socket(self.service.socket, server_side=True)
        threading.Thread(target=self.service.serve_forever, daemon=True).start()


def _stamped(file: Path, query: Mapping[str, str], since: str) -> str:
    """Each line with a time: of a file that has none, its start and a number."""
    start = dt.datetime.fromisoformat(since) if since else dt.datetime.now(dt.UTC)
    lines = file.read_text(errors="replace").splitlines()
    rows = []
    for number, line in enumerate(lines):
        at = f"{start:%Y-%m-%dT%H:%M:%S}.{number:09d}Z"
        rows.append(f"{at} {line}" if query.get("timestamps") == "true" else line)
    if query.get("tailLines"):
        rows = rows[-int(query["tailLines"]) :] if int(query["tailLines"]) else []
    return "".join(f"{row}\n" for row in rows)


def forward_websocket(handler: BaseHTTPRequestHandler, port: int, asked: int) -> None:
    """Answer the upgrade, then carry bytes between channel 0 and the port."""
    key = handler.headers.get("Sec-WebSocket-Key") or ""
    accept = base64.b64encode(hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()).decode()
    handler.wfile.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Protocol: v4.channel.k8s.io\r\nSec-WebSocket-Accept: " + accept.encode() + b"\r\n\r\n"
    )
    handler.wfile.flush()
    near = handler.connection
    for channel in (0, 1):
        _send(near, bytes((channel,)) + struct.pack("<H", asked))
    try:
        far = socket.create_connection(("127.0.0.1", port), timeout=10)
    except OSError as error:
        _send(near, b"\x01" + str(error).encode())
        _send(near, b"", opcode=8)
        return
    far.settimeout(None)

    def back() -> None:
        try:
            while piece := far.recv(32768):
                _send(near, b"\x00" + piece)
        except OSError:
            pass
        try:
            _send(near, b"", opcode=8)
            near.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    threading.Thread(target=back, daemon=True).start()
    with far:
        while (frame := _receive(handler)) is not None:
            if frame[:1] == b"\x00":
                try:
                    far.sendall(frame[1:])
                except OSError:
                    break


def _send(sock: socket.socket, data: bytes, *, opcode: int = 2) -> None:
    size = len(data)
    head = bytes((0x80 | opcode,))
    head += bytes((size,)) if size < 126 else b"\x7e" + struct.pack(">H", size)
    sock.sendall(head + data)


def _receive(handler: BaseHTTPRequestHandler) -> bytes | None:
    """One frame's payload; None when the other end is gone."""
    try:
        head = handler.rfile.read(2)
        if len(head) < 2 or head[0] & 0x0F == 8:
            return None
        size = head[1] & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", handler.rfile.read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", handler.rfile.read(8))
        mask = handler.rfile.read(4) if head[1] & 0x80 else b"\0\0\0\0"
        data = handler.rfile.read(size)
        return bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
    except OSError:
        return None
