"""Weights on disk, judged by their headers alone: true size, whole or damaged, safe or pickled."""

import json
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

from selfhost.core.errors import InputError
from selfhost.models.folder import PICKLES, is_pickle, names
from selfhost.shapes.finding import Place
from selfhost.shapes.host import Fact, Known, Unknown
from selfhost.shapes.units import format_bytes

_LENGTH = 8
_HEADER_LIMIT = 100_000_000
"""The format's own limit (safetensors, MAX_HEADER_SIZE)."""
_POINTER = b"version https://git-lfs"
_NUMBERED = re.compile(r"-(\d{5})-of-(\d{5})\.")


def files(folder: str | Path) -> tuple[Path, ...]:
    """The safetensors files an engine would load; adapters and Mistral's consolidated twins left out."""
    root = Path(folder)
    found = [name for name in names(root) if name.endswith(".safetensors") and not name.startswith("adapter_")]
    own = [name for name in found if not name.startswith("consolidated")]
    return tuple(root / name for name in own or found)


def pickles(folder: str | Path) -> tuple[Path, ...]:
    """The pickles an engine would load: none while there are safetensors files."""
    root = Path(folder)
    return () if files(root) else tuple(root / name for name in names(root) if is_pickle(name))


def pickled(folder: str | Path) -> bool:
    """Whether the weights are only there as pickles, whose loading may run code; plan refuses them unless allowed."""
    return bool(pickles(folder))


def total_bytes(folder: str | Path) -> Fact[int]:
    """Bytes of all tensors by the headers. Raises InputError for damaged files."""
    found = files(folder)
    if found:
        return Known(sum(_data_bytes(path) for path in found), "safetensors headers")
    others = pickles(folder)
    if others:
        return Known(sum(path.stat().st_size for path in others), "sizes of the pickle files")
    return Unknown("there are no safetensors files")


def check(folder: str | Path, *, allow_pickle: bool = True) -> None:
    """Raise InputError when weights are missing, cut, or not what they are named; reads headers only.

    Plan refuses pickles before anything is fetched (PL031). `allow_pickle` false refuses those it could not know of:
    of a repository whose files nobody could list then.
    """
    root = Path(folder)
    _check_leftovers(root)
    _check_shards(root)
    found = files(root)
    others = pickles(root)
    if not found and not others:
        raise InputError(
            f"{root} has no weights",
            why="There is neither a *.safetensors nor a pytorch_model*.bin beside config.json.",
            fix=_again(root),
            evidence=", ".join(names(root)[:8]),
            id="MD018",
            place=Place(path=str(root)),
        )
    for path in found:
        _data_bytes(path)
    if others and not allow_pickle:
        raise InputError(
            f"{root} has its weights only as pickles",
            why="A pickle can run any program while it is read; safetensors cannot.",
            fix=(
                "use a repository with safetensors",
                "or, if you trust its author:\nselfhost up MODEL@REVISION --allow-pickle",
            ),
            evidence=_few([path.name for path in others]),
            id="MD017",
            place=Place(path=str(root)),
        )
    for path in others:
        _check_pickle(path)


def _check_leftovers(root: Path) -> None:
    """Links into nowhere are what an interrupted or half-deleted hub download leaves."""
    for entry in sorted(root.iterdir()):
        if entry.is_symlink() and not entry.exists():
            raise InputError(
                f"{entry} points to a file that is gone",
                why="The download was interrupted, or the hub's cache was partly deleted.",
                fix=_again(root),
                evidence=f"{entry.name} -> {entry.readlink()}",
                id="MD015",
                place=Place(path=str(entry)),
            )


def _check_shards(root: Path) -> None:
    """Every shard that the index names, or that the numbering promises, must be there."""
    missing = sorted(set(expected_shards(root)) - set(names(root)))
    if missing:
        half = [entry.name for entry in root.rglob("*.incomplete")]
        raise InputError(
            f"{len(missing)} of {len(expected_shards(root))} weight files are missing in {root}: {_few(missing)}",
            why="A download that was stopped left .incomplete files." if half else "The copy or download is not whole.",
            fix=_again(root),
            evidence=_few(half),
            id="MD015",
            place=Place(path=str(root)),
        )


def expected_shards(root: Path) -> tuple[str, ...]:
    """File names that an index lists or that `00001-of-00003` promises; empty for a single file."""
    for index in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        if (root / index).is_file() and (index.startswith("model") or not files(root)):
            return tuple(sorted(set(_weight_map(root / index).values())))
    promised: set[str] = set()
    ending: str | tuple[str, ...] = ".safetensors" if files(root) else PICKLES
    for name in names(root):
        numbered = _NUMBERED.search(name)
        if numbered and name.endswith(ending) and 0 < int(numbered[2]) < 10_000:
            promised |= {
                f"{name[: numbered.start()]}-{number:05d}-of-{numbered[2]}.{name[numbered.end() :]}"
                for number in range(1, int(numbered[2]) + 1)
            }
    return tuple(sorted(promised))


