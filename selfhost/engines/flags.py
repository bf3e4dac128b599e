"""The user's own engine flags: read as the engine's parser reads them, refused where they contradict the launch."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from selfhost.core.errors import InputError
from selfhost.core.redact import mask
from selfhost.core.table import read_table
from selfhost.engines.rows import frozen

_NEGATIVE_NUMBER = re.compile(r"-\d[\d.]*\Z")
_FILES = {"vllm": "flags.toml", "sglang": "flags.sglang.toml"}
_SHORT_LEVEL = re.compile(r"-O=?(?P<level>[^.=].*)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A flag that selfhost plans or must understand."""

    name: str
    aliases: tuple[str, ...] = ()
    boolean: bool = False
    moves_memory: bool = False
    planned: bool = False
    """selfhost gives it itself, with some models or on some machines."""
    displaces: tuple[str, ...] = ()
    """Planned flags that lose their meaning beside this one."""
    vllm: str = ""
    """vLLM's name for the same thing, where it has another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A flag that contradicts what selfhost has allocated, promises or keeps secret."""

    name: str
    why: str
    fix: tuple[str, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One flag as the user wrote it: `tokens` in their order, `name` in full, `value` in words."""

    name: str
    value: str
    tokens: tuple[str, ...]
    dotted: bool = False
    """Written as `--flag.key value`: one key of a JSON value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What is known of one engine's flags, and of how its parser reads them."""

    flags: tuple[Flag, ...]
    refused: tuple[Refused, ...]
    underscores: bool = True
    """`--max_model_len` is read as `--max-model-len`."""
    negatives: bool = True
    """`--no-enforce-eager` switches off."""
    levels: bool = True
    """`-O3` is `--optimization-level 3`."""

    @classmethod
    def load(cls, engine: str = "vllm") -> "Vocabulary":
        table = read_table("selfhost.engines", _FILES[engine])
        return cls(
            flags=tuple(Flag(**frozen(row)) for row in table["flag"]),
            refused=tuple(Refused(**frozen(row)) for row in table["refused"]),
            **table.get("parser", {}),
        )

    def flag(self, name: str) -> Flag | None:
        return next((flag for flag in self.flags if name == flag.name or name in flag.aliases), None)

    def forbidden(self, name: str) -> Refused | None:
        return next((row for row in self.refused if name == row.name or name in row.aliases), None)

    def names(self) -> Iterable[str]:
        for flag in self.flags:
            yield from (flag.name, *flag.aliases)
        for row in self.refused:
            yield from (row.name, *row.aliases)


def read(extra: Sequence[str], *, vocabulary: Vocabulary) -> tuple[Given, ...]:
    """Split the user's flags. Raises InputError for a stray word, a shortened name or a contradiction."""
    groups: list[list[str]] = []
    for token in extra:
        if token.startswith("-") and len(token) > 1 and not _NEGATIVE_NUMBER.match(token):
            groups.append([token])
        elif groups:
            groups[-1].append(token)
        else:
            raise InputError(
                f"`{mask(token)}` stands before any engine flag",
                why="Everything behind `--` goes to the engine, whose model selfhost has already named.",
                fix=("write flags only:\nselfhost up MODEL -- --max-num-seqs 8",),
                id="PL066",
            )
    given = tuple(_given(group, vocabulary=vocabulary) for group in groups)
    for flag in given:
        _check(flag, vocabulary=vocabulary)
    return given


def _given(group: list[str], *, vocabulary: Vocabulary) -> Given:
    head, *values = group
    level = _SHORT_LEVEL.match(head) if vocabulary.levels else None
    if level:  # vLLM's parser reads -O3 and -O=3 as --optimization-level 3
        return Given(name="--optimization-level", value=level["level"], tokens=tuple(group))
    written, equals, value = head.partition("=")
    base, dot, _ = written.partition(".")
    if base.startswith("--") and vocabulary.underscores:
        base = base.replace("_", "-")  # the engine's parser accepts both spellings
    name, negated = _positive(base, vocabulary=vocabulary)
    known = vocabulary.flag(name)
    if known and known.boolean and not dot:
        if equals or values:
            raise _no_value(name, group, negatives=vocabulary.negatives)
        return Given(name=name, value="false" if negated else "true", tokens=tuple(group))
    text = " ".join([value, *values] if equals else values) or "true"
    return Given(name=known.name if known else name, value=text, tokens=tuple(group), dotted=bool(dot))


def _no_value(name: str, group: list[str], *, negatives: bool) -> InputError:
    off = f"or off:\nselfhost up MODEL -- {name.replace('--', '--no-', 1)}" if negatives else "or off: leave it out"
    return InputError(
        f"`{name}` is a switch and takes no value, but `{mask(' '.join(group))}` gives one",
        why="The engine's parser would take the word behind it for another flag and stop.",
        fix=(f"switch it on:\nselfhost up MODEL -- {name}", off),
        id="PL068",
    )


def _positive(name: str, *, vocabulary: Vocabulary) -> tuple[str, bool]:
    """Name a switch by its positive form: `--no-x` is x off; so is `--disable-x` for `--enable-x` (vLLM 0.33)."""
    if not vocabulary.negatives:
        return name, False
    for prefix, replacement in (("--no-", "--"), ("--disable-", "--enable-"), ("--enable-", "--disable-")):
        positive = name.replace(prefix, replacement, 1) if name.startswith(prefix) else ""
        known = vocabulary.flag(positive) if positive else None
        if known and known.boolean and not vocabulary.flag(name):
            return positive, True
    return name, False


def _check(given: Given, *, vocabulary: Vocabulary) -> None:
    row = vocabulary.forbidden(given.name)
    if row:
        raise InputError(f"`{row.name}` is not passed on to the engine", why=row.why, fix=row.fix, id="PL063")
    if vocabulary.flag(given.name) or not given.name.startswith("--"):
        return
    # Python's argparse completes shortened names, so `--hos` would reach the engine as --host.
    longer = sorted(name for name in vocabulary.names() if name.startswith(given.name) and name != given.name)
    if longer:
        raise InputError(
            f"`{given.name}` is a shortened engine flag",
            why="The engine would complete it, and selfhost could no longer tell what it replaces.",
            fix=(f"write it in full, perhaps {' or '.join(f'`{name}`' for name in longer[:3])}",),
            id="PL069",
        )
