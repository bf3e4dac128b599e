"""The model hub: what a repository is, has and weighs; asked only for what the user's cache does not know."""

import threading
from collections.abc import Mapping
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing, SelfhostError
from selfhost.core.paths import Paths
from selfhost.models import hub_download, hub_errors, hub_files, hub_headers
from selfhost.models.hub_cache import COMMIT, HubCache
from selfhost.models.hub_library import HubLibrary
from selfhost.shapes.event import Event, Sink
from selfhost.shapes.host import Fact, Known, Unknown
from selfhost.shapes.tensors import Tensors

_REACH_S = 3.0


class Hub:
    """One hub and the user's cache of it, as the environment says. No method asks the network when offline."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.cache = HubCache.of(env, listings=Paths.of(env).cache / "hub")
        self._library = HubLibrary(self.cache, env)
        self._reached: Fact[bool] | None = None
        self._commits: dict[tuple[str, str], str] = {}
        self._closed: dict[str, bool] = {}

    @property
    def cache_folder(self) -> str:
        """Where downloads go: the disk to look at for free room. It may not exist yet."""
        return str(self.cache.root)

    def reachable(self) -> Fact[bool]:
        """Whether the hub answers, by one request of at most 3 s per Hub object."""
        if self.cache.offline:
            return Known(value=False, how=f"{self.cache.offline_by} is set")
        if self._reached is None:
            self._reached = self._ask()
        return self._reached

    def _ask(self) -> Fact[bool]:
        from selfhost.core.http import Client  # at use: 187 ms

        answers: list[tuple[int, str]] = []

        def ask() -> None:  # in a thread, because looking up a name has no time-out of its own
            with Client(self.cache.endpoint, timeout_s=_REACH_S) as client:
                reply = client.request("HEAD", "/")
                answers.append((reply.status, reply.error))

        worker = threading.Thread(target=ask, daemon=True)
        worker.start()
        worker.join(_REACH_S)
        if not answers:
            return Known(value=False, how=f"{self.cache.endpoint} did not answer within {_REACH_S:g} s")
        status, error = answers[0]
        if 0 < status < 500 and status != 407:  # 407: the proxy answered, not the hub
            return Known(value=True, how=f"HTTP {status} from {self.cache.endpoint}")
        return Known(value=False, how=f"{self.cache.endpoint}: {error or f'HTTP {status}'}")

    def revision(self, repo_id: str, asked: str = "") -> Fact[str]:
        """The commit of a branch, tag or commit. Raises InputError (gated, unknown); no network is Unknown."""
        local = self.snapshot(repo_id, asked) is not None
        try:
            return Known(self.commit(repo_id, asked), str(self.cache.root) if local else self.cache.endpoint)
        except EnvironmentMissing as error:
            return Unknown(error.what)

    def commit(self, repo_id: str, asked: str = "") -> str:
        """Like `revision`, and raises EnvironmentMissing when the hub cannot be asked."""
        branch = asked or "main"
        if COMMIT.fullmatch(branch):
            return branch
        if self.snapshot(repo_id, branch) is not None:
            return self.cache.commit(repo_id, branch) or branch
        if (repo_id, branch) in self._commits:
            return self._commits[repo_id, branch]
        found, self._closed[repo_id] = self._library.commit(repo_id, branch)
        if not COMMIT.fullmatch(found):
            raise hub_errors.broken_off(repo_id, self.cache, f"the answer names no commit ({found or 'empty'})")
        self._commits[repo_id, branch] = found
        self.cache.note(repo_id, branch, found)
        return found

    def closed(self, repo_id: str) -> Fact[bool]:
        """Whether nobody gets its files without a token: it is gated, or private. Raises InputError as `revision`."""
        reached = self.reachable()
        if isinstance(reached, Known) and not reached.value:
            return Unknown(f"the hub was not asked: {reached.how}")
        try:
            if repo_id not in self._closed:
                _, self._closed[repo_id] = self._library.commit(repo_id, "main")
        except EnvironmentMissing as error:
            return Unknown(error.what)
        return Known(self._closed[repo_id], self.cache.endpoint)

    def snapshot(self, repo_id: str, revision: str) -> str | None:
        """The directory of a complete local snapshot, without any network; None when there is none."""
        return self.cache.snapshot(repo_id, revision or "main")

    def card_files(self, repo_id: str, revision: str) -> str:
        """Fetch config, tokenizer settings and chat template only; returns their directory."""
        whole = self.snapshot(repo_id, revision)
        if whole is not None:
            return whole
        commit = self.commit(repo_id, revision)
        listing = self._listing(repo_id, commit)
        hub_files.check_is_model(repo_id, listing)
        for name in hub_files.card_files(listing):
            self._library.file(repo_id, commit, name)
        return str(self.cache.folder(repo_id, commit))

    def size(self, repo_id: str, revision: str) -> Fact[int]:
        """Bytes of everything that a download brings."""
        return self._sum(repo_id, revision, weights_only=False)

    def weights_size(self, repo_id: str, revision: str) -> Fact[int]:
        """Bytes of the weight files alone."""
        return self._sum(repo_id, revision, weights_only=True)

    def weights_headers(self, repo_id: str, commit: str) -> Fact[Tensors]:
        """What the weights of a commit consist of, by the headers of its files; kept, because a commit never changes.

        Unknown for pickles, without a network, and where the headers and the file list disagree.
        """
        known = self.cache.tensors(repo_id, commit)
        if known is not None:
            return Known(known, "safetensors headers")
        try:
            listing = self._files_of(repo_id, commit)
            names = [name for name in hub_files.weight_files(listing) if name.endswith(".safetensors")]
            if not names:
                return Unknown("there are no safetensors files")
            sizes = {name: listing[name] for name in names}
            found = hub_headers.read_all(
                sizes,
                lambda name, start, length: self._library.piece(repo_id, commit, name, start=start, length=length),
            )
        except SelfhostError as error:
            return Unknown(error.what)
        if isinstance(found, Known):
            self.cache.keep_tensors(repo_id, commit, found.value)
        return found

    def pickled(self, repo_id: str, revision: str) -> bool:
        """Whether the repository has its weights only as pickles; False while its files are not known."""
        commit = self.cache.commit(repo_id, revision or "main")
        listing = self.cache.listing(repo_id, commit) if commit else None
        return listing is not None and not any(
            name.endswith(".safetensors") for name in hub_files.weight_files(listing)
        )

    def _sum(self, repo_id: str, revision: str, *, weights_only: bool) -> Fact[int]:
        try:
            listing = self._files_of(repo_id, revision)
        except EnvironmentMissing as error:
            return Unknown(error.what)
        chosen = hub_files.weight_files(listing) if weights_only else hub_files.wanted(listing)
        return Known(sum(listing[name] for name in chosen), "the repository's file list")

    def _files_of(self, repo_id: str, revision: str) -> dict[str, int]:
        whole = self.snapshot(repo_id, revision)
        if whole is not None:
            return {path.name: path.stat().st_size for path in Path(whole).iterdir() if path.is_file()}
        return self._listing(repo_id, self.commit(repo_id, revision))

    def download(self, repo_id: str, revision: str, *, sink: Sink, step: str) -> str:
        """Bring a whole snapshot and return its directory; what is here already is not fetched again."""
        asked = revision or "main"
        already = self.snapshot(repo_id, asked)
        if already is not None:
            sink.on(Event(step=step, state="unchanged", text=f"{repo_id} is already here"))
            return already
        commit = self.commit(repo_id, asked)
        listing = self._listing(repo_id, commit)
        return hub_download.bring(self._library, self.cache, repo_id, commit, listing=listing, sink=sink, step=step)

    def _listing(self, repo_id: str, commit: str) -> dict[str, int]:
        """Names and sizes of all files at a commit; kept, because a commit never changes."""
        known = self.cache.listing(repo_id, commit)
        if known is not None:
            return known
        listing = self._library.tree(repo_id, commit)
        self.cache.keep_listing(repo_id, commit, listing)
        return listing
