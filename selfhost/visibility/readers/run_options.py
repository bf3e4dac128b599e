"""The grammar of `docker run`'s and `podman run`'s options: which stand alone and which take the next word."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from selfhost.core.table import read_table
from selfhost.visibility.readers.words import Word

_TABLE: Final = read_table("selfhost.visibility.readers", "options.toml")["run"]
ALONE: Final = frozenset(_TABLE["alone"])
"""Options without a value, `--rm=false` apart; every other option takes one."""
_KNOWN: Final = ALONE | frozenset(_TABLE["with_value"])

SHORT: Final = {
    "a": "attach",
    "c": "cpu-shares",
    "d": "detach",
    "e": "env",
    "h": "hostname",
    "i": "interactive",
    "l": "label",
    "m": "memory",
    "p": "publish",
    "P": "publish-all",
    "q": "quiet",
    "t": "tty",
    "u": "user",
    "v": "volume",
    "w": "workdir",
}
ALIASES: Final = {"net": "network", "net-alias": "network-alias", "dns-opt": "dns-option"}

GLOBAL_ALONE: Final = frozenset(
    {"debug", "D", "tls", "tlsverify", "remote", "r", "syslog", "insecure-registry", "help"}
)
"""Options between the program and its command that stand alone; the others there take a value."""

_HINTS: Final = ("IMAGE", "IMG", "TAG", "REPO", "REGISTRY", "CONTAINER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option by its long name. `value` is None for one that stands alone."""

    name: str
    value: Word | None
    word: Word
    """Where it begins."""

    @property
    def on(self) -> bool:
        return self.value is None or self.value.text.lower() not in ("false", "0", "f")


@dataclass(slots=True, kw_only=True)
class Line:
    """Options, then the image and what follows it."""

    options: list[Option] = field(default_factory=list)
    rest: list[Word] = field(default_factory=list)
    opaque: list[Word] = field(default_factory=list)
    """Words before the image that only the run knows."""


def parse(words: Sequence[Word], *, only_options: bool = False) -> Line:
    """Split what follows `run`. `only_options`: there is no image (Quadlet's PodmanArgs=)."""
    line = Line()
    left = list(words)
    while left:
        word = left[0]
        if word.text == "--":
            left.pop(0)
            break
        if word.many and word.pieces and _is_opaque(left, only_options=only_options):
            line.opaque.append(left.pop(0))
        elif word.text.startswith("-") and len(word.text) > 1:
            left.pop(0)
            line.options.extend(_option(word, left))
        elif only_options:
            left.pop(0)
        else:
            break
    line.rest = left
    return line


def _is_opaque(left: Sequence[Word], *, only_options: bool) -> bool:
    """Whether a substitution in front is more options rather than the image."""
    word = left[0]
    pieces = [piece for piece in word.pieces if piece.text]
    if len(pieces) != 1 or pieces[0].kind == "text":
        return False
    if only_options or pieces[0].whole_list:
        return True
    if len(left) == 1 or any(hint in pieces[0].name.upper() for hint in _HINTS):
        return False
    following = left[1]
    if following.text.startswith("-") and len(following.text) > 1:
        return _takes_part(following.text)
    return following.dynamic or "/" in following.text or ":" in following.text  # as the name of an image


def _takes_part(text: str) -> bool:
    """Whether `text` is an option that our readers know of a run line; the engine's options are not."""
    name = text.lstrip("-").partition("=")[0]
    if not text.startswith("--"):
        return all(letter in SHORT for letter in name[:1])
    return name in _KNOWN


def _option(word: Word, left: list[Word]) -> Iterator[Option]:
    if word.text.startswith("--"):
        name, equals, _ = word.text[2:].partition("=")
        value = word.from_(len(name) + 3) if equals else None
        if value is None and name not in ALONE and left:
            value = left.pop(0)
        yield Option(name=ALIASES.get(name, name), value=value, word=word)
        return
    for at, letter in enumerate(word.text[1:], 1):
        name = SHORT.get(letter, letter)
        if name in ALONE and word.text[at + 1 : at + 2] != "=":
            yield Option(name=name, value=None, word=word)
            continue
        value = word.from_(at + 1) if word.text[at + 1 :] else left.pop(0) if left else None
        if value is not None and value.text.startswith("=") and not value.dynamic:
            value = value.from_(1)
        yield Option(name=name, value=value, word=word)
        return


def command_of(words: Sequence[Word]) -> tuple[list[Option], list[Word]]:
    """Global options (`docker --context X run …`) and what follows them."""
    found: list[Option] = []
    left = list(words)
    while left and left[0].text.startswith("-") and len(left[0].text) > 1:
        word = left.pop(0)
        name, equals, _ = word.text.lstrip("-").partition("=")
        value = word.from_(word.text.index("=") + 1) if equals else None
        if value is None and name not in GLOBAL_ALONE and left:
            value = left.pop(0)
        found.append(Option(name=name, value=value, word=word))
    return found, left