def _weight_map(path: Path) -> dict[str, str]:
    try:
        index = json.loads(path.read_bytes())
        return {str(tensor): str(file) for tensor, file in index["weight_map"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(path, "is not a shard index", why="It holds no JSON object with weight_map.") from None


def _data_bytes(path: Path) -> int:
    """Bytes of all tensors in one file, checked against the file's size. Raises InputError when they disagree."""
    size = path.stat().st_size
    if size == 0:
        raise _empty(path)
    with path.open("rb") as stream:
        start = stream.read(_LENGTH)
        length = struct.unpack("<Q", start)[0] if len(start) == _LENGTH else 0
        if length < 2 or length > _HEADER_LIMIT:
            raise _other_file(path, start + stream.read(300), kind="safetensors file")
        header = stream.read(length)
    if len(header) < length:
        raise _cut(path, size, f"{_LENGTH + length:,} bytes for the header alone")
    total = _end_of_data(path, header)
    if size != _LENGTH + length + total:
        raise _cut(path, size, f"{_LENGTH + length + total:,} bytes by its header")
    return total


def _end_of_data(path: Path, header: bytes) -> int:
    try:
        tensors: dict[str, Any] = json.loads(header)
        ends = [tensor["data_offsets"][1] for name, tensor in tensors.items() if name != "__metadata__"]
        if not all(isinstance(end, int) and end >= 0 for end in ends):
            raise _damaged(path, "has a damaged header", why="A tensor's data_offsets are no byte positions.")
        return max(ends, default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise _damaged(path, "has a damaged header", why="It holds no JSON description of tensors.") from None


def _check_pickle(path: Path) -> None:
    """By its first and last bytes, without loading it: torch.save writes a zip archive since PyTorch 1.6."""
    size = path.stat().st_size
    if size == 0:
        raise _empty(path)
    with path.open("rb") as stream:
        start = stream.read(300)
    if start.startswith(b"PK") and not zipfile.is_zipfile(path):
        raise _cut(path, size, "the end of its zip archive")
    if start.startswith(_POINTER) or _is_page(start):
        raise _other_file(path, start, kind="file of weights")


def _cut(path: Path, size: int, expected: str) -> InputError:
    return _damaged(
        path,
        f"has {size:,} bytes, expected {expected}",
        why="The file was cut, as an interrupted copy or download leaves it.",
        id="MD014",
    )


def _empty(path: Path) -> InputError:
    return _damaged(path, "is empty (0 bytes)", why="The download did not get started, or the disk was full.")


def _is_page(start: bytes) -> bool:
    return start.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml"))


def _other_file(path: Path, start: bytes, *, kind: str) -> InputError:
    """What a file is that is not of the `kind` its name says."""
    if start.startswith(_POINTER):
        wanted = re.search(rb"size (\d+)", start)
        size = f" of {format_bytes(int(wanted[1]))}" if wanted else ""
        return _damaged(
            path,
            f"is a Git LFS pointer, not the weights{size}",
            why="The repository was cloned without git-lfs, so only placeholders came.",
            fix=(f"in the clone:\ngit -C {path.parent} lfs pull", *_again(path.parent)),
        )
    if _is_page(start):
        return _damaged(
            path,
            "is a web page, not weights",
            why="A log-in or error page was saved under the file's name.",
            evidence=start[:120].decode("utf-8", "replace"),
        )
    return _damaged(
        path,
        f"is not a {kind}",
        why="Its first eight bytes are no header length.",
        evidence=start[:24].hex(" "),
    )


def _damaged(
    path: Path, what: str, *, why: str, fix: tuple[str, ...] = (), evidence: str = "", id: str = "MD016"
) -> InputError:
    return InputError(
        f"{path} {what}",
        why=why,
        fix=fix or _again(path.parent, path),
        evidence=evidence,
        id=id,
        place=Place(path=str(path)),
    )


def _again(folder: Path, file: Path | None = None) -> tuple[str, ...]:
    """The command that fetches the model anew; a hub snapshot knows its own name."""
    repo = re.search(r"models--(.+?)--(.+?)/snapshots/([0-9a-f]{40})", str(folder))
    if repo:
        one = f" {file.name}" if file else ""
        force = " --force-download" if file else ""
        return (f"fetch it again from the hub:\nhf download {repo[1]}/{repo[2]}{one} --revision {repo[3]}{force}",)
    return (f"fetch it again, whole:\nhf download ORG/NAME --local-dir {folder}",)


def _few(found: list[str]) -> str:
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
