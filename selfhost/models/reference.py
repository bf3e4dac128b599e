"""What the user typed, taken apart: an alias, a hub id, the address of a model's page, or a directory."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from selfhost.core.errors import InputError
from selfhost.models import catalog
from selfhost.models.catalog import CatalogRow

_HUB_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?/[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
_PAGE = re.compile(r"(?:hf://|(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/)(?:models/)?(.+)")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A reference, taken apart. Exactly one of `folder` and `repo_id` is set."""

    ref: str
    folder: Path | None = None
    repo_id: str = ""
    revision: str = ""
    row: CatalogRow | None = None


def take_apart(ref: str, env: Mapping[str, str]) -> Asked:
    page = _PAGE.fullmatch(ref)
    if page:
        return _of_page(ref, page[1])
    name, _, revision = ref.partition("@")
    row = catalog.by_alias(name)
    if row is not None:
        return Asked(ref=ref, repo_id=row.id, revision=_checked_revision(ref, revision) or row.revision, row=row)
    folder = _as_folder(ref, env)
    if folder is not None:
        return Asked(ref=ref, folder=folder)
    if "/" not in name:
        raise _unknown_name(ref, name)
    return _of_hub_id(ref, name, revision)


def _of_page(ref: str, rest: str) -> Asked:
    """`org/name`, `org/name@rev` or a page of it such as `org/name/tree/rev`."""
    parts = re.split(r"[?#]", rest, maxsplit=1)[0].strip("/").split("/")
    name, _, revision = "/".join(parts[:2]).partition("@")
    if len(parts) > 3 and parts[2] in ("tree", "blob", "resolve", "commit"):
        revision = parts[3]
    return _of_hub_id(ref, name, revision)


def _of_hub_id(ref: str, name: str, revision: str) -> Asked:
    if not _HUB_ID.fullmatch(name) or "--" in name or ".." in name or name.endswith(".git"):
        raise InputError(
            f"`{ref}` is not a model",
            why="A model is an alias, a hub id such as Qwen/Qwen3-4B (with @REVISION if wanted), or a directory.",
            fix=("see what selfhost knows by name:\nselfhost models", "a directory is best typed with ./ or /"),
            id="MD023",
        )
    row = catalog.by_id(name)
    repo_id = row.id if row else name
    pinned = row.revision if row else ""
    return Asked(ref=ref, repo_id=repo_id, revision=_checked_revision(ref, revision) or pinned, row=row)


def _checked_revision(ref: str, revision: str) -> str:
    if ref.endswith("@") or (revision and (not _REVISION.fullmatch(revision) or ".." in revision)):
        raise InputError(
            f"`{revision}` in `{ref}` is not a revision",
            why="After @ stands a branch, a tag, or a commit of 40 hexadecimal digits.",
            fix=("leave out the part after @ for the newest state",),
            id="MD009",
        )
    return revision


def _as_folder(ref: str, env: Mapping[str, str]) -> Path | None:
    """The directory that `ref` means, or None when it is a name. A typed path counts even if nothing is there."""
    path = Path(env.get("HOME") or "/root") / ref[2:] if ref.startswith("~/") else Path(ref)
    typed = ref.startswith(("/", "./", "../", "~/")) or ref in (".", "..") or _outside_hub(ref)
    if not ref:
        return None
    return path.absolute() if typed or path.exists() else None


def _outside_hub(ref: str) -> bool:
    """More slashes than a hub id has; a revision after @ may have its own (`refs/pr/4`)."""
    return ref.partition("@")[0].count("/") > 1 or ref.endswith("/")


def _unknown_name(ref: str, name: str) -> InputError:
    near = catalog.nearest(name.replace(":", "-").replace("_", "-"))
    return InputError(
        f"selfhost knows no model `{ref}`" if ref else "no model was named",
        why="A name without a slash is looked up in the catalog; a directory of that name is not here either.",
        fix=(
            *(f"perhaps {other}" for other in near),
            "see all names:\nselfhost models",
            "any other model works by its hub id, for instance:\nselfhost up Qwen/Qwen3-4B",
        ),
        id="MD001",
    )
