"""Which names may stand for a deployment, and the nearest one to any text."""

import re

from selfhost.core.errors import InputError

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")


def is_name(name: str) -> bool:
    """Whether `name` can be a folder, a container, a unit and a DNS label part."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> str:
    """Return `name` when it can be a folder, a container, a unit and a DNS label part; raise InputError else."""
    if not is_name(name):
        raise InputError(
            f"`{name}` cannot name a deployment",
            why="A name becomes a folder and a container: 1 to 63 of a-z 0-9 . _ -, letters or digits at both ends.",
            fix=(f"use for instance:\nselfhost up MODEL --name {slug(name) or 'my-model'}",),
            id="CF001",
        )
    return name


def slug(text: str) -> str:
    """The nearest valid name: `Qwen/Qwen3-4B` → `qwen3-4b`."""
    base = text.rstrip("/").rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9._-]+", "-", base).strip("-._")[:63].rstrip("-._")
