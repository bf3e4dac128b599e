"""The instrument handed to every check: it asks the endpoint, within the check's time and the server's context."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from selfhost.core.system import System
from selfhost.shapes.endpoint import Endpoint, Inspector
from selfhost.smoke.wire import Answer, Malformed, Streamed, read_chat, read_completion, read_stream

if TYPE_CHECKING:  # core.http is imported at use: httpx costs 187 ms
    from selfhost.core.http import Client, Reply

Fields = Mapping[str, object]
GREEDY: Fields = {"temperature": 0, "seed": 1}
SMALL_TOKENS = 32
"""A request for no more is sent as it is: a check that asks for so little means just this number."""
_TOO_LONG = re.compile(
    r"max_(?:completion_|new_)?tokens|max_model_len|context[ _]length|maximum context", re.IGNORECASE
)


class Unanswered(Exception):
    """A request that should have been answered was not; the runner makes it the check's failure."""

    def __init__(self, what: str, *, status: int = 0, body: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.status = status
        self.body = body


class TooLong(Unanswered):
    """Refused for its length, although it was made as short as the check can use; the check is undecided by it."""


@dataclass(slots=True)
class Clock:
    """When the running check must be over, and how slow this machine was seen to be (1 = a quick one)."""

    deadline: float = float("inf")
    slowness: float = 1.0

    def start(self, budget_s: float) -> None:
        self.deadline = time.monotonic() + budget_s * self.slowness

    def left_s(self) -> float:
        return max(0.5, self.deadline - time.monotonic())


class Probe:
    """Asks one endpoint. Raises Unanswered when a request that should work gets no proper answer."""

    def __init__(
        self, endpoint: Endpoint, *, key: str, client: "Client", system: System, inspector: Inspector | None = None
    ) -> None:
        self.endpoint = endpoint
        self.key = key
        self.client = client
        self.system = system
        self.inspector = inspector
        self.clock = Clock()
        self.unheard = False
        """Whether a request of the running check got no answer at all."""

    @property
    def root(self) -> str:
        """The server's address without `/v1`."""
        return self.endpoint.base_url.rstrip("/").removesuffix("/v1")

    @cached_property
    def context(self) -> int | None:
        """Tokens of prompt and answer together: as planned, else as /v1/models says; None when nobody says."""
        if self.endpoint.context:
            return self.endpoint.context
        body = self.get("models").json
        rows = body.get("data") if isinstance(body, dict) else None
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and row.get("id") == self.endpoint.model:
                length = row.get("max_model_len")
                return length if isinstance(length, int) and length > 0 else None
        return None

    def get(self, path: str) -> "Reply":
        return self._heard(self.client.get(path, timeout_s=self.clock.left_s()))

    def post(self, path: str, body: object) -> "Reply":
        return self._heard(self.client.post(path, body, timeout_s=self.clock.left_s()))

    def chat_body(self, ask: str, fields: Fields) -> dict[str, object]:
        """Greedy unless `fields` say otherwise; a field that is None is left to the server."""
        body = {"model": self.endpoint.model, "messages": [{"role": "user", "content": ask}], **GREEDY, **fields}
        return {name: value for name, value in body.items() if value is not None}

    def any_body(self, ask: str, fields: Fields) -> tuple[str, dict[str, object]]:
        """Path and body of a request that generates: a chat, or a completion where the model has no chat template."""
        if self.endpoint.chat:
            return "chat/completions", self.chat_body(ask, fields)
        return "completions", {"model": self.endpoint.model, "prompt": ask, **GREEDY, **fields}

    def chat(self, ask: str, **fields: object) -> Answer:
        """One unstreamed chat answer, greedy unless `fields` say otherwise."""
        return self._read(self._ask("chat/completions", self._fitted(self.chat_body(ask, fields))), read_chat)

    def complete(self, prompt: str | list[int], **fields: object) -> tuple[Answer, Any]:
        """One completion of raw text or token ids, and the choice as it came."""
        body = {"model": self.endpoint.model, "prompt": prompt, **GREEDY, **fields}
        reply = self._ask("completions", self._fitted(body))
        answer = self._read(reply, read_completion)
        return answer, reply.json["choices"][0]

    def stream(self, ask: str, **fields: object) -> Streamed:
        """One streamed chat answer with a usage chunk asked for."""
        streaming = {"stream": True, "stream_options": {"include_usage": True}}
        body = self._fitted(self.chat_body(ask, fields) | streaming)
        try:
            return self._stream(body)
        except TooLong:
            shorter = _shorter(body)
            if shorter is None:
                raise
            return self._stream(shorter)

    def _stream(self, body: Mapping[str, object]) -> Streamed:
        try:
            with self.client.stream("chat/completions", body, timeout_s=self.clock.left_s()) as answer:
                if answer.status != 200:
                    text = b"".join(answer.chunks()).decode("utf-8", "replace")
                    raise _refusal(f"a streamed request was answered {answer.status}", answer.status, text)
                kind = answer.headers.get("content-type", "")
                return read_stream(answer.events(), content_type=kind, wants_usage=True)
        except ConnectionError:
            self.unheard = True
            raise

    def _heard(self, reply: "Reply") -> "Reply":
        self.unheard = self.unheard or reply.status == 0
        return reply

    def _fitted(self, body: Mapping[str, object]) -> Mapping[str, object]:
        """Asks for what the context can hold. A chat without max_tokens gets all that is left, a completion half."""
        asked = body.get("max_tokens")
        if not isinstance(asked, int) or asked <= SMALL_TOKENS or self.context is None or asked <= self.context // 2:
            return body
        return _shorter(body) or body if "messages" in body else {**body, "max_tokens": max(1, self.context // 2)}

    def _ask(self, path: str, body: Mapping[str, object]) -> "Reply":
        """A request that is refused as too long is made shorter, once."""
        reply = self.post(path, body)
        shorter = _shorter(body)
        return self.post(path, shorter) if _is_too_long(reply.status, reply.text) and shorter is not None else reply

    def _read(self, reply: "Reply", reader: Any) -> Answer:
        if reply.status == 0:
            raise Unanswered(f"a request got no answer: {reply.error}")
        if not reply.ok:
            raise _refusal(f"a request was answered {reply.status}", reply.status, reply.text)
        try:
            answer: Answer = reader(reply.json)
        except Malformed as error:
            raise Unanswered(f"the answer is not one: {error}", status=reply.status, body=reply.text) from None
        return answer


def _is_too_long(status: int, text: str) -> bool:
    return status in (400, 422) and _TOO_LONG.search(text) is not None


def _refusal(what: str, status: int, text: str) -> Unanswered:
    kind = TooLong if _is_too_long(status, text) else Unanswered
    return kind(what, status=status, body=text)


def _shorter(body: Mapping[str, object]) -> Mapping[str, object] | None:
    """The same request for fewer tokens; None when it asks for few already. A server gives a chat what is left."""
    asked = body.get("max_tokens")
    if not isinstance(asked, int) or asked <= SMALL_TOKENS:
        return None
    if "messages" in body:
        return {name: value for name, value in body.items() if name != "max_tokens"}
    return {**body, "max_tokens": SMALL_TOKENS}
