"""A systemd service that starts an engine or a container → Workloads (systemd.service(5), "Command lines")."""

import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from selfhost.shapes.workload import ContainerEngine, Workload
from selfhost.visibility.files import Files
from selfhost.visibility.readers import batch, process, run
from selfhost.visibility.readers.script import Call, calls, shell_text, strip_prefixes
from selfhost.visibility.readers.unit import Entry, entries
from selfhost.visibility.readers.words import Piece, Word

_COMMANDS: Final = ("ExecStart", "ExecStartPre")
_MODIFIERS: Final = "-@:+!|"
_VARIABLE = re.compile(r"\$\{(?P<braced>[A-Za-z_]\w*)\}|\$(?P<plain>[A-Za-z_]\w*)|\$\$")
_USER_UNITS = re.compile(r"/\.config/systemd/user/|/systemd/user/")


def read(text: str, *, path: str, files: Files) -> tuple[Workload, ...]:
    """What its ExecStart= lines start; nothing when that is neither an engine nor a container."""
    found = [entry for entry in entries(text) if entry.section == "Service"]
    env = _environment(found)
    user = next((entry.text.strip() for entry in reversed(found) if entry.key == "User"), "")
    made: list[Workload] = []
    for entry in found:
        if entry.key in _COMMANDS:
            made += [_owned(workload, path, user) for workload in _started(entry, env, path=path, files=files)]
    return tuple(made)


def _environment(found: list[Entry]) -> dict[str, Word]:
    env: dict[str, Word] = {}
    for entry in found:
        for word in entry.words() if entry.key == "Environment" else ():
            name, equals, _ = word.text.partition("=")
            if equals:
                value = word.from_(len(name) + 1)
                value.line, value.column = word.line, word.column
                env[name] = value
    return env


def _started(entry: Entry, env: dict[str, Word], *, path: str, files: Files) -> list[Workload]:
    words = entry.words()
    if not words:
        return []
    words[0] = words[0].from_(len(words[0].text) - len(words[0].text.lstrip(_MODIFIERS)))
    words = [_expanded(word, env) for word in words]
    script = shell_text(words)
    try:
        found = list(calls(script.text, line=script.line, env=env)) if script else [_call(words, env)]
    except ValueError:
        return []
    made = []
    for call in found:
        workload = run.from_call(call, path=path, files=files) or batch.from_call(call, path=path, files=files, job={})
        if workload is None and process.is_engine(call):
            workload = process.workload(call, name=PurePosixPath(path).stem, path=path)
        if workload is not None:
            made.append(workload)
    return made


def _call(words: list[Word], env: dict[str, Word]) -> Call:
    left = list(words)
    prefixes, assigned = strip_prefixes(left)
    own = {word.text.partition("=")[0]: word.from_(len(word.text.partition("=")[0]) + 1) for word in assigned}
    return Call(words=left, env={**env, **own}, prefixes=prefixes)


def _expanded(word: Word, env: dict[str, Word]) -> Word:
    """Variables are put in by systemd itself; those of an EnvironmentFile= are known only to it."""
    if word.dynamic or "$" not in word.text:
        return word
    made = Word("", word.line, column=word.column)
    at = 0
    for match in _VARIABLE.finditer(word.text):
        made.add(word.text[at : match.start()], quoted=True)
        at = match.end()
        name = match["braced"] or match["plain"] or ""
        if not name:
            made.add("$", quoted=True)
        elif name in env and not env[name].dynamic:
            made.add(env[name].text, quoted=True)
        else:
            made.text += match[0]
            made.dynamic = True
            made.many = match["plain"] is not None
            made.pieces.append(Piece(kind="variable", text=match[0], name=name, quoted=not made.many))
    made.add(word.text[at:], quoted=True)
    return made


def _owned(workload: Workload, path: str, user: str) -> Workload:
    if workload.container_engine is not ContainerEngine.PODMAN or workload.rootless is not None:
        return workload
    if _USER_UNITS.search(path) or (user and user not in ("root", "0")):
        return replace(workload, rootless=True)
    return (
        replace(workload, rootless=False) if path.startswith(("/etc/systemd/system", "/usr/lib/systemd")) else workload
    )
