"""The hub's own library, quiet, with time-outs and refusals in words; the only file that imports it (some 300 ms)."""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from selfhost.models import hub_errors, hub_exceptions, hub_resume
from selfhost.models.hub_cache import HubCache
from selfhost.models.hub_meter import Meter, bar_of

_TIMEOUT_S = 20.0
_CONNECT_S = 8.0
_PIECE_TIMEOUT_S = 8.0
_SHA256_DIGITS = 64
_PARTIAL, _BEYOND = 206, 416
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class LargeFile:
    """A file that is fetched by plain HTTP: its address and the SHA-256 of its bytes."""

    url: str
    sha256: str


class HubLibrary:
    """What selfhost asks of huggingface_hub, for one user's cache. Each method raises a SelfhostError."""

    def __init__(self, cache: HubCache, env: Mapping[str, str]) -> None:
        self._cache = cache
        self._env = dict(env)

    def commit(self, repo_id: str, branch: str) -> tuple[str, bool]:
        """What a branch or tag stands for now, empty when the hub does not say; and whether it gives files to a token
        alone, because the repository is gated or private.
        """
        from huggingface_hub import HfApi

        with self.speaking(repo_id, branch):
            api = HfApi(endpoint=self._cache.endpoint, token=self._token())
            said = api.model_info(repo_id, revision=branch, timeout=_TIMEOUT_S)
            return said.sha or "", bool(said.gated or said.private)

    def tree(self, repo_id: str, commit: str) -> dict[str, int]:
        """Names and sizes of all files at a commit."""
        from huggingface_hub import HfApi
        from huggingface_hub.hf_api import RepoFile

        with self.speaking(repo_id, commit):
            api = HfApi(endpoint=self._cache.endpoint, token=self._token())
            entries = api.list_repo_tree(repo_id, recursive=True, revision=commit)
            return {entry.path: entry.size for entry in entries if isinstance(entry, RepoFile)}

    def file(self, repo_id: str, commit: str, name: str, *, meter: Meter | None = None) -> None:
        """One file into the cache, by the library itself."""
        from huggingface_hub import hf_hub_download

        with self.speaking(repo_id, commit):
            hf_hub_download(
                repo_id,
                name,
                revision=commit,
                cache_dir=self._cache.root,
                endpoint=self._cache.endpoint,
                token=self._token(),
                tqdm_class=bar_of(meter),
            )

    def large_file(self, repo_id: str, commit: str, name: str, *, size: int) -> LargeFile | None:
        """An LFS file; None for small files and for those in Xet storage, which the library alone can assemble."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        with self.speaking(repo_id, commit):
            url = hf_hub_url(repo_id, name, revision=commit, endpoint=self._cache.endpoint)
            about = get_hf_file_metadata(
                url, token=self._token(), timeout=_TIMEOUT_S, endpoint=self._cache.endpoint, retry_on_errors=True
            )
        etag = about.etag or ""
        if len(etag) != _SHA256_DIGITS or about.xet_file_data is not None or about.size != size:
            return None
        return LargeFile(url, etag)

    @contextlib.contextmanager
    def open(self, url: str, start: int) -> Iterator[hub_resume.Range]:
        """A file from byte `start` on. The client drops the token when the hub sends it to another host."""
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
            raise hub_resume.Interrupted(hub_exceptions.reason(error)) from error

    def piece(self, repo_id: str, commit: str, name: str, *, start: int, length: int) -> bytes:
        """`length` bytes of a file from `start` on, fewer at its end; a hub that ignores ranges is read that far."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]  # public, without __all__

        token = self._token()
        headers = {"Accept-Encoding": "identity", "Range": f"bytes={start}-{start + length - 1}"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        with self.speaking(repo_id, commit):
            url = hf_hub_url(repo_id, name, revision=commit, endpoint=self._cache.endpoint)
            with get_session().stream("GET", url, headers=headers, timeout=_PIECE_TIMEOUT_S) as answer:
                if answer.status_code == _BEYOND:
                    return b""
                hf_raise_for_status(answer)
                skipped = start if answer.status_code != _PARTIAL else 0
                return _first(answer.iter_raw(), skipped + length)[skipped:]

    @contextlib.contextmanager
    def speaking(self, repo_id: str, asked: str) -> Iterator[None]:
        """Refuse before the network when offline, and turn what the library raises into words."""
        if self._cache.offline:
            raise hub_errors.offline(repo_id, self._cache)
        import httpx2

        _make_patient()
        try:
            yield
        except (httpx2.HTTPError, OSError, ValueError) as error:
            raise hub_exceptions.in_words(error, repo_id, asked=asked, cache=self._cache, env=self._env) from error

    def _token(self) -> str | bool:
        """The user's token; one from the usual file goes through the library, which renews expiring ones."""
        from huggingface_hub import constants, get_token

        token = self._cache.token
        if token is None:
            return False
        if token.source == str(Path(constants.HF_TOKEN_PATH)):
            return get_token() or token.value
        return token.value


def _first(chunks: Iterator[bytes], count: int) -> bytes:
    """The first bytes of a stream, which is left behind then."""
    found = bytearray()
    for chunk in chunks:
        found += chunk
        if len(found) >= count:
            break
    return bytes(found[:count])


@once
def _make_patient() -> None:
    """Once per process: the library without its own messages, and with time-outs, or it waits for ever for some."""
    import httpx2
    from huggingface_hub import set_client_factory

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    set_client_factory(
        lambda: httpx2.Client(
            follow_redirects=True,
            timeout=httpx2.Timeout(_TIMEOUT_S, connect=_CONNECT_S),
            mounts={f"all://{host}": None for host in _LOOPBACK},  # a proxy cannot lead to this machine's own hub
        )
    )
