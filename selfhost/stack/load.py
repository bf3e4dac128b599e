"""selfhost.yaml → the services that it asks for, each value with its line; or everything that is wrong with it."""

from dataclasses import dataclass
from typing import Final

from selfhost.core.errors import InputError
from selfhost.core.tree import Tree
from selfhost.core.yaml import documents
from selfhost.shapes.finding import Place
from selfhost.shapes.service import Service
from selfhost.stack import pairs, sharing
from selfhost.stack.asked import asked_of, service_of
from selfhost.stack.forms import read
from selfhost.stack.problems import Problems
from selfhost.stack.words import nearest, shown

VERSION: Final = 1
LARGEST_BYTES: Final = 2**20
"""A file of this kind has a hundred lines."""
_SKELETON: Final = "version: 1\nservices:\n  chat:\n    model: qwen3-4b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The services of one file, in its order."""

    path: str
    services: tuple[Service, ...]


def decoded(data: bytes, *, path: str) -> str:
    """The text of a file. Raises InputError for one that is too large or no UTF-8."""
    if len(data) > LARGEST_BYTES:
        raise InputError(
            f"{path} is larger than {LARGEST_BYTES // 2**20} MiB",
            why="It says what runs on one host, which takes a page.",
            fix=("name the file that you wrote",),
            id="CF017",
            place=Place(path=path),
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        raise InputError(
            f"{path} is not UTF-8 text",
            why="It is UTF-16, as some editors on Windows save." if utf16 else f"Byte {error.start} is none.",
            fix=("save it as UTF-8",),
            id="CF017",
            place=Place(path=path, line=line),
        ) from None


def load(text: str, *, path: str) -> Stack:
    """Every service of `text`. Raises InputError with all problems of the file, in the order of its lines."""
    root = _document(text, path)
    problems = Problems(path=path, text=text)
    _version(root, problems)
    form = read(root, problems)
    if form is None:
        problems.stop()
        raise ValueError("a file without a form and without a problem")
    asked = tuple(asked_of(form, root, path=path))
    for one in asked:
        pairs.check(one, problems)
    sharing.check(asked, problems)
    problems.stop()
    return Stack(path=path, services=tuple(service_of(one) for one in asked))


def _document(text: str, path: str) -> Tree:
    found = documents(text, path=path)
    if len(found) == 1 and found[0].map is not None:
        return found[0]
    what = (
        f"{path} is empty"
        if not found
        else f"{path} holds {len(found)} documents, expected one"
        if len(found) > 1
        else f"{path} is {shown(found[0])}, expected a map with `version` and `services`"
    )
    place = found[-1].spot if found else None
    raise InputError(
        what,
        fix=(f"the shortest that works:\n{_SKELETON}", "or one for this machine:\nselfhost init"),
        id="CF017",
        place=Place(path=path, line=place.line if place else None),
    )


def _version(root: Tree, problems: Problems) -> None:
    """Before all else: of another version, every key may mean something else."""
    tree = root.at("version")
    if tree is None:
        near = nearest("version", tuple(root.keys))
        problems.add(
            root.spot,
            "there is no `version`",
            id="CF004",
            fix=((f"perhaps `{near[0]}` was meant; " if near else "") + "write as its first line:\nversion: 1",),
        )
        problems.stop()
        return
    value = tree.scalar if tree.is_scalar else None
    if isinstance(value, bool):  # equal to 1 and 0 for whoever only compares
        problems.add(tree.spot, f"`version` is {tree.text}, expected 1", id="CF005", fix=("write:\nversion: 1",))
        problems.stop()
    if isinstance(value, int) and value != VERSION:
        later = value > VERSION
        problems.add(
            tree.spot,
            f"this is version {value}, and this selfhost reads version {VERSION}",
            id="CF009",
            why="A later selfhost reads it." if later else "There was no such version.",
            fix=("upgrade selfhost in this environment" if later else "write:\nversion: 1",),
        )
        problems.stop()
