"""What is wrong with a file of weights, in words, and how to fetch it again."""

import re
from pathlib import Path

from selfhost.core.errors import InputError
from selfhost.shapes.finding import Place
from selfhost.shapes.units import format_bytes


def cut(path: Path, size: int, expected: str) -> InputError:
    return damaged(
        path,
        f"has {size:,} bytes, expected {expected}",
        why="The file was cut, as an interrupted copy or download leaves it.",
        id="MD014",
    )


def empty(path: Path) -> InputError:
    return damaged(path, "is empty (0 bytes)", why="The download did not get started, or the disk was full.")


def is_pointer(start: bytes) -> bool:
    return start.startswith(b"version https://git-lfs")


def is_page(start: bytes) -> bool:
    return start.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml"))


def other_file(path: Path, start: bytes, *, kind: str) -> InputError:
    """What a file is that is not of the `kind` its name says."""
    if is_pointer(start):
        wanted = re.search(rb"size (\d+)", start)
        size = f" of {format_bytes(int(wanted[1]))}" if wanted else ""
        return damaged(
            path,
            f"is a Git LFS pointer, not the weights{size}",
            why="The repository was cloned without git-lfs, so only placeholders came.",
            fix=(f"in the clone:\ngit -C {path.parent} lfs pull", *again(path.parent)),
        )
    if is_page(start):
        return damaged(
            path,
            "is a web page, not weights",
            why="A log-in or error page was saved under the file's name.",
            evidence=start[:120].decode("utf-8", "replace"),
        )
    return damaged(
        path,
        f"is not a {kind}",
        why="Its first eight bytes are no header length.",
        evidence=start[:24].hex(" "),
    )


def damaged(
    path: Path, what: str, *, why: str, fix: tuple[str, ...] = (), evidence: str = "", id: str = "MD016"
) -> InputError:
    return InputError(
        f"{path} {what}",
        why=why,
        fix=fix or again(path.parent, path),
        evidence=evidence,
        id=id,
        place=Place(path=str(path)),
    )


def again(folder: Path, file: Path | None = None) -> tuple[str, ...]:
    """The command that fetches the model anew; a hub snapshot knows its own name."""
    repo = re.search(r"models--(.+?)--(.+?)/snapshots/([0-9a-f]{40})", str(folder))
    if repo:
        one = f" {file.name}" if file else ""
        force = " --force-download" if file else ""
        return (f"fetch it again from the hub:\nhf download {repo[1]}/{repo[2]}{one} --revision {repo[3]}{force}",)
    return (f"fetch it again, whole:\nhf download ORG/NAME --local-dir {folder}",)
