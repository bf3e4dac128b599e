"""What a script would call: every simple command with its variables filled in and its prefixes taken off."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from selfhost.visibility.readers.shell import commands
from selfhost.visibility.readers.variables import Variables
from selfhost.visibility.readers.words import Command, Word

ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<append>\+?)=(?P<value>.*)\Z", re.DOTALL)
_OPENING = ("if", "while", "until", "for", "case", "select")
_CLOSING = ("fi", "done", "esac")
_KEYWORDS = (*_OPENING, *_CLOSING, "then", "else", "elif", "do", "{", "}", "!", "function")
_DECLARING = ("export", "declare", "typeset", "local", "readonly")
_VALUED = {
    "sudo": ("-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R"),
    "doas": ("-u", "-C"),
    "env": ("-u", "-C", "-S"),
    "exec": ("-a",),
    "nohup": (),
    "setsid": (),
    "command": (),
    "time": ("-f", "-o"),
    "nice": ("-n",),
    "ionice": ("-c", "-n", "-p"),
    "stdbuf": ("-i", "-o", "-e"),
    "numactl": ("-C", "-N", "-m", "-i", "-p", "-l"),
    "taskset": (),
    "timeout": ("-k", "-s"),
}
"""Commands that start the command behind them, with their options that take a value of their own (their man pages)."""
_POSITIONALS = {"timeout": 1, "taskset": 1}
_SHELLS = ("sh", "bash", "dash", "ash", "zsh")
_NESTED = 3


@dataclass(slots=True, kw_only=True)
class Call:
    """One command that the script starts. `env` is what it inherits from the script and its own assignments."""

    words: list[Word]
    env: dict[str, Word] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        return PurePosixPath(self.words[0].text).name if self.words else ""


class _Script:
    def __init__(self, env: dict[str, Word] | None = None) -> None:
        self.variables = Variables()
        self.exported: set[str] = set()
        self.depth = 0
        for name, word in (env or {}).items():
            self.variables.words[name] = [word]
            self.exported.add(name)

    def take(self, command: Command) -> Call | None:
        words = list(command.words)
        while words and words[0].text in _KEYWORDS:
            keyword = words.pop(0)
            self.depth += keyword.text in _OPENING
            self.depth = max(0, self.depth - (keyword.text in _CLOSING))
            if keyword.text in ("for", "select", "case"):
                self._loop(keyword, words)
                return None
        maybe = self.depth > 0 or command.after in ("&&", "||")
        assigned = leading(words)
        if not words:
            for word in assigned:
                self._assign(word, maybe=maybe)
            return None
        filled = [part for word in words for part in self.variables.filled(word)]
        if filled and filled[0].text in _DECLARING:
            self._declare(words[1:], export=self._exports(filled), maybe=maybe)
        elif filled and filled[0].text == "unset":
            for word in filled[1:]:
                self.variables.unset(word.text, word)
                self.exported.discard(word.text)
        elif filled and filled[0].text == "read":
            for word in filled[1:]:
                self.variables.unknown(word.text, word)
        else:
            return self._call(filled, assigned)
        return None

    def environment(self) -> dict[str, Word]:
        """What a command inherits, as far as the script says it."""
        return {name: self.variables.words[name][0] for name in self.exported if self.variables.words.get(name)}

    def _loop(self, keyword: Word, words: Sequence[Word]) -> None:
        if keyword.text != "case" and words:
            self.variables.unknown(words[0].text, words[0])

    def _exports(self, words: Sequence[Word]) -> bool:
        options = [word.text for word in words[1:] if word.text.startswith("-")]
        return words[0].text == "export" or any("x" in option for option in options)

    def _declare(self, words: Sequence[Word], *, export: bool, maybe: bool) -> None:
        for word in words:
            if ASSIGNMENT.match(word.text):
                self._assign(word, maybe=maybe)
            if export and not word.text.startswith("-"):
                self.exported.add(word.text.partition("=")[0].rstrip("+"))

    def _assign(self, word: Word, *, maybe: bool) -> None:
        match = ASSIGNMENT.match(word.text)
        if match:
            value = word.from_(match.start("value"))
            value.array = word.array
            value.line, value.column = word.line, word.column
            self.variables.assign(match["name"], value, append=bool(match["append"]), maybe=maybe)

    def _call(self, words: list[Word], assigned: Sequence[Word]) -> Call:
        env = self.environment()
        prefixes, more = strip_prefixes(words)
        for word in [*assigned, *more]:
            name, _, _ = word.text.partition("=")
            env[name] = self.variables.joined(word.from_(len(name) + 1))
            env[name].line, env[name].column = word.line, word.column
        return Call(words=words, env=env, prefixes=prefixes)


def calls(
    text: str, *, line: int = 1, column: int = 1, env: dict[str, Word] | None = None, nested: int = 0
) -> Iterator[Call]:
    """Every command in order, those inside `sh -c '…'` and `$(…)` too. Raises ValueError for an unclosed quote."""
    script = _Script(env)
    for command in commands(text, line=line, column=column):
        for word in command.words if nested < _NESTED else ():
            yield from _substituted(word, script.environment(), nested)
        call = script.take(command)
        if call is None or not call.words:
            continue
        inner = shell_text(call.words) or _evaluated(call.words)
        if inner is None or nested >= _NESTED:
            yield call
            continue
        written = any(word.text == inner.text and not word.dynamic for word in command.words)
        for found in _within(inner, call.env, nested):
            if not written:  # out of a variable: it stands where the variable is used
                found.words = [replace(word, line=inner.line, column=inner.column) for word in found.words]
            found.prefixes = (*call.prefixes, *found.prefixes)
            yield found


def _within(inner: Word, env: dict[str, Word], nested: int) -> list[Call]:
    """What a text inside a script calls; nothing when it is no script by itself."""
    try:
        return list(calls(inner.text, line=inner.line, column=inner.column + 1, env=env, nested=nested + 1))
    except ValueError:
        return []


def _substituted(word: Word, env: dict[str, Word], nested: int) -> Iterator[Call]:
    """`ID=$(docker run …)`: what is started to read its output."""
    for piece in word.pieces:
        if piece.kind == "command" and piece.text.startswith("$(") and not piece.text.startswith("$(("):
            column = word.column + word.text.find(piece.text) + 1
            yield from _within(Word(piece.text[2:-1], word.line, column=column), env, nested)


def _evaluated(words: Sequence[Word]) -> Word | None:
    if words[0].text != "eval" or len(words) < 2:
        return None
    return Word(" ".join(word.text for word in words[1:]), words[1].line, column=words[1].column)


def shell_text(words: Sequence[Word]) -> Word | None:
    """The script in `bash -lc SCRIPT`."""
    if not words or PurePosixPath(words[0].text).name not in _SHELLS:
        return None
    for at, word in enumerate(words[1:], 1):
        if not word.text.startswith(("-", "+")):
            return None
        if not word.text.startswith("--") and "c" in word.text:
            return words[at + 1] if at + 1 < len(words) else None
    return None


def leading(words: list[Word]) -> list[Word]:
    """Take the assignments off the front."""
    taken = []
    while words and _assigns(words[0]):
        taken.append(words.pop(0))
    return taken


def _assigns(word: Word) -> bool:
    """The name of an assignment is plain text, never out of quotes or a variable."""
    first = word.pieces[0] if word.pieces else None
    return bool(first and first.kind == "text" and ASSIGNMENT.match(word.text)) and "=" in (first.text if first else "")


def strip_prefixes(words: list[Word]) -> tuple[tuple[str, ...], list[Word]]:
    """Take `sudo`, `exec`, `env A=1` and their like off the front; their names, and the assignments between them."""
    names, assigned = [], []
    while len(words) > 1 and (name := PurePosixPath(words[0].text).name) in _VALUED:
        names.append(name)
        words.pop(0)
        while len(words) > 1 and words[0].text.startswith("-"):
            option = words.pop(0).text
            if option in _VALUED[name] and len(words) > 1:
                words.pop(0)
        for _ in range(_POSITIONALS.get(name, 0)):
            if len(words) > 1:
                words.pop(0)
        if name in ("env", "sudo", "exec"):
            assigned += leading(words)
    return tuple(names), assigned
