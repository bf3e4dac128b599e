"""Words for what looks like a fault of the server and is none."""

from selfhost.shapes.endpoint import Endpoint
from selfhost.shapes.finding import Finding, Place, Severity
from selfhost.shapes.units import format_tokens
from selfhost.smoke.wire import Answer

ROOM = (
    "give the reply room: max_tokens ≥ 4096; or send thinking_token_budget with the request "
    "(vLLM keeps no budget by itself)"
)


def exhausted(answer: Answer, endpoint: Endpoint, *, on_purpose: bool = False) -> Finding:
    """An empty answer whose budget ended inside the thinking."""
    thought = _thought(answer)
    name = endpoint.name or "NAME"
    aim = " (asked so on purpose)" if on_purpose else ""
    return Finding(
        id="SM310",
        severity=Severity.INFO,
        title=f"the answer was empty: all {thought} tokens went into thinking{aim}",
        why=f"finish_reason is `length`, message.content is empty, the thinking has {thought} tokens. The model was "
        "still thinking when the reply's budget ended; the server itself is healthy.",
        fix=(
            ROOM,
            *_switch(endpoint, name),
        ),
        place=Place(object="SM310"),
    )


def _switch(endpoint: Endpoint, name: str) -> tuple[str, ...]:
    plan = endpoint.reasoning
    if plan is not None and not plan.can_switch:
        return ()  # a family that always thinks: no switch to offer
    everyone = (f"or switch thinking off for every client:\nselfhost up {name} --reasoning off",) if plan else ()
    return (*everyone, 'or for one request: chat_template_kwargs {"enable_thinking": false}')


def _thought(answer: Answer) -> str:
    usage = answer.usage
    if usage is None:
        return "its"
    return format_tokens(usage.reasoning or usage.completion)
