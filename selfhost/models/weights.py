"""Weights on disk, judged by their headers alone: true size, whole or damaged, safe or pickled."""

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from selfhost.core.errors import InputError
from selfhost.models import weights_errors as errors
from selfhost.models.folder import PICKLES, adapter, gguf, is_pickle, names
from selfhost.models.headers import LENGTH_BYTES, BadHeaderError, Tensor, length_of, tensors_in
from selfhost.models.tensor_kinds import summed
from selfhost.shapes.finding import Place
from selfhost.shapes.host import Fact, Known, Unknown
from selfhost.shapes.tensors import Tensors

_NUMBERED = re.compile(r"-(\d{5})-of-(\d{5})\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """`tensors` is None for pickles, whose insides nobody reads here."""

    total: Fact[int]
    tensors: Tensors | None = None


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
    return measured(folder).total


def measured(folder: str | Path) -> Measured:
    """All headers once. Raises InputError for damaged files."""
    found = files(folder)
    if found:
        tensors = summed(_read(path) for path in found)
        return Measured(total=Known(tensors.total, "safetensors headers"), tensors=tensors)
    others = pickles(folder)
    if others:
        return Measured(total=Known(sum(path.stat().st_size for path in others), "sizes of the pickle files"))
    return Measured(total=Unknown("there are no safetensors files"))


def check(folder: str | Path, *, allow_pickle: bool = True) -> Measured:
    """Raise InputError when weights are missing, cut, or not what they are named; reads headers only, once.

    Plan refuses pickles before anything is fetched (PL031). `allow_pickle` false refuses those it could not know of:
    of a repository whose files nobody could list then.
    """
    root = Path(folder)
    _check_leftovers(root)
    _check_shards(root)
    found = measured(root)
    others = pickles(root)
    if isinstance(found.total, Unknown):
        _check_is_whole_model(root)
        raise InputError(
            f"{root} has no weights",
            why="There is neither a *.safetensors nor a pytorch_model*.bin beside config.json.",
            fix=errors.again(root),
            evidence=", ".join(names(root)[:8]),
            id="MD018",
            place=Place(path=str(root)),
        )
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
    if found.tensors is not None and not found.tensors.total:
        raise errors.damaged(files(root)[0], "holds no tensors", why="Its header describes none.")
    return found


def _check_is_whole_model(root: Path) -> None:
    """Raise InputError for what came with a config.json and is still no model."""
    seen = names(root)
    if "adapter_config.json" in seen:
        raise adapter(root)
    if any(name.endswith(".gguf") for name in seen):
        raise gguf(root)


def _check_leftovers(root: Path) -> None:
    """Links into nowhere are what an interrupted or half-deleted hub download leaves."""
    for entry in sorted(root.iterdir()):
        if entry.is_symlink() and not entry.exists():
            raise InputError(
                f"{entry} points to a file that is gone",
                why="The download was interrupted, or the hub's cache was partly deleted.",
                fix=errors.again(root),
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
            fix=errors.again(root),
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
        raise errors.damaged(path, "is not a shard index", why="It holds no JSON object with weight_map.") from None


def _read(path: Path) -> tuple[Tensor, ...]:
    """All tensors of one file by its header, checked against the file's size. Raises InputError when they disagree."""
    size = path.stat().st_size
    if size == 0:
        raise errors.empty(path)
    with path.open("rb") as stream:
        start = stream.read(LENGTH_BYTES)
        try:
            length = length_of(start)
        except BadHeaderError:
            raise errors.other_file(path, start + stream.read(300), kind="safetensors file") from None
        header = stream.read(length)
    if len(header) < length:
        raise errors.cut(path, size, f"{LENGTH_BYTES + length:,} bytes for the header alone")
    try:
        tensors = tensors_in(header)
    except BadHeaderError as error:
        raise errors.damaged(path, "has a damaged header", why=str(error)) from None
    whole = LENGTH_BYTES + length + max((tensor.end for tensor in tensors), default=0)
    if size != whole:
        raise errors.cut(path, size, f"{whole:,} bytes by its header")
    return tensors


def _check_pickle(path: Path) -> None:
    """By its first and last bytes, without loading it: torch.save writes a zip archive since PyTorch 1.6."""
    size = path.stat().st_size
    if size == 0:
        raise errors.empty(path)
    with path.open("rb") as stream:
        start = stream.read(300)
    if start.startswith(b"PK") and not zipfile.is_zipfile(path):
        raise errors.cut(path, size, "the end of its zip archive")
    if errors.is_pointer(start) or errors.is_page(start):
        raise errors.other_file(path, start, kind="file of weights")


def _few(found: list[str]) -> str:
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
