"""The model hub, by huggingface_hub (this is the only file that imports it, at use: it costs some 300 ms)."""

import contextlib
import logging
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.models import hub_errors, hub_files, hub_resume, hub_words
from selfhost.models.hub_cache import COMMIT, HubCache
from selfhost.models.hub_meter import Meter, bar_of
from selfhost.shapes.event import Event, Sink
from selfhost.shapes.host import Fact, Known, Unknown
from selfhost.shapes.units import format_bytes

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_REACH_S = 3.0
_TIMEOUT_S = 20.0
_CONNECT_S = 8.0
_SPARE_BYTES = 64 * 1024 * 1024
_SHA256_DIGITS = 64


class Hub:
    """One hub and the user's cache of it, as the environment says. No method asks the network when offline."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)
        self.cache = HubCache.of(env, listings=Paths.of(env).cache / "hub")
        self._reached: Fact[bool] | None = None
        self._commits: dict[tuple[str, str], str] = {}

    def reachable(self) -> Fact[bool]:
        """Whether the hub answers, by one request of at most 3 s per Hub object."""
        if self.cache.offline:
            return Known(value=False, how="HF_HUB_OFFLINE is set")
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
        with self._speaking(repo_id, branch):
            found = self._api().model_info(repo_id, revision=branch, timeout=_TIMEOUT_S).sha
        if not found or not COMMIT.fullmatch(found):
            raise hub_errors.broken_off(repo_id, self.cache, f"the answer names no commit ({found})")
        self._commits[repo_id, branch] = found
        self.cache.note(repo_id, branch, found)
        return found

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
            self._by_library(repo_id, commit, name, meter=None)
        return str(self.cache.folder(repo_id, commit))

    def size(self, repo_id: str, revision: str) -> Fact[int]:
        """Bytes of everything that a download brings."""
        return self._sum(repo_id, revision, weights_only=False)

    def weights_size(self, repo_id: str, revision: str) -> Fact[int]:
        """Bytes of the weight files alone."""
        return self._sum(repo_id, revision, weights_only=True)

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
        hub_files.check_is_model(repo_id, listing)
        files = hub_files.wanted(listing)
        meter = Meter(sink, step=step, text=repo_id, total=sum(files.values()))
        self._check_space(repo_id, commit, files)
        for name, size in files.items():
            self._bring(repo_id, commit, name, size=size, meter=meter)
        whole = self.snapshot(repo_id, commit)
        if whole is None:
            raise hub_errors.broken_off(repo_id, self.cache, "the files do not have the announced sizes")
        self.cache.record(repo_id, commit)
        sink.on(
            Event(
                step=step,
                state="done",
                text=f"{repo_id} {format_bytes(meter.total)}",
                done=meter.total,
                total=meter.total,
            )
        )
        return whole

    def _check_space(self, repo_id: str, commit: str, files: Mapping[str, int]) -> None:
        folder = self.cache.folder(repo_id, commit)
        missing = sum(size for name, size in files.items() if not (folder / name).is_file())
        partial = sum(path.stat().st_size for path in self.cache.storage(repo_id).glob("blobs/*.selfhost.incomplete"))
        place = self.cache.root
        while not place.exists():
            place = place.parent
        free = shutil.disk_usage(place).free
        needed = max(0, missing - partial)
        if needed and needed + _SPARE_BYTES > free:
            raise hub_errors.no_space(repo_id, self.cache, needed=needed, free=free)

    def _bring(self, repo_id: str, commit: str, name: str, *, size: int, meter: Meter) -> None:
        """One file into the snapshot: by plain HTTP with resume where the hub offers that, else by the library."""
        meter.start_file()
        target = self.cache.folder(repo_id, commit) / name
        if target.is_file() and target.stat().st_size != size:
            target.resolve().unlink()  # cut by a full disk or a crash; the library would take it for whole
            target.unlink(missing_ok=True)
        if not target.is_file():
            with self._speaking(repo_id, commit):
                self._large(repo_id, commit, name, size=size, meter=meter)
            self._by_library(repo_id, commit, name, meter=meter)
        meter.file_is_at(size)

    def _large(self, repo_id: str, commit: str, name: str, *, size: int, meter: Meter) -> None:
        """Fetch the blob of an LFS file; does nothing for small files and for those in Xet storage."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        self._api()
        url = hf_hub_url(repo_id, name, revision=commit, endpoint=self.cache.endpoint)
        about = get_hf_file_metadata(
            url, token=self._token(), timeout=_TIMEOUT_S, endpoint=self.cache.endpoint, retry_on_errors=True
        )
        etag = about.etag or ""
        if len(etag) != _SHA256_DIGITS or about.xet_file_data is not None or about.size != size:
            return
        storage = self.cache.storage(repo_id)
        hub_resume.fetch(
            storage / "blobs" / etag,
            size=size,
            sha256=etag,
            lock=self.cache.root / ".locks" / storage.name / f"{etag}.lock",
            open_from=lambda start: self._open(url, start),
            at=meter.file_is_at,
        )

    @contextlib.contextmanager
    def _open(self, url: str, start: int) -> Iterator[hub_resume.Range]:
        """The file from byte `start` on. The client drops the token when the hub sends it to another host."""
        import httpx2  # the client of huggingface_hub 2.x
        from huggingface_hub import get_session
        from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]  # public, without __all__

        token = self._token()
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {})
        if start:
            headers["Range"] = f"bytes={start}-"
        try:
            with get_session().stream("GET", url, headers=headers, timeout=_TIMEOUT_S) as answer:
                hf_raise_for_status(answer)
                yield hub_resume.Range(start if answer.status_code == 206 else 0, answer.iter_raw())
        except httpx2.TransportError as error:
            raise hub_resume.Interrupted(hub_words.reason(error)) from error

    def _by_library(self, repo_id: str, commit: str, name: str, *, meter: Meter | None) -> None:
        from huggingface_hub import hf_hub_download

        self._api()
        with self._speaking(repo_id, commit):
            hf_hub_download(
                repo_id,
                name,
                revision=commit,
                cache_dir=self.cache.root,
                endpoint=self.cache.endpoint,
                token=self._token(),
                tqdm_class=bar_of(meter),
            )

    def _listing(self, repo_id: str, commit: str) -> dict[str, int]:
        """Names and sizes of all files at a commit; kept, because a commit never changes."""
        known = self.cache.listing(repo_id, commit)
        if known is not None:
            return known
        from huggingface_hub.hf_api import RepoFile

        with self._speaking(repo_id, commit):
            tree = self._api().list_repo_tree(repo_id, recursive=True, revision=commit)
            listing = {entry.path: entry.size for entry in tree if isinstance(entry, RepoFile)}
        self.cache.keep_listing(repo_id, commit, listing)
        return listing

    def _api(self) -> "HfApi":
        """The library, quiet and with time-outs; by itself it waits for ever for some answers."""
        import httpx2
        from huggingface_hub import HfApi, set_client_factory

        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        if not getattr(Hub, "_client_set", False):
            local = self.cache.endpoint.startswith(("http://127.0.0.1", "http://localhost", "http://[::1]"))
            set_client_factory(
                lambda: httpx2.Client(
                    follow_redirects=True,
                    timeout=httpx2.Timeout(_TIMEOUT_S, connect=_CONNECT_S),
                    trust_env=not local,
                )
            )
            Hub._client_set = True
        return HfApi(endpoint=self.cache.endpoint, token=self._token())

    _client_set = False

    def _token(self) -> str | bool:
        """The user's token; one from the usual file goes through the library, which renews expiring ones."""
        from huggingface_hub import constants, get_token

        token = self.cache.token
        if token is None:
            return False
        if token.source == str(Path(constants.HF_TOKEN_PATH)):
            return get_token() or token.value
        return token.value

    @contextlib.contextmanager
    def _speaking(self, repo_id: str, asked: str) -> Iterator[None]:
        """Refuse before the network when offline, and turn what the library raises into words."""
        if self.cache.offline:
            raise hub_errors.offline(repo_id, self.cache)
        import httpx2

        try:
            yield
        except (httpx2.HTTPError, OSError, ValueError) as error:
            raise hub_words.in_words(error, repo_id, asked=asked, cache=self.cache, env=self._env) from error
