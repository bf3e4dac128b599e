"""A launch script of the process target → Workload: the engine's arguments and the environment set before it."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import Spot, Workload
from selfhost.visibility.readers.shell import Command, Word, commands

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)\Z", re.DOTALL)
_NAMED = re.compile(r"^# selfhost-name: (?P<name>.+)$", re.MULTILINE)
_PREFIXES = ("exec", "nohup", "setsid", "command", "time")
_SHELL_WORDS = (
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "do",
    "done",
    "while",
    "until",
    "for",
    "case",
    "esac",
    "{",
    "}",
    "!",
)

Assignment = tuple[str, Word, str]
"""Name, the word it stands in, value."""


@dataclass(slots=True)
class _Seen:
    env: dict[str, str] = field(default_factory=dict)
    at: dict[str, Spot] = field(default_factory=dict)
    local: dict[str, Word] = field(default_factory=dict)

    def set(self, name: str, word: Word, value: str) -> None:
        if word.dynamic:  # a key read from its file: known only at run time, and not for our eyes
            self.unset(name)
        else:
            self.env[name] = value
            self.at[f"env.{name}"] = Spot(line=word.line)

    def unset(self, name: str) -> None:
        self.env.pop(name, None)
        self.at.pop(f"env.{name}", None)


def read(text: str, *, path: str) -> Workload:
    """The engine that the script starts at its end. Raises InputError when it starts none."""
    seen = _Seen()
    argv: tuple[str, ...] = ()
    try:
        for command in commands(text):
            argv = _run(command, seen) or argv
    except ValueError as error:
        raise InputError(
            f"{path}: {error}",
            why="What follows an open quote is one word, so the engine's arguments cannot be told apart.",
            fix=(f"close it; a shell shows where it gets lost:\nsh -n {shlex.quote(path)}",),
            id="CF022",
            place=Place(path=path),
        ) from None
    if not argv:
        raise InputError(
            f"{path} starts no engine",
            why="No command was found that starts a vLLM or SGLang server, and none behind `exec`.",
            fix=("name the script that starts the engine",),
            id="CF021",
            place=Place(path=path),
        )
    named = _NAMED.search(text)
    name = named["name"] if named else PurePosixPath(path).stem
    return Workload(name=name, argv=argv, env=seen.env, path=path, at=seen.at)


def _run(command: Command, seen: _Seen) -> tuple[str, ...]:
    """Take in one command; return its words when it starts an engine."""
    words = list(command.words)
    while words and words[0].text in _SHELL_WORDS:
        words.pop(0)
    assigned = _leading(words)
    if not words:
        _assign(assigned, seen)
    elif words[0].text == "export":
        _export(words[1:], seen)
    elif words[0].text == "unset":
        for word in words[1:]:
            seen.unset(word.text)
    else:
        return _start(words, assigned, seen)
    return ()


def _assign(assigned: Sequence[Assignment], seen: _Seen) -> None:
    """Without a command the variables are the shell's own, until they are exported."""
    for name, word, value in assigned:
        if name in seen.env:
            seen.set(name, word, value)
        else:
            seen.local[name] = Word(value, word.line, word.dynamic)


def _start(words: list[Word], assigned: Sequence[Assignment], seen: _Seen) -> tuple[str, ...]:
    """The engine behind `exec`, `env` and their like; its own assignments join the environment."""
    replaces = words[0].text == "exec"
    _strip_prefixes(words)
    assigned = [*assigned, *_leading(words)]
    if not words or not (replaces or _is_engine(words)):
        return ()
    for name, word, value in assigned:
        seen.set(name, word, value)
    return tuple(word.text for word in words)


def _leading(words: list[Word]) -> list[Assignment]:
    """Take the assignments off the front."""
    taken = []
    while words and (match := _ASSIGNMENT.match(words[0].text)):
        taken.append((match["name"], words.pop(0), match["value"]))
    return taken


def _export(words: Sequence[Word], seen: _Seen) -> None:
    for word in words:
        match = _ASSIGNMENT.match(word.text)
        if match:
            seen.set(match["name"], word, match["value"])
        elif word.text in seen.local:
            local = seen.local[word.text]
            seen.set(word.text, local, local.text)


def _strip_prefixes(words: list[Word]) -> None:
    """Take `exec`, `env`, `nohup` and their options off the front."""
    while words and (words[0].text in _PREFIXES or PurePosixPath(words[0].text).name == "env"):
        words.pop(0)
        while words and words[0].text.startswith("-"):
            words.pop(0)


def _is_engine(words: Sequence[Word]) -> bool:
    texts = [word.text for word in words]
    program = PurePosixPath(texts[0]).name if texts else ""
    if program.startswith("python") and "-m" in texts:
        module = texts[texts.index("-m") + 1 : texts.index("-m") + 2]
        return bool(module) and module[0].split(".")[0] in ("vllm", "sglang")
    return program in ("vllm", "sglang") and "serve" in texts[1:2]
