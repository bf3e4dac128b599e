"""What a locked service and the one at hand do not have in common: what must be equal, what may differ, and why."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from selfhost.stack.entry import Entry, LockedFile, LockedHost, LockedImage


class Kind(StrEnum):
    """What a difference comes from."""

    ASKED = "asked"
    """Something else was asked for, or decided on other cards."""
    FOUND = "found"
    """What was pulled, downloaded or installed is not the same."""
    AROUND = "around"
    """The machine: may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`why` says why it matters, or why it does not."""

    field: str
    locked: str
    now: str
    why: str
    kind: Kind

    @property
    def serious(self) -> bool:
        """What answers is not what was locked."""
        return self.kind is not Kind.AROUND

    def __str__(self) -> str:
        return f"{self.field}: {self.locked or 'none'} is locked, {self.now or 'none'} is here"


_ASKED: Final = {
    "runtime": "A process and a container run other libraries.",
    "engine": "Another engine has other kernels, parsers and defaults.",
    "engine version": "Kernels, parsers and defaults change between versions.",
    "model": "It is another model.",
    "revision": "Weights or templates of another revision may be others.",
    "reasoning": "Clients that send nothing get another mode.",
    "precision of the weights": "Other numbers give other answers.",
    "precision of the KV cache": "Other numbers give other answers.",
    "context": "Longer requests are refused, or other memory is needed.",
    "concurrency": "Fewer or more requests run at the same time.",
    "image": "It was made from another image.",
}
_FOUND: Final = {
    "image digest": "The same tag now names other bytes.",
    "platform": "The image is for another processor.",
}
_AROUND: Final = {
    "devices": "The model is cut otherwise; answers may differ in the last digits.",
    "flags": "They follow the cards and their memory.",
    "plan digest": "It counts paths and devices of one machine too.",
    "driver": "It may differ: the engine's own code stays the same.",
    "CUDA": "It may differ as long as the engine starts.",
    "toolkit": "It only hands the cards in.",
    "container engine": "It only starts the container.",
    "cards": "Speed, and on other architectures the last digits, may differ.",
    "selfhost": "What it decided is compared above.",
}
_ALSO_NONE: Final = ("devices", "cards")
"""To have none is something else than not to know."""
_LIBRARY: Final = "The engine computes with what is installed beside it."
_FILE: Final = "The file is another one than was locked."


def differences(lock: Entry, now: Entry) -> tuple[Difference, ...]:
    """The serious ones first. What one side does not know is not compared."""
    found = [*_asked(lock, now), *_images(lock.image, now.image), *_files(lock.files, now.files)]
    found += [*_libraries(lock.libraries, now.libraries), *_around(lock, now)]
    return tuple(sorted(found, key=lambda one: not one.serious))


def _asked(lock: Entry, now: Entry) -> Iterator[Difference]:
    pairs = (
        ("runtime", lock.runtime, now.runtime),
        ("engine", lock.engine, now.engine),
        ("engine version", lock.engine_version, now.engine_version),
        ("model", lock.model, now.model),
        ("revision", lock.revision, now.revision),
        ("reasoning", lock.reasoning, now.reasoning),
        ("precision of the weights", lock.weights_precision, now.weights_precision),
        ("precision of the KV cache", lock.kv_precision, now.kv_precision),
        ("context", lock.context, now.context),
        ("concurrency", lock.concurrency, now.concurrency),
    )
    for field, locked, here in pairs:
        if locked and here and locked != here:
            yield _difference(field, locked, here, _ASKED[field], Kind.ASKED)


def _images(lock: LockedImage | None, now: LockedImage | None) -> Iterator[Difference]:
    """The digest decides; names are compared where one of them has none."""
    if lock is None or now is None:
        return
    both = bool(lock.digest and now.digest)
    if both and lock.digest != now.digest:
        yield _difference("image digest", lock.digest, now.digest, _FOUND["image digest"], Kind.FOUND)
    if not both and _name(lock) != _name(now):
        yield _difference("image", _name(lock), _name(now), _ASKED["image"], Kind.ASKED)
    if lock.platform and now.platform and lock.platform != now.platform:
        yield _difference("platform", lock.platform, now.platform, _FOUND["platform"], Kind.FOUND)


def _name(image: LockedImage) -> str:
    return image.reference.partition("@")[0]


def _files(lock: tuple[LockedFile, ...], now: tuple[LockedFile, ...]) -> Iterator[Difference]:
    if not lock or not now:
        return
    before, after = ({one.path: one for one in files} for files in (lock, now))
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old != new:
            yield _difference(f"file {path}", _sum(old), _sum(new), _FILE, Kind.FOUND)


def _sum(file: LockedFile | None) -> str:
    return f"sha256 {file.sha256[:12]}…, {file.size:,} bytes" if file is not None else ""


def _libraries(lock: dict[str, str], now: dict[str, str]) -> Iterator[Difference]:
    if not lock or not now:
        return
    for name in sorted({*lock, *now}):
        if lock.get(name) != now.get(name):
            yield _difference(f"library {name}", lock.get(name, ""), now.get(name, ""), _LIBRARY, Kind.FOUND)


def _around(lock: Entry, now: Entry) -> Iterator[Difference]:
    pairs = (
        ("devices", lock.devices, now.devices),
        ("flags", " ".join(lock.flags), " ".join(now.flags)),
        ("plan digest", lock.plan_digest[:12], now.plan_digest[:12]),
        *_hosts(lock.host, now.host),
        ("selfhost", lock.selfhost, now.selfhost),
    )
    for field, locked, here in pairs:
        if locked != here and (field in _ALSO_NONE or (locked and here)):
            yield _difference(field, locked, here, _AROUND[field], Kind.AROUND)


def _hosts(lock: LockedHost, now: LockedHost) -> Iterator[tuple[str, str, str]]:
    if now == LockedHost():  # nobody looked
        return
    yield "driver", lock.driver, now.driver
    yield "CUDA", lock.cuda, now.cuda
    yield "toolkit", lock.toolkit, now.toolkit
    yield "container engine", lock.container_engine, now.container_engine
    yield "cards", _cards(lock.cards), _cards(now.cards)


def _cards(cards: dict[str, int]) -> str:
    return ", ".join(f"{count} × {name}" for name, count in sorted(cards.items()))


def _difference(field: str, locked: object, now: object, why: str, kind: Kind) -> Difference:
    return Difference(field=field, locked=str(locked or ""), now=str(now or ""), why=why, kind=kind)
