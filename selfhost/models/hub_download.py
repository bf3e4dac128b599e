"""A whole snapshot into the user's cache: room first, then file by file, large ones continued where they were."""

from collections.abc import Mapping

from selfhost.core.lock import Held, me
from selfhost.models import hub_errors, hub_files, hub_resume
from selfhost.models.hub_cache import HubCache
from selfhost.models.hub_library import HubLibrary, LargeFile
from selfhost.models.hub_meter import Meter
from selfhost.shapes.event import Event, Sink
from selfhost.shapes.units import MIB, format_bytes

SPARE_BYTES = 64 * MIB
"""Room that must be left beside the files: for the lists, links and small files of the cache."""


def bring(
    library: HubLibrary,
    cache: HubCache,
    repo_id: str,
    commit: str,
    *,
    listing: Mapping[str, int],
    sink: Sink,
    step: str,
) -> str:
    """Bring all files that an engine needs of a commit, and return their directory."""
    hub_files.check_is_model(repo_id, listing)
    files = hub_files.wanted(listing)
    _check_room(cache, repo_id, commit)
    snapshot = _Snapshot(library, cache, repo_id, commit, sink=sink, step=step, total=sum(files.values()))
    for name, size in files.items():
        snapshot.bring(name, size=size)
    whole = cache.snapshot(repo_id, commit)
    if whole is None:
        raise hub_errors.broken_off(repo_id, cache, "the files do not have the announced sizes")
    cache.record(repo_id, commit)
    total = snapshot.meter.total
    sink.on(Event(step=step, state="done", text=f"{repo_id} {format_bytes(total)}", done=total, total=total))
    return whole


def _check_room(cache: HubCache, repo_id: str, commit: str) -> None:
    missing = cache.missing_bytes(repo_id, commit)
    free = cache.free_bytes
    if missing and missing + SPARE_BYTES > free:
        raise hub_errors.no_space(repo_id, cache, missing=missing, spare=SPARE_BYTES, free=free)


class _Snapshot:
    """One commit of one repository on its way into the cache."""

    def __init__(
        self, library: HubLibrary, cache: HubCache, repo_id: str, commit: str, *, sink: Sink, step: str, total: int
    ) -> None:
        self._library, self._cache = library, cache
        self._repo_id, self._commit = repo_id, commit
        self._sink, self._step = sink, step
        self.meter = Meter(sink, step=step, text=repo_id, total=total)

    def bring(self, name: str, *, size: int) -> None:
        """One file: by plain HTTP with resume where the hub offers that, else by the library."""
        self.meter.start_file()
        target = self._cache.folder(self._repo_id, self._commit) / name
        if target.is_file() and target.stat().st_size != size:
            target.resolve().unlink()  # cut by a full disk or a crash; the library would take it for whole
            target.unlink(missing_ok=True)
        if not target.is_file():
            large = self._library.large_file(self._repo_id, self._commit, name, size=size)
            if large is not None:
                self._resume(large, size=size)
            self._library.file(self._repo_id, self._commit, name, meter=self.meter)
        self.meter.file_is_at(size)

    def _resume(self, large: LargeFile, *, size: int) -> None:
        storage = self._cache.storage(self._repo_id)
        try:
            with self._library.speaking(self._repo_id, self._commit):
                hub_resume.fetch(
                    storage / "blobs" / large.sha256,
                    size=size,
                    sha256=large.sha256,
                    lock=self._cache.root / ".locks" / storage.name / f"{large.sha256}.lock",
                    who=me(f"download {self._repo_id}"),
                    open_from=lambda start: self._library.open(large.url, start),
                    at=self.meter.file_is_at,
                    on_wait=self._waiting,
                )
        except Held as held:
            raise hub_errors.held(
                self._repo_id, self._cache, holder=held.holder, waited_s=hub_resume.WAIT_FOR_OTHER_S
            ) from None

    def _waiting(self, holder: Mapping[str, object]) -> None:
        words = f"waiting for {hub_errors.holder_words(holder)}, which downloads {self._repo_id} too"
        self._sink.on(Event(step=self._step, state="working", text=words))
