"""The two lines that show how to use an endpoint. `up` prints them, and SM020 runs the second exactly as printed."""

import json
import shlex

from selfhost.core.secret import HEADER_SUFFIX
from selfhost.shapes.endpoint import Endpoint

ASK = "Say hello"
BEGINNING = "Hello, my name is"
"""What a model without a chat template is given to go on with."""
SHORT_TOKENS = 64
THINKING_TOKENS = 1024


def sampling(endpoint: Endpoint) -> dict[str, int]:
    """Enough tokens for a greeting, with room for thinking where the model thinks, never more than half the context.

    Greedy, so that the line prints the same every time; a thinking model keeps its own sampling, greedy can make it
    think in circles.
    """
    thinks = endpoint.reasoning is not None and endpoint.reasoning.can_think
    wanted = THINKING_TOKENS if thinks else SHORT_TOKENS
    room = max(1, min(wanted, endpoint.context // 2)) if endpoint.context else wanted
    return {"max_tokens": room} if thinks else {"max_tokens": room, "temperature": 0}


def openai_line(endpoint: Endpoint) -> str:
    """One line of Python for the official client; the key is read from its file."""
    key = f"open({endpoint.key.path!r}).read().strip()" if endpoint.key else '"none"'
    client = f"OpenAI(base_url={endpoint.base_url!r}, api_key={key})"
    extra = "".join(f", {name}={value}" for name, value in sampling(endpoint).items())
    if not endpoint.chat:
        create = f"completions.create(model={endpoint.model!r}, prompt={BEGINNING!r}{extra})"
        return f"from openai import OpenAI; print({client}.{create}.choices[0].text)"
    ask = {"role": "user", "content": ASK}
    create = f"chat.completions.create(model={endpoint.model!r}, messages=[{ask!r}]{extra})"
    return f"from openai import OpenAI; print({client}.{create}.choices[0].message.content)"


def curl_line(endpoint: Endpoint) -> str:
    """One curl command; `-H @FILE` keeps the key off the command line."""
    asked = {"messages": [{"role": "user", "content": ASK}]} if endpoint.chat else {"prompt": BEGINNING}
    body = {"model": endpoint.model, **asked, **sampling(endpoint)}
    path = "chat/completions" if endpoint.chat else "completions"
    argv = ["curl", "-s", f"{endpoint.base_url}/{path}", "-H", "Content-Type: application/json"]
    if endpoint.key:
        argv += ["-H", f"@{endpoint.key.path}{HEADER_SUFFIX}"]
    return shlex.join([*argv, "-d", json.dumps(body, ensure_ascii=False)])
