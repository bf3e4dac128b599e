"""A launch script of the process target → Workload: the engine's arguments and the environment set before it."""

import re
import shlex
from pathlib import PurePosixPath

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place
from selfhost.shapes.workload import Spot, Workload
from selfhost.visibility.readers.script import Call, calls

_NAMED = re.compile(r"^# selfhost-name: (?P<name>.+)$", re.MULTILINE)
_LINE = re.compile(r"line (?P<number>\d+)")
_MODULES = ("vllm", "sglang")


def read(text: str, *, path: str) -> Workload:
    """The engine that the script starts at its end. Raises InputError when it starts none."""
    started = [call for call in script_calls(text, path=path) if is_engine(call) or "exec" in call.prefixes]
    if not started:
        raise no_engine(path)
    return workload(started[-1], name=name_of(text, path=path), path=path)


def script_calls(text: str, *, path: str) -> list[Call]:
    """What the script calls. Raises InputError for a quote that is not closed."""
    try:
        return list(calls(text))
    except ValueError as error:
        number = _LINE.search(str(error))
        raise InputError(
            f"{path}: {error}",
            why="What follows an open quote is one word, so the engine's arguments cannot be told apart.",
            fix=(f"close it; a shell shows where it gets lost:\nsh -n {shlex.quote(path)}",),
            id="CF022",
            place=Place(path=path, line=int(number["number"]) if number else None),
        ) from None


def no_engine(path: str) -> InputError:
    return InputError(
        f"{path} starts no engine",
        why="No command was found that starts a vLLM or SGLang server, and none behind `exec`.",
        fix=("name the script that starts the engine",),
        id="CF021",
        place=Place(path=path),
    )


def name_of(text: str, *, path: str) -> str:
    named = _NAMED.search(text)
    return named["name"] if named else PurePosixPath(path).stem


def workload(call: Call, *, name: str, path: str) -> Workload:
    """A plain process. A variable that only the run knows is left out: a key read from its file is not for our eyes."""
    known = {key: word for key, word in call.env.items() if not word.dynamic}
    at = {f"env.{key}": Spot(line=word.line, column=word.column) for key, word in known.items()}
    at |= {f"argv.{number}": Spot(line=word.line, column=word.column) for number, word in enumerate(call.words)}
    return Workload(
        name=name,
        argv=tuple(word.text for word in call.words),
        env={key: word.text for key, word in known.items()},
        path=path,
        at={**at, "name": at["argv.0"]},
    )


def is_engine(call: Call) -> bool:
    texts = [word.text for word in call.words]
    if call.program.startswith("python") and "-m" in texts:
        module = texts[texts.index("-m") + 1 : texts.index("-m") + 2]
        return bool(module) and module[0].split(".")[0] in _MODULES
    return call.program in _MODULES and "serve" in texts[1:2]
