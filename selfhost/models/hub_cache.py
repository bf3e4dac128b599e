"""The user's own Hugging Face cache, read without the hub library and without a network.

Layout: https://huggingface.co/docs/huggingface_hub/guides/manage-cache
"""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from selfhost.core.files import write_atomic
from selfhost.models.hub_files import wanted
from selfhost.models.hub_token import NoToken, Token, find, is_true
from selfhost.models.weights import expected_shards, files, pickled
from selfhost.shapes.tensors import Kind, Part, Tensors

COMMIT = re.compile(r"[0-9a-f]{40}")
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
"""The first that is set decides, even when it says no (huggingface_hub, constants.py)."""
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "tiktoken.model", "vocab.txt")


@dataclass(frozen=True, slots=True)
class HubCache:
    """Where the hub's library looks, by the same variables in the same order as the library itself."""

    root: Path
    endpoint: str
    offline_by: str
    """The variable that forbids the network; empty when none does."""
    listings: Path
    """File lists that selfhost keeps, so that a snapshot can be judged complete without asking the hub."""
    found: Token | NoToken

    @classmethod
    def of(cls, env: Mapping[str, str], *, listings: Path) -> "HubCache":
        user = Path(env.get("HOME") or "/root")
        home = _expand(
            env.get("HF_HOME") or str(Path(env.get("XDG_CACHE_HOME") or user / ".cache") / "huggingface"), user
        )
        root = _expand(env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE") or str(home / "hub"), user)
        token_file = _expand(env.get("HF_TOKEN_PATH") or str(home / "token"), user)
        return cls(
            root=root,
            endpoint=(env.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/"),
            offline_by=_offline_by(env),
            listings=listings,
            found=find(env, token_file),
        )

    @property
    def offline(self) -> bool:
        return bool(self.offline_by)

    @property
    def token(self) -> Token | None:
        return self.found if isinstance(self.found, Token) else None

    @property
    def free_bytes(self) -> int:
        """On the disk that holds the cache, or will."""
        place = self.root
        while not place.exists():
            place = place.parent
        return shutil.disk_usage(place).free

    def storage(self, repo_id: str) -> Path:
        return self.root / f"models--{repo_id.replace('/', '--')}"

    def folder(self, repo_id: str, commit: str) -> Path:
        return self.storage(repo_id) / "snapshots" / commit

    def commit(self, repo_id: str, asked: str) -> str | None:
        """The commit of a whole local snapshot for a branch or tag, else what it last stood for; a commit is itself."""
        known = self._commits(repo_id, asked)
        whole = (one for one in known if self._whole_folder(repo_id, one) is not None)
        return next(whole, next(iter(known), None))

    def _commits(self, repo_id: str, asked: str) -> tuple[str, ...]:
        """What a branch or tag stands for: by the library's note first, then by ours."""
        if COMMIT.fullmatch(asked):
            return (asked,)
        places = (self.storage(repo_id) / "refs" / asked, self._notes(repo_id) / asked)
        return tuple(dict.fromkeys(commit for place in places if (commit := _read_commit(place))))

    def note(self, repo_id: str, asked: str, commit: str) -> None:
        """Remember what the hub said a branch stands for, before anything of it is here."""
        write_atomic(self._notes(repo_id) / asked, commit)

    def _notes(self, repo_id: str) -> Path:
        return self.listings / self.storage(repo_id).name / "refs"

    def record(self, repo_id: str, commit: str) -> None:
        """A snapshot is whole: write every branch that we noted for it in the library's own place."""
        notes = self._notes(repo_id)
        for place in sorted(notes.rglob("*")) if notes.is_dir() else ():
            if place.is_file() and _read_commit(place) == commit:
                write_atomic(self.storage(repo_id) / "refs" / place.relative_to(notes), commit, mode=0o644)

    def snapshot(self, repo_id: str, asked: str) -> str | None:
        """The directory of a whole local snapshot, or None: nothing is dangling, missing or of the wrong size."""
        folders = (self._whole_folder(repo_id, commit) for commit in self._commits(repo_id, asked))
        return next((folder for folder in folders if folder is not None), None)

    def _whole_folder(self, repo_id: str, commit: str) -> str | None:
        folder = self.folder(repo_id, commit)
        is_whole = (folder / "config.json").is_file() and self._is_whole(repo_id, commit, folder)
        return str(folder) if is_whole else None

    def _is_whole(self, repo_id: str, commit: str, folder: Path) -> bool:
        if any(path.is_symlink() and not path.exists() for path in folder.rglob("*")):
            return False
        listing = self.listing(repo_id, commit)
        if listing is not None:
            return all(_has(folder / name, size) for name, size in wanted(listing).items())
        if not any((folder / name).is_file() for name in _TOKENIZERS):
            return False
        shards = expected_shards(folder)
        return all((folder / name).is_file() for name in shards) and bool(files(folder) or pickled(folder))

    def listing(self, repo_id: str, commit: str) -> dict[str, int] | None:
        """Names and sizes of a repository's files at a commit, as noted at the download: by us, or by the library."""
        return _ours(self._listing_file(repo_id, commit)) or _theirs(self.storage(repo_id) / "trees" / f"{commit}.json")

    def missing_bytes(self, repo_id: str, commit: str) -> int | None:
        """Bytes of a download that are not here yet; None while the repository's files are not known."""
        listing = self.listing(repo_id, commit)
        if listing is None:
            return None
        folder = self.folder(repo_id, commit)
        missing = sum(size for name, size in wanted(listing).items() if not _has(folder / name, size))
        partial = sum(path.stat().st_size for path in self.storage(repo_id).glob("blobs/*.selfhost.incomplete"))
        return max(0, missing - partial)

    def keep_listing(self, repo_id: str, commit: str, listing: Mapping[str, int]) -> None:
        write_atomic(self._listing_file(repo_id, commit), json.dumps(dict(listing), indent=1) + "\n")

    def tensors(self, repo_id: str, commit: str) -> Tensors | None:
        """The sums over a commit's headers, as kept; anything unreadable counts as not there."""
        try:
            raw = json.loads(self._tensors_file(repo_id, commit).read_bytes())
            parts = tuple(Part(**{**one, "kind": Kind(one["kind"])}) for one in raw["parts"])
            return Tensors(parts=parts, files=raw["files"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep_tensors(self, repo_id: str, commit: str, tensors: Tensors) -> None:
        write_atomic(self._tensors_file(repo_id, commit), json.dumps(asdict(tensors)) + "\n")

    def _tensors_file(self, repo_id: str, commit: str) -> Path:
        return self.listings / self.storage(repo_id).name / f"{commit}.tensors.json"

    def _listing_file(self, repo_id: str, commit: str) -> Path:
        return self.listings / self.storage(repo_id).name / f"{commit}.json"


def _read_commit(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return text if COMMIT.fullmatch(text) else None


def _has(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _ours(path: Path) -> dict[str, int] | None:
    """Our own list; anything unreadable counts as not there, and is fetched anew."""
    try:
        listing = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(listing, dict) or not all(isinstance(size, int) for size in listing.values()):
        return None
    return listing or None


def _theirs(path: Path) -> dict[str, int] | None:
    """The list that huggingface_hub 2.x keeps beside its snapshots (format_version 1)."""
    try:
        tree = json.loads(path.read_bytes())
        return {name: int(entry.get("lfs_size") or entry["size"]) for name, entry in tree["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _expand(text: str, user: Path) -> Path:
    return user / text[2:] if text.startswith("~/") else Path(text)


def _offline_by(env: Mapping[str, str]) -> str:
    name = next((name for name in _OFFLINE if env.get(name)), "")
    return name if name and is_true(env[name]) else ""
