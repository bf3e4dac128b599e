"""Fenced blocks of a Markdown text, each padded so that its lines are those of the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w.+-]*)")
_PROMPT = re.compile(r"^(\s*)[$#>] (?=\S)", re.MULTILINE)
_CONSOLE = ("console", "shell-session", "shellsession")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    language: str
    text: str


def blocks(text: str) -> Iterator[Block]:
    open_fence, start, body = None, 0, list[str]()
    for number, line in enumerate(text.split("\n")):
        match = _FENCE.match(line)
        if open_fence is None:
            if match:
                open_fence, start, body = match, number, []
        elif match and match["fence"].startswith(open_fence["fence"]) and not match["language"]:
            yield _block(open_fence, start, body)
            open_fence = None
        else:
            indent = len(open_fence["indent"])
            body.append(line[indent:] if not line[:indent].strip() else line)
    if open_fence is not None:
        yield _block(open_fence, start, body)


def _block(fence: re.Match[str], start: int, body: list[str]) -> Block:
    text = "\n".join(body)
    language = fence["language"].lower()
    if language in _CONSOLE or text.lstrip().startswith("$ "):
        text = _PROMPT.sub(r"\1  ", text)
    return Block(language=language, text="\n" * (start + 1) + text + "\n")
