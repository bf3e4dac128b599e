"""What was done to a deployment, line by line: append-only JSON, each line on the disk before the next step starts."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from selfhost.core.files import append_line, set_aside
from selfhost.deploy.wording import look_at
from selfhost.shapes.finding import Finding, Place, Severity

SCHEMA = "selfhost.journal/1"
_START = '{"at": "'
"""How every line begins, since its keys are sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line. `digest` is that of the step's inputs, `data` what the step made (`existed`: was it there before)."""

    at: str
    step: str
    state: str
    digest: str = ""
    data: dict[str, object] = field(default_factory=dict)


class Journal:
    """The journal of one deployment. Only the holder of the deployment's lock writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, step: str, state: str, *, digest: str = "", data: Mapping[str, object] | None = None) -> None:
        """Record that `step` reached `state`; the thing itself is made first, its line after."""
        line = {
            "schema": SCHEMA,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "step": step,
            "state": state,
            "digest": digest,
            "data": dict(data or {}),
        }
        append_line(self.path, json.dumps(line, ensure_ascii=False, sort_keys=True))

    def read(self) -> tuple[tuple[Entry, ...], tuple[Finding, ...]]:
        """All readable entries, and what was damaged.

        A torn line is what a kill or a power cut leaves: it is passed over. A journal with other damage is set aside
        whole, and its readable entries are still used.
        """
        if not self.path.exists():
            return (), ()
        lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        entries: list[Entry] = []
        bad: list[int] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            entry = _parse(line)
            if entry is not None:
                entries.append(entry)
            elif not _torn(line):
                bad.append(number)
        if not bad:
            return tuple(entries), ()
        kept = set_aside(self.path)
        for entry in entries:
            self.write(entry.step, entry.state, digest=entry.digest, data={**entry.data, "recovered_from": entry.at})
        return tuple(entries), (_damage(kept, bad),)

    def made(self, entries: Iterable[Entry]) -> Iterator[Mapping[str, object]]:
        """Everything this deployment brought onto the machine, with `existed` as it was the first time."""
        seen: set[object] = set()
        for entry in entries:
            things = entry.data.get("made", ())
            for thing in things if isinstance(things, list) else ():
                if isinstance(thing, dict) and thing.get("path") not in seen:
                    seen.add(thing.get("path"))
                    yield thing


def _parse(line: str) -> Entry | None:
    try:
        raw = json.loads(line)
    except ValueError:
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("step"), str) or not isinstance(raw.get("state"), str):
        return None
    data = raw.get("data")
    return Entry(
        at=str(raw.get("at", "")),
        step=raw["step"],
        state=raw["state"],
        digest=str(raw.get("digest", "")),
        data=data if isinstance(data, dict) else {},
    )


def _torn(line: str) -> bool:
    """The beginning of a line of ours; the next write has closed it with a newline."""
    return _START.startswith(line) or (line.startswith(_START) and not line.endswith("}"))


def _damage(kept: Path, lines: list[int]) -> Finding:
    return Finding(
        id="RT020",
        severity=Severity.WARNING,
        title=f"the journal had {len(lines)} unreadable line{'s' if len(lines) > 1 else ''}",
        place=Place(path=str(kept), line=lines[0]),
        why="Something other than selfhost wrote into it, or the disk lost data. Its readable lines are still used.",
        fix=(f"nothing to do; the damaged file is kept:\n{look_at(kept)}",),
    )
