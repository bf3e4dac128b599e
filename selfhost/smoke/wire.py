"""Answers of an OpenAI-compatible server, as they come over the wire, in one form."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

TAGS = ("<think>", "</think>", "[THINK]", "[/THINK]", "<|channel", "<channel|>", "◁think▷", "◁/think▷", "<mm:think>")
"""Marks of thinking that must never reach `content`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server reports them."""

    prompt: int
    completion: int
    total: int
    reasoning: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer. vLLM says `reasoning`, SGLang `reasoning_content`: both are read; emptiness is tested, not null."""

    role: str = ""
    content: str = ""
    reasoning: str = ""
    finish: str = ""
    usage: Usage | None = None
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """Everything the model said, wherever the server put it."""
        return self.reasoning + self.content

    @property
    def said(self) -> str:
        """What a reader takes for the answer: the content, or the reasoning of an answer that ended without any."""
        return self.content if self.content.strip() or self.finish == "length" else self.reasoning

    @property
    def exhausted(self) -> bool:
        """The reply's budget ended inside the thinking: cut, thought, and nothing said."""
        return self.finish == "length" and bool(self.reasoning.strip()) and not self.content.strip()

    @property
    def tags(self) -> tuple[str, ...]:
        """Marks of thinking inside the content."""
        return tuple(tag for tag in TAGS if tag in self.content)


class Malformed(Exception):
    """A 200 whose body is not an answer; the text says what is missing."""


def read_chat(body: Any) -> Answer:
    """Read the body of /v1/chat/completions."""
    choice = _choice(body)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Malformed("the choice has no message")
    return Answer(
        role=_text(message.get("role")),
        content=_text(message.get("content")),
        reasoning=_text(message.get("reasoning")) or _text(message.get("reasoning_content")),
        finish=_text(choice.get("finish_reason")),
        usage=read_usage(body.get("usage")),
    )


def read_completion(body: Any) -> Answer:
    """Read the body of /v1/completions."""
    choice = _choice(body)
    logprobs = choice.get("logprobs") or {}
    values = logprobs.get("token_logprobs") if isinstance(logprobs, dict) else None
    return Answer(
        content=_text(choice.get("text")),
        finish=_text(choice.get("finish_reason")),
        usage=read_usage(body.get("usage")),
        token_ids=tuple(choice.get("token_ids") or ()),
        logprobs=tuple(float(value) for value in values or () if value is not None),
    )


def read_usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    details = usage.get("completion_tokens_details") or {}
    reasoning = details.get("reasoning_tokens", usage.get("reasoning_tokens"))
    prompt, completion = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
    return Usage(
        prompt=prompt, completion=completion, total=int(usage.get("total_tokens") or 0), reasoning=reasoning
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A streamed answer and what was wrong with its framing; `pieces` are the texts as they came."""

    answer: Answer
    problems: tuple[str, ...] = ()
    pieces: tuple[str, ...] = ()


@dataclass(slots=True)
class _Collector:
    """State while the events of one stream come in."""

    answer: Answer = field(default_factory=Answer)
    problems: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    done: bool = False
    finishes: int = 0


def read_stream(events: Iterable[str], *, content_type: str, wants_usage: bool) -> Streamed:
    """Collect server-sent events into one answer and note every breach of the framing."""
    state = _Collector()
    if not content_type.startswith("text/event-stream"):
        state.problems.append(f"the content type is `{content_type}`, expected text/event-stream")
    for event in events:
        _take(state, event)
    if not state.done:
        state.problems.append("the stream ended without [DONE]")
    if state.finishes != 1:
        state.problems.append(f"{state.finishes} chunks carry a finish_reason, expected one")
    if wants_usage and state.answer.usage is None:
        state.problems.append("stream_options.include_usage was sent, and no chunk carries usage")
    return Streamed(answer=state.answer, problems=tuple(state.problems), pieces=tuple(state.pieces))


def _take(state: _Collector, event: str) -> None:
    if state.done:
        state.problems.append(f"an event follows [DONE]: {event[:80]}")
        return
    if event == "[DONE]":
        state.done = True
        return
    try:
        chunk = json.loads(event)
    except ValueError:
        state.problems.append(f"a chunk is not JSON: {event[:80]}")
        return
    if isinstance(chunk, dict) and "error" in chunk:
        state.problems.append(f"the stream carries an error: {event[:200]}")
        return
    usage = read_usage(chunk.get("usage"))
    if usage is not None:
        state.answer = replace(state.answer, usage=usage)
    for choice in chunk.get("choices") or ():
        _take_choice(state, choice)


def _take_choice(state: _Collector, choice: Any) -> None:
    delta = choice.get("delta") or {"content": choice.get("text")}
    content = _text(delta.get("content"))
    reasoning = _text(delta.get("reasoning")) or _text(delta.get("reasoning_content"))
    if state.finishes and (content or reasoning):
        state.problems.append("text follows the chunk with the finish_reason")
    state.pieces.extend(piece for piece in (reasoning, content) if piece)
    finish = _text(choice.get("finish_reason"))
    state.finishes += bool(finish)
    state.answer = replace(
        state.answer,
        role=state.answer.role or _text(delta.get("role")),
        content=state.answer.content + content,
        reasoning=state.answer.reasoning + reasoning,
        finish=finish or state.answer.finish,
    )


def _choice(body: Any) -> dict[str, Any]:
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Malformed("the body has no choices")
    return choices[0]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
