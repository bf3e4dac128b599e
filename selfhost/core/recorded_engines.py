"""What docker and podman answer on a recorded machine, out of the objects that the snapshot holds of them. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from selfhost.core.system import Completed

# The questions that are put to an engine, by the key of the object that answers.
_QUESTIONS: Mapping[tuple[str, ...], tuple[str, str]] = {
    ("docker", "info", "--format", "{{json .}}"): ("docker", "info"),
    ("docker", "version", "--format", "{{json .}}"): ("docker", "version"),
    ("podman", "info", "--format", "json"): ("podman", "info"),
    ("podman", "info", "--format", "{{json .}}"): ("podman", "info"),
    ("podman", "version", "--format", "json"): ("podman", "version"),
    ("podman", "version", "--format", "{{json .}}"): ("podman", "version"),
}


def answer(snapshot: Mapping[str, Any], argv: tuple[str, ...]) -> Completed | None:
    """None when the snapshot holds nothing of that engine: then it is not installed there."""
    held = snapshot.get(argv[0], {}) if argv[0] in ("docker", "podman") else {}
    if not held:
        return None
    _, key = key_of(argv)
    if key and key in held:
        return Completed(argv=argv, rc=0, stdout=json.dumps(held[key]) + "\n")
    words = [word for word in argv[1:] if word != "container"]
    if words and words[0] in ("inspect", "ps") and "containers" in held:
        names = [word for word in words[1:] if not word.startswith("-")]
        known = held["containers"]
        return _inspected(argv, names, known) if words[0] == "inspect" else _listed(argv, known)
    return Completed(argv=argv, rc=1, stderr=f"{' '.join(argv[:2])}: this snapshot holds no answer\n")


def key_of(argv: Sequence[str]) -> tuple[str, str]:
    """Which engine `argv` asks, and which key of the snapshot answers; two empty words for every other command."""
    return _QUESTIONS.get(tuple("--format" if word == "-f" else word for word in argv), ("", ""))


def _inspected(argv: tuple[str, ...], names: Sequence[str], containers: Sequence[Mapping[str, Any]]) -> Completed:
    found = [next((one for one in containers if _is_called(one, name)), None) for name in names]
    lost = [name for name, one in zip(names, found, strict=True) if one is None]
    return Completed(
        argv=argv,
        rc=1 if lost else 0,
        stdout=json.dumps([one for one in found if one is not None]) + "\n",
        stderr="".join(f"Error: No such object: {name}\n" for name in lost),
    )


def _listed(argv: tuple[str, ...], containers: Sequence[Mapping[str, Any]]) -> Completed:
    """Ids, as `ps -q` prints them: only of what runs unless all were asked for."""
    everything = any(word in ("-a", "--all") or (word[:1] == "-" != word[1:2] and "a" in word) for word in argv)
    found = [str(one.get("Id", "")) for one in containers if everything or _runs(one)]
    length = None if "--no-trunc" in argv else 12
    return Completed(argv=argv, rc=0, stdout="".join(f"{one[:length]}\n" for one in found if one))


def _is_called(container: Mapping[str, Any], name: str) -> bool:
    known = str(container.get("Name", "")).lstrip("/")
    return name.lstrip("/") == known or (len(name) >= 4 and str(container.get("Id", "")).startswith(name))


def _runs(container: Mapping[str, Any]) -> bool:
    """One whose state was not recorded is taken as running: its inspect object was worth keeping."""
    state = container.get("State")
    return not isinstance(state, Mapping) or bool(state.get("Running", True))
