"""The instrument handed to every check: it asks the endpoint, within the time that the check has."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from selfhost.core.system import System
from selfhost.shapes.endpoint import Endpoint, Inspector
from selfhost.smoke.wire import Answer, Malformed, Streamed, read_chat, read_completion, read_stream

if TYPE_CHECKING:  # core.http is imported at use: httpx costs 187 ms
    from selfhost.core.http import Client, Reply

Fields = Mapping[str, object]
GREEDY: Fields = {"temperature": 0, "seed": 1}


class Unanswered(Exception):
    """A request that should have been answered was not; the runner makes it the check's failure."""

    def __init__(self, what: str, *, status: int = 0, body: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.status = status
        self.body = body


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

    @property
    def root(self) -> str:
        """The server's address without `/v1`."""
        return self.endpoint.base_url.rstrip("/").removesuffix("/v1")

    def get(self, path: str) -> "Reply":
        return self.client.get(path, timeout_s=self.clock.left_s())

    def post(self, path: str, body: object) -> "Reply":
        return self.client.post(path, body, timeout_s=self.clock.left_s())

    def chat_body(self, ask: str, fields: Fields) -> dict[str, object]:
        """Greedy unless `fields` say otherwise; a field that is None is left to the server."""
        body = {"model": self.endpoint.model, "messages": [{"role": "user", "content": ask}], **GREEDY, **fields}
        return {name: value for name, value in body.items() if value is not None}

    def chat(self, ask: str, **fields: object) -> Answer:
        """One unstreamed chat answer, greedy unless `fields` say otherwise."""
        return self._read(self.post("chat/completions", self.chat_body(ask, fields)), read_chat)

    def complete(self, prompt: str | list[int], **fields: object) -> tuple[Answer, Any]:
        """One completion of raw text or token ids, and the choice as it came."""
        reply = self.post("completions", {"model": self.endpoint.model, "prompt": prompt, **GREEDY, **fields})
        answer = self._read(reply, read_completion)
        return answer, reply.json["choices"][0]

    def stream(self, ask: str, **fields: object) -> Streamed:
        """One streamed chat answer with a usage chunk asked for."""
        body = self.chat_body(ask, fields) | {"stream": True, "stream_options": {"include_usage": True}}
        with self.client.stream("chat/completions", body, timeout_s=self.clock.left_s()) as answer:
            if answer.status != 200:
                text = b"".join(answer.chunks()).decode("utf-8", "replace")
                raise Unanswered(f"a streamed request was answered {answer.status}", status=answer.status, body=text)
            kind = answer.headers.get("content-type", "")
            return read_stream(answer.events(), content_type=kind, wants_usage=True)

    def _read(self, reply: "Reply", reader: Any) -> Answer:
        if reply.status == 0:
            raise Unanswered(f"a request got no answer: {reply.error}")
        if not reply.ok:
            raise Unanswered(f"a request was answered {reply.status}", status=reply.status, body=reply.text)
        try:
            answer: Answer = reader(reply.json)
        except Malformed as error:
            raise Unanswered(f"the answer is not one: {error}", status=reply.status, body=reply.text) from None
        return answer
