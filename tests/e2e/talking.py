"""A client that knows nothing but the port, the key and the model's name."""

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any


def ask(port: int, key: str, model: str, question: str = "What is 3 + 4?") -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        data=json.dumps(
            {"model": model, "messages": [{"role": "user", "content": question}], "max_tokens": 400}
        ).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return message


def ask_when_ready(port: int, key: str, model: str, *, log: Callable[[], str], within_s: float = 240) -> dict[str, Any]:
    deadline = time.monotonic() + within_s
    while True:
        try:
            return ask(port, key, model)
        except OSError:
            assert time.monotonic() < deadline, log()[-3000:]
            time.sleep(1)
