"""What `lock` tells: the services with their digests, or where the lock and what runs here part."""

import json
from collections.abc import Mapping

from selfhost.engines.names import shown
from selfhost.shapes.units import format_bytes
from selfhost.stack.differences import Difference, differences
from selfhost.stack.entry import Entry
from selfhost.stack.lock import SCHEMA, to_text

Found = Mapping[str, tuple[str, ...]]


def compared(before: Mapping[str, Entry], now: Mapping[str, Entry]) -> dict[str, tuple[str, ...]]:
    """Words for each service whose entry would change; services that only one side has among them."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted({*before, *now}):
        if name not in before:
            found[name] = ("it is not in the lock",)
        elif name not in now:
            found[name] = ("it is in the lock, and not in the file",)
        elif before[name] != now[name]:
            said = differences(before[name], now[name])
            found[name] = tuple(_said(one) for one in said) or ("values that one of both does not know",)
    return found


def _said(one: Difference) -> str:
    return f"{one}. {one.why}"


def words(entries: Mapping[str, Entry], *, path: str, changed: bool, found: Found, check: bool) -> str:
    if check and found:
        lines = [f"{name}: {text}" for name, texts in found.items() for text in texts]
        return "\n".join([*lines, f"{path} differs from what runs here"])
    if check:
        return f"{path} is what runs here"
    lines = [f"{name:<{max(map(len, entries))}}  {_line(entry)}" for name, entry in entries.items()]
    return "\n".join([*lines, f"{path} {'written' if changed else 'says so already'}"])


def _line(entry: Entry) -> str:
    image = entry.image
    runs = f"{entry.runtime}, {len(entry.libraries)} libraries" if image is None else image.digest or image.reference
    total = format_bytes(sum(file.size for file in entry.files))
    revision = f"@{entry.revision[:12]}" if entry.revision else ""
    weights = f"{entry.model}{revision}, {len(entry.files)} files, {total}"
    return f"{shown(entry.engine)} {entry.engine_version} · {runs} · {weights}"


def to_json(entries: Mapping[str, Entry], *, path: str, changed: bool, found: Found) -> dict[str, object]:
    return {
        "schema": "selfhost.locked/1",
        "ok": not any(found.values()),
        "path": path,
        "lock_schema": SCHEMA,
        "changed": changed,
        "services": json.loads(to_text(entries))["services"],
        "differs": {name: list(texts) for name, texts in found.items()},
    }
