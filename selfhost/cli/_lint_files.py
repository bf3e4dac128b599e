"""The texts that `lint` was pointed at: files, folders, stdin, and the files beside each."""

import io
import os
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import BinaryIO, Final

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place
from selfhost.visibility.files import NO_FILES, Files
from selfhost.visibility.project import Source

STDIN: Final = "stdin"
LARGEST_BYTES: Final = 16 * 2**20
LARGEST_FOUND_BYTES: Final = 4 * 2**20
"""Of a file in a folder: a larger one is data, not a launch file."""
USUAL: Final = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
_SKIPPED: Final = frozenset({"node_modules", "venv", "site-packages", "__pycache__"})
_SUFFIXES: Final = frozenset(
    ".yaml .yml .json .container .kube .sh .bash .sbatch .slurm .service".split()  # noqa: SIM905 - a list to read
)
_EXAMPLES: Final = (
    "selfhost lint compose.yaml\nselfhost lint deploy/ --host machine.json\ndocker inspect NAME | selfhost lint -"
)


@dataclass(slots=True, kw_only=True)
class Texts:
    """What could be read, and why the rest could not."""

    sources: list[Source] = field(default_factory=list)
    refused: list[InputError] = field(default_factory=list)


def gather(targets: Sequence[str]) -> Texts:
    """Every text behind `targets`, folders in the order of their names. Raises InputError when nothing is named."""
    texts = Texts()
    for target in targets or _usual():
        try:
            _add(texts, target)
        except InputError as error:
            texts.refused.append(error)
    return texts


def beside(path: str) -> Files:
    """Files next to the one at `path`."""
    return _Folder(Path(path).parent) if path != STDIN else _Folder(Path())


def _usual() -> list[str]:
    found = [name for name in USUAL if Path(name).is_file()]
    if not found:
        raise InputError(
            "no file is named, and there is no compose.yaml in this folder",
            fix=(f"name files or folders, or - for stdin:\n{_EXAMPLES}",),
            id="CF071",
        )
    return found[:1]


def _add(texts: Texts, target: str) -> None:
    if target == "-":
        texts.sources.append(Source(path=STDIN, text=_decoded(_stdin(), STDIN)))
        return
    try:
        is_folder = stat.S_ISDIR(Path(target).stat().st_mode)
    except (OSError, ValueError) as error:
        raise _unreadable(target, error) from None
    if not is_folder:
        texts.sources.append(Source(path=target, text=_decoded(_bytes_of(target), target)))
        return
    before = len(texts.sources) + len(texts.refused)
    closed: list[OSError] = []
    for path in _walk(target, closed):
        try:
            data = _bytes_of(path)
            if len(data) <= LARGEST_FOUND_BYTES and b"\0" not in data:
                texts.sources.append(Source(path=path, text=_decoded(data, path), named=False))
        except InputError as error:
            texts.refused.append(error)
    texts.refused += [_unreadable(str(Path(error.filename)), error) for error in closed]
    if len(texts.sources) + len(texts.refused) == before:
        raise InputError(
            f"there is no file in {target} that lint reads",
            why="It looks for YAML, JSON, .container, .kube, .service and shell scripts, not in hidden folders.",
            fix=(f"name the file itself:\n{_EXAMPLES}",),
            id="CF071",
            place=Place(path=target),
        )


def _walk(folder: str, closed: list[OSError]) -> Iterator[str]:
    """Files that may be of ours; `closed` gathers folders that may not be listed.

    Links to folders are not followed, so that no loop is walked.
    """
    for place, folders, files in os.walk(folder, onerror=closed.append):
        in_chart = "Chart.yaml" in files  # its templates are no YAML before `helm template`
        folders[:] = sorted(
            name
            for name in folders
            if (not name.startswith(".") or name == ".devcontainer")
            and name not in _SKIPPED
            and not (in_chart and name == "templates")
        )
        for name in sorted(files):
            path = Path(place, name)
            if PurePath(name).suffix in _SUFFIXES and not _is_part(name, files) and path.is_file():
                yield str(path)


def _is_part(name: str, files: Sequence[str]) -> bool:
    """Whether Compose merges the file into another beside it, so that it says only half by itself."""
    return ".override." in name and name.replace(".override.", ".") in files


def _bytes_of(path: str) -> bytes:
    try:
        with Path(path).open("rb") as stream:
            return _limited(stream, path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _stdin() -> bytes:
    try:
        if sys.stdin is not None:
            return _limited(sys.stdin.buffer, STDIN)
    except (OSError, ValueError, io.UnsupportedOperation) as error:
        raise InputError(
            "stdin can't be read", why=f"{error}.", fix=(f"pipe a text in:\n{_EXAMPLES}",), id="CF070"
        ) from None
    raise InputError("stdin is closed", fix=(f"pipe a text in:\n{_EXAMPLES}",), id="CF070")


def _limited(stream: BinaryIO, path: str) -> bytes:
    data = stream.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise InputError(
            f"{path} is larger than {LARGEST_BYTES >> 20} MiB",
            why="A file that starts an engine is a few kilobytes; this is something else.",
            fix=("name the launch file itself",),
            id="CF072",
            place=Place(path=path),
        )
    return data


def _decoded(data: bytes, path: str) -> str:
    """UTF-8, or UTF-16 as PowerShell's redirection writes it."""
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _no_text(path, line) from None
    if "\0" in text:
        raise _no_text(path, text[: text.index("\0")].count("\n") + 1)
    return text


def _no_text(path: str, line: int) -> InputError:
    return InputError(
        f"{path} is not UTF-8 text",
        why="It is another kind of file, or was saved in another encoding.",
        fix=("save it as UTF-8, or name the launch file itself",),
        id="CF072",
        place=Place(path=path, line=line),
    )


def _unreadable(path: str, error: OSError | ValueError) -> InputError:
    missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(
        f"{path} does not exist" if missing else f"{path} can't be read",
        why="" if missing else f"{reason}.",
        fix=(f"look at what is there:\nls -l {shlex.quote(str(Path(path).parent))}",),
        id="CF070",
        place=Place(path=path),
    )


class _Folder:
    """Files beside a text, read when a reader asks for one that the text names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def text(self, path: str) -> str | None:
        try:
            place = self._folder / path
            if not place.is_file() or place.stat().st_size > LARGEST_FOUND_BYTES:
                return None
            return place.read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            return NO_FILES.text(path)
