"""One real generation of one token: the smallest request that shows an engine at work."""

from selfhost.core.http import Client, Reply  # httpx: this file is imported at use
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model

TIMEOUT_S = 5.0


def one_token(client: Client, model: Model) -> Reply:
    """Ask in the form that the model understands: without a chat template only plain completion exists."""
    common = {"model": model.served_name, "max_tokens": 1, "temperature": 0}
    if isinstance(model.has_chat_template, Known) and not model.has_chat_template.value:
        return client.post("completions", {**common, "prompt": "Hello"}, timeout_s=TIMEOUT_S)
    messages = [{"role": "user", "content": "Hello"}]
    return client.post("chat/completions", {**common, "messages": messages}, timeout_s=TIMEOUT_S)
