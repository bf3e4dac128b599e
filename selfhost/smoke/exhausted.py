"""Words for an answer that is empty because its budget ended inside the thinking: no fault of the server."""

import shlex

from selfhost.shapes.endpoint import Endpoint
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.units import format_tokens
from selfhost.smoke.wire import Answer

ROOM_TOKENS = 4096
"""Enough for most thoughts and the answer behind them."""
BUDGET = "send thinking_token_budget with the request (vLLM keeps no budget by itself)"


def exhausted(answer: Answer, endpoint: Endpoint, *, on_purpose: bool = False) -> Finding:
    """An empty answer whose budget ended inside the thinking."""
    thought = _thought(answer)
    aim = " (asked so on purpose)" if on_purpose else ""
    return Finding(
        id="SM310",
        severity=Severity.INFO,
        title=f"the answer was empty: all {thought} tokens went into thinking{aim}",
        why=f"finish_reason is `length`, message.content is empty, the thinking has {thought} tokens. The model was "
        "still thinking when the reply's budget ended; the server itself is healthy.",
        fix=(_room(answer, endpoint), *_switch(endpoint)),
        place=Place(object="SM310"),
    )


def _room(answer: Answer, endpoint: Endpoint) -> str:
    """Never more than the context holds behind the prompt; a server refuses a request for more."""
    if not endpoint.context:
        return f"give the reply room: max_tokens ≥ {ROOM_TOKENS}; or {BUDGET}"
    prompt, made = (answer.usage.prompt, answer.usage.completion) if answer.usage else (0, 0)
    room = min(ROOM_TOKENS, endpoint.context - prompt)
    if room > made:
        return f"give the reply room: max_tokens ≥ {room}; or {BUDGET}"
    longer = _up(endpoint, f"--context {2 * endpoint.context}")
    return (
        f"the context of {format_tokens(endpoint.context)} tokens has no more room: {BUDGET}, or plan a longer one"
        + (f":\n{longer}" if longer else "")
    )


def _switch(endpoint: Endpoint) -> tuple[str, ...]:
    plan = endpoint.reasoning
    if plan is not None and not plan.can_switch:
        return ()  # a family that always thinks: no switch to offer
    off = _up(endpoint, "--reasoning off")
    everyone = (f"or switch thinking off for every client:\n{off}",) if off else ()
    return (*everyone, 'or for one request: chat_template_kwargs {"enable_thinking": false}')


def _up(endpoint: Endpoint, option: str) -> str:
    """The command that plans this deployment anew; empty at a foreign address, which is not ours to plan."""
    if endpoint.reasoning is None:
        return ""
    return f"selfhost up {shlex.quote(endpoint.model_ref or 'MODEL')} --name {endpoint.name or 'NAME'} {option}"


def _thought(answer: Answer) -> str:
    usage = answer.usage
    if usage is None:
        return "its"
    return format_tokens(usage.reasoning or usage.completion)
