"""Keys: made here, kept in files of their own, named everywhere else by their path."""

import secrets
from pathlib import Path

from selfhost.core.files import write_atomic

HEADER_SUFFIX = ".header"


def ensure_key(path: Path) -> str:
    """Return the key in `path`, making it (0600) when there is none.

    Beside it lies `<path>.header`, the same key as an HTTP header line, so that `curl -H @FILE` needs no key on a
    command line, where every user of the machine could read it.
    """
    key = read_key(path) if path.exists() else ""
    if not key:
        key = f"sk-selfhost-{secrets.token_urlsafe(32)}"
        write_atomic(path, key + "\n")
    header = path.with_name(path.name + HEADER_SUFFIX)
    line = f"Authorization: Bearer {key}\n"
    if not header.exists() or header.read_text(encoding="utf-8") != line:
        write_atomic(header, line)
    return key


def read_key(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
