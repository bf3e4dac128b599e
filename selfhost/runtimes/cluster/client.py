"""One cluster by the kubernetes client: plain requests, JSON in and out. login.py and forward.py import it too."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from selfhost.runtimes.cluster import faults
from selfhost.runtimes.cluster.answers import ApiError, NoAnswer, NotServed, Resource
from selfhost.runtimes.cluster.kubeconfig import Chosen, choose
from selfhost.runtimes.cluster.login import logged_in

Object = dict[str, Any]
CONNECT_S = 5.0
READ_S = 30.0
DEFAULT_NAMESPACE = "default"
APPLY = "application/apply-patch+yaml"
JSON = "application/json"


class Cluster:
    """Asks nobody before the first request. Raises ApiError, NoAnswer, NotServed; `worded` makes errors of them."""

    def __init__(self, chosen: Chosen, *, namespace: str, env: Mapping[str, str]) -> None:
        self.context = chosen.context
        self.namespace = namespace or chosen.namespace or DEFAULT_NAMESPACE
        self.server = chosen.server
        self._chosen = chosen
        self._env = env
        self._api: Any = None
        self._resources: dict[tuple[str, str], Resource] = {}

    @classmethod
    def connect(cls, context: str = "", namespace: str = "", *, env: Mapping[str, str]) -> "Cluster":
        """The cluster of `context`, or of the current one. Raises SelfhostError for a kubeconfig that does not say."""
        return cls(choose(context, env), namespace=namespace, env=env)

    @property
    def kubectl(self) -> str:
        """The beginning of a command to paste."""
        return f"kubectl --context {self.context}" if self._chosen.files else "kubectl"

    @property
    def files(self) -> str:
        """As KUBECONFIG names them."""
        return self._chosen.files

    @property
    def api(self) -> Any:
        """The library's own client, for what only it can do."""
        if self._api is None:
            self._api = logged_in(self._chosen, self._env)
            self.server = str(self._api.configuration.host)
        return self._api

    def get(self, path: str, **query: object) -> Object:
        return self.request("GET", path, query=query)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        content_type: str = JSON,
        timeout_s: float = READ_S,
    ) -> Object:
        """One whole answer, decoded; an empty one is {}."""
        answer = self._send(method, path, body, query or {}, content_type, timeout_s)
        try:
            text = answer.data.decode(errors="replace")
        except faults.of_requests() as error:
            raise _no_answer(error) from None
        finally:
            answer.release_conn()
        found = json.loads(text) if text[:1] in ("{", "[") else {"text": text}
        if answer.status >= 300:
            raise _refusal(answer.status, found)
        return dict(found)

    def lines(
        self, path: str, *, timeout_s: float, opened: Callable[[], None] = lambda: None, **query: object
    ) -> Iterator[str]:
        """A stream line by line, until the server closes it. Silence for `timeout_s` raises NoAnswer `timeout`.

        `opened` is called once the server has agreed, which may be long before the first line.
        """
        answer = self._send("GET", path, None, query, JSON, timeout_s)
        try:
            _refuse(answer)
            opened()
            yield from _split(answer)
        except (ApiError, GeneratorExit):
            raise
        except faults.of_requests() as error:
            raise _no_answer(error) from None
        finally:
            answer.close()

    def text(self, path: str, *, timeout_s: float = READ_S, **query: object) -> str:
        """An answer that is no JSON, such as a log."""
        answer = self._send("GET", path, None, query, JSON, timeout_s)
        try:
            body = str(answer.data.decode(errors="replace"))
        except faults.of_requests() as error:
            raise _no_answer(error) from None
        finally:
            answer.release_conn()
        if answer.status >= 300:
            raise _refusal(answer.status, json.loads(body) if body[:1] == "{" else {"text": body})
        return body

    def resource(self, api_version: str, kind: str) -> Resource:
        """Where objects of this kind lie, as the server says. Raises NotServed."""
        key = (api_version, kind)
        if key not in self._resources:
            base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            try:
                listed = self.get(base).get("resources") or ()
            except ApiError as error:
                if error.status != 404:
                    raise
                listed = ()
            for one in listed:
                if "/" not in str(one.get("name")):
                    self._resources[(api_version, str(one.get("kind")))] = Resource(
                        base=base,
                        plural=str(one["name"]),
                        namespaced=bool(one.get("namespaced")),
                        verbs=frozenset(one.get("verbs") or ()),
                    )
        if key not in self._resources:
            raise NotServed(api_version, kind)
        return self._resources[key]

    def path_of(self, one: Mapping[str, Any], *, namespace: str = "") -> str:
        """The address of an object."""
        meta = one.get("metadata") or {}
        resource = self.resource(str(one.get("apiVersion")), str(one.get("kind")))
        return resource.path(str(meta.get("namespace") or namespace or self.namespace), str(meta.get("name")))

    def find(self, path: str) -> Object | None:
        """The object, or None where there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, path: str, **query: object) -> tuple[Object, ...]:
        """Items of a list, page by page, each with its kind."""
        found: list[Object] = []
        more = ""
        while True:
            page = self.get(path, limit=500, **({"continue": more} if more else {}), **query)
            kind = str(page.get("kind") or "").removesuffix("List")
            version = page.get("apiVersion")
            found += [{"apiVersion": version, "kind": kind, **one} for one in page.get("items") or ()]
            more = str((page.get("metadata") or {}).get("continue") or "")
            if not more:
                return tuple(found)

    def _send(
        self, method: str, path: str, body: object, query: Mapping[str, object], content_type: str, timeout_s: float
    ) -> Any:
        import urllib3

        api = self.api
        headers = {"Accept": "application/json", "User-Agent": "selfhost", **authorization(api)}
        if body is not None:
            headers["Content-Type"] = content_type
        words = urlencode({key: _word(value) for key, value in query.items() if value is not None})
        try:
            return api.rest_client.pool_manager.request(
                method,
                f"{str(api.configuration.host).rstrip('/')}{path}{f'?{words}' if words else ''}",
                body=json.dumps(body).encode() if body is not None else None,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=timeout_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except faults.of_requests() as error:
            raise _no_answer(error) from None


def authorization(api: Any) -> dict[str, str]:
    """The header that says who asks; a credential that has expired is renewed by the library meanwhile."""
    found = api.configuration.auth_settings().get("BearerToken")
    return {str(found["key"]).lower(): str(found["value"])} if found else {}


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _split(answer: Any) -> Iterator[str]:
    held = b""
    pieces = answer.stream() if answer.chunked else iter(lambda: answer.read1(4096), b"")  # what is there, no waiting
    for piece in pieces:
        *whole, held = (held + piece).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
    if held:
        yield held.decode(errors="replace")


def _refuse(answer: Any) -> None:
    if answer.status >= 300:
        text = answer.data.decode(errors="replace")
        raise _refusal(answer.status, json.loads(text) if text[:1] == "{" else {"text": text})


def _refusal(status: int, body: Any) -> ApiError:
    tree = body if isinstance(body, dict) else {}
    return ApiError(
        status,
        reason=str(tree.get("reason") or ""),
        message=str(tree.get("message") or tree.get("text") or "").strip()[:4000],
        details=tree.get("details") or {},
    )


def _no_answer(error: Exception) -> NoAnswer:
    import urllib3

    reason = getattr(error, "reason", None)
    inner = reason if isinstance(reason, Exception) else error
    words = " ".join(str(inner).split())
    words = words.split("object at 0x", 1)[1].split(">: ", 1)[-1] if "object at 0x" in words else words
    if isinstance(inner, urllib3.exceptions.SSLError) or "CERTIFICATE" in words.upper():
        return NoAnswer("tls", words)
    if isinstance(inner, urllib3.exceptions.NewConnectionError):  # one of its parents is a time-out
        return NoAnswer("unreachable", words)
    if isinstance(inner, urllib3.exceptions.TimeoutError):
        return NoAnswer("timeout", words)
    if isinstance(inner, urllib3.exceptions.ProtocolError):
        return NoAnswer("closed", words)
    return NoAnswer("unreachable", words)
