"""Our own HTTP client: time-outs, a key that is never shown, server-sent events. The only import of httpx."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx  # 187 ms: this file is imported at use


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. `status` 0 means that there was none, and `error` says why."""

    status: int
    text: str = ""
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def json(self) -> Any:
        """The decoded body, or None when it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


class Client:
    """Talks to one base URL. Never follows redirects, never uses a proxy for loopback, never raises for a status."""

    def __init__(self, base_url: str, *, key: str | None = None, timeout_s: float = 30.0) -> None:
        self.base_url = base_url.rstrip("/")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = httpx.URL(self.base_url)
        local = url.host in ("127.0.0.1", "localhost", "::1")
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=min(5.0, timeout_s)),
            trust_env=not local,
            # Loading the trusted certificates takes some 50 ms; only a connection to https ever looks at them, and a
            # client of an http address makes none: it follows no redirect.
            verify=url.scheme == "https",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Reply:
        """One request; `path` is relative to the base URL or absolute. Network errors come back as status 0."""
        extra: dict[str, Any] = {} if timeout_s is None else {"timeout": timeout_s}
        if raw is not None:
            extra["content"] = raw
        elif body is not None:
            extra["json"] = body
        try:
            answer = self._client.request(method, self._url(path), headers=dict(headers or {}), **extra)
        except httpx.HTTPError as error:
            return Reply(status=0, error=describe(error))
        return Reply(
            status=answer.status_code,
            text=answer.text,
            headers=dict(answer.headers),
            seconds=answer.elapsed.total_seconds(),
        )

    def get(self, path: str, *, timeout_s: float | None = None) -> Reply:
        return self.request("GET", path, timeout_s=timeout_s)

    def post(self, path: str, body: object, *, timeout_s: float | None = None) -> Reply:
        return self.request("POST", path, body=body, timeout_s=timeout_s)

    @contextmanager
    def stream(self, path: str, body: object, *, timeout_s: float | None = None) -> Iterator["Stream"]:
        """POST and read the answer as it comes. Leaving the block closes the connection, read or not."""
        extra: dict[str, Any] = {} if timeout_s is None else {"timeout": timeout_s}
        try:
            with self._client.stream("POST", self._url(path), json=body, **extra) as answer:
                yield Stream(answer)
        except httpx.HTTPError as error:
            raise ConnectionError(describe(error)) from error

    def _url(self, path: str) -> str:
        return path if path.startswith(("http://", "https://")) else f"{self.base_url}/{path.lstrip('/')}"


class Stream:
    """A streamed answer: status and headers first, then raw bytes or server-sent events."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        self.status = answer.status_code
        self.headers: Mapping[str, str] = dict(answer.headers)

    def chunks(self) -> Iterator[bytes]:
        """Raw bytes as they arrive. Raises ConnectionError when the server breaks off."""
        try:
            yield from self._answer.iter_raw()
        except httpx.HTTPError as error:
            raise ConnectionError(describe(error)) from error

    def events(self) -> Iterator[str]:
        """The `data:` payloads, `[DONE]` included, decoded over chunk borders."""
        pending = b""
        for chunk in self.chunks():
            pending += chunk
            *lines, pending = pending.replace(b"\r\n", b"\n").split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    yield line[5:].strip().decode("utf-8")


def describe(error: httpx.HTTPError) -> str:
    """A network error in words, without headers (which hold the key)."""
    match error:
        case httpx.ConnectTimeout():
            return "connecting timed out"
        case httpx.TimeoutException():
            return "no answer in time"
        case httpx.ConnectError():
            return f"no connection: {error}"
        case _:
            return f"the connection broke: {error}" if str(error) else "the connection broke"
