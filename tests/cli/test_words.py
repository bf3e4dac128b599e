"""Whatever we print or document as a command to type is a command that exists."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from selfhost.cli._commands import COMMANDS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "selfhost"
_IN_BACKTICKS = re.compile(r"`(?:\$ )?selfhost ([^`]+)`")
_ON_A_LINE = re.compile(r"^[ \t]*(?:\$ |→ )?selfhost (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def verb(words: str) -> str | None:
    """The command in what stands behind `selfhost`; None for options alone and for what is filled in later."""
    first = next((word for word in words.split() if not word.startswith("-")), "")
    name = first.rstrip(".,;:)")
    return name if re.fullmatch(r"[a-z][a-z-]*", name) else None


def typed(text: str) -> Iterator[str]:
    """Commands in a text of ours: in backticks, or on a line of their own behind the sentence, ready to paste."""
    _, newline, pasted = text.partition("\n")
    yield from _IN_BACKTICKS.findall(text)
    yield from _ON_A_LINE.findall(newline + pasted)


def of_python(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None
        if isinstance(node.body[0], ast.Expr)
    }
    inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            text = node.value
        else:
            continue
        # prose of docstrings wraps where it likes: only what stands in backticks is a command there
        found = _IN_BACKTICKS.findall(text) if node in documented else typed(text)
        yield from ((f"{path.relative_to(ROOT)}:{node.lineno}", command) for command in found)


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def of_table(path: Path) -> Iterator[tuple[str, str]]:
    for text in strings(tomllib.loads(path.read_text(encoding="utf-8"))):
        yield from ((str(path.relative_to(ROOT)), command) for command in typed(text))


def of_page(path: Path) -> Iterator[tuple[str, str]]:
    text = path.read_text(encoding="utf-8")
    found = [*_IN_BACKTICKS.findall(text), *(c for block in _FENCED.findall(text) for c in _ON_A_LINE.findall(block))]
    yield from ((str(path.relative_to(ROOT)), command) for command in found)


def mentioned() -> list[tuple[str, str]]:
    return [
        *(one for path in sorted(PACKAGE.rglob("*.py")) for one in of_python(path)),
        *(one for path in sorted(PACKAGE.rglob("*.toml")) for one in of_table(path)),
        *(one for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) for one in of_page(path)),
    ]


def test_every_command_that_is_named_exists() -> None:
    wrong = [f"{where}: selfhost {said}" for where, said in mentioned() if verb(said) not in (None, *COMMANDS)]
    assert not wrong, "\n".join(wrong)


def test_texts_of_every_kind_are_looked_at() -> None:
    """A test that reads nothing passes for ever: each kind of file names a command, and most commands are named."""
    found = mentioned()
    for part in ("selfhost/plan/", "selfhost/cli/", "flags.toml", "failures.toml", "README.md", "docs/reference/"):
        assert any(part in where and verb(said) for where, said in found), part
    assert {verb(said) for _, said in found} >= {"up", "plan", "down", "status", "logs", "explain"}


@pytest.mark.parametrize(
    ("text", "verbs"),
    [
        ("leave it out; the key is printed by\nselfhost env NAME", ["env"]),
        ("see `selfhost doctor --json` first", ["doctor"]),
        ("two ways:\nselfhost up MODEL\nselfhost chat", ["up", "chat"]),
        ("all commands:\nselfhost --help", [None]),
        ("selfhost knows bf16 and fp8, and nothing else that is of use here", []),
        ("the one that selfhost writes", []),
    ],
)
def test_a_command_is_told_from_prose(text: str, verbs: list[str | None]) -> None:
    assert [verb(said) for said in typed(text)] == verbs
