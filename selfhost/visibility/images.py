"""What an image is by its name: whose cards it is for, which engine and version, which chips it has code for. Pure."""

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from selfhost.core.table import read_table
from selfhost.shapes.host import Vendor
from selfhost.shapes.workload import Workload

_REGISTRY = re.compile(r"\A(?:docker\.io|index\.docker\.io|mirror\.gcr\.io)/(?:library/)?")


@dataclass(frozen=True, slots=True)
class Image:
    """One row of images.toml. `vendor` and `engine` are empty where the name does not say."""

    vendor: Vendor | None
    engine: str
    archs: frozenset[str]
    grants_all: bool
    """It carries NVIDIA_VISIBLE_DEVICES=all, as every image on top of nvidia/cuda does."""
    base: bool
    """Without a command it starts a shell, not a server."""


@cache
def _rows() -> tuple[tuple[re.Pattern[str], dict[str, Any]], ...]:
    rows = read_table("selfhost.visibility", "images.toml")["image"]
    return tuple((re.compile(row["regex"]), row) for row in rows)


@cache
def known(reference: str) -> Image | None:
    """The row of an image reference (`name:tag@digest`), whatever registry in front; None for an unknown one."""
    name, tag = split(reference)
    for regex, row in _rows():
        if regex.search(f"{name}:{tag}"):
            vendor = row.get("vendor", "")
            return Image(
                vendor=Vendor(vendor) if vendor else None,
                engine=row.get("engine", ""),
                archs=frozenset(row.get("archs", ())),
                grants_all=bool(row.get("grants_all", False)),
                base=bool(row.get("base", False)),
            )
    return None


def split(reference: str) -> tuple[str, str]:
    """Name without Docker Hub's own address, and tag; the tag is empty when there is none."""
    plain = _REGISTRY.sub("", reference.partition("@")[0])
    name, colon, tag = plain.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (plain, "")


def vendor_of(reference: str) -> Vendor | None:
    """Whose cards the image is for; None when its name does not say."""
    image = known(reference) if reference else None
    return image.vendor if image else None


def image_archs(reference: str) -> frozenset[str]:
    """Chips that the image has code for; empty when that is not known."""
    image = known(reference) if reference else None
    return image.archs if image else frozenset()


def engine_version(reference: str) -> tuple[int, ...] | None:
    """Version by the tag (`v0.31.0-cu129` is (0, 31, 0)); None for `latest`, a digest alone, or no tag."""
    image = known(reference) if reference else None
    tag = split(reference)[1] if reference else ""
    if image is None or not image.engine:
        return None
    # AMD's and SGLang's tags carry other versions too; the engine's follows its name, or begins the tag.
    found = re.search(rf"{image.engine}[_-](\d+(?:\.\d+)+)", tag) or re.match(r"v?(\d+\.\d+(?:\.\d+)*)(?!\d|-py)", tag)
    return tuple(int(part) for part in found[1].split(".")) if found else None


def engine_of(workload: Workload) -> str | None:
    """`vllm` or `sglang`: by the words of the command, else by the image; None for anything else."""
    words = [word.rpartition("/")[2] for word in workload.argv[:6]]
    for word, after in pairwise(words):
        if word in ("vllm", "sglang") and after in ("serve", "api_server"):
            return word
        if word == "-m" and after.split(".")[0] in ("vllm", "sglang"):
            return after.split(".")[0]
    image = known(workload.image) if workload.image else None
    return image.engine or None if image else None
