"""selfhost.lock on the disk, and the entry of a service out of what was planned, brought here and seen."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import selfhost
from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.files import write_atomic
from selfhost.plan.digest import digest_of
from selfhost.shapes.fact import Known, Vendor
from selfhost.shapes.finding import Place
from selfhost.shapes.host import Accelerator, Host
from selfhost.shapes.model import Origin
from selfhost.shapes.plan import Plan, ReasoningPlan
from selfhost.shapes.surroundings import Surroundings
from selfhost.stack.differences import Difference
from selfhost.stack.entry import Entry, LockedFile, LockedHost, LockedImage
from selfhost.stack.lock import from_text, to_text
from selfhost.stack.locked import check_locked, entry_of

LARGEST_BYTES: Final = 64 * 2**20
_VENDORS: Final = {Vendor.NVIDIA: "NVIDIA", Vendor.AMD: "AMD", Vendor.INTEL: "Intel"}
_OF_ONE_MACHINE: Final = ("--model", "--model-path", "--host", "--port", "--served-model-name", "--api-key")
"""Flags that name paths, addresses and names."""
_PODMAN: Final = ("podman", "quadlet")


def write_lock(path: Path, entries: Mapping[str, Entry]) -> bool:
    """Replace the file whole; False when it says the same already. Raises EnvironmentMissing."""
    text = to_text(entries)
    try:
        if path.exists() and path.read_bytes() == text.encode():
            return False
        write_atomic(path, text, mode=0o644)
    except OSError as error:
        raise EnvironmentMissing(
            f"{path} cannot be written: {error.strerror}",
            fix=("write it elsewhere:\nselfhost lock -o /path/that/is/yours/selfhost.lock",),
            id="CF028",
        ) from None
    return True


def read_lock(path: Path) -> dict[str, Entry]:
    """The services of a lock. Raises InputError: not there, damaged, of a later selfhost."""
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_BYTES + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise InputError(
            f"there is no {path}" if missing else f"{path} cannot be read: {error.strerror}",
            why="A lock is made from what runs, once it was started without one." if missing else "",
            fix=("write it:\nselfhost lock",),
            id="CF028",
        ) from None
    try:
        return from_text(data.decode("utf-8-sig"), path=str(path))
    except UnicodeDecodeError:
        raise InputError(
            f"{path} is damaged, or is no lock",
            why="It is not UTF-8 text.",
            fix=("take it back from version control", "write it anew, from what runs here:\nselfhost lock"),
            id="CF023",
            place=Place(path=str(path)),
        ) from None


def held_against(path: Path, now: Entry, *, name: str) -> tuple[Difference, ...]:
    """What may differ between the lock and what is here. Raises InputError, EnvironmentMissing for what must not."""
    return check_locked(entry_of(read_lock(path), name, path=str(path)), now, name=name)


def lock_of(
    plan: Plan,
    host: Host,
    *,
    image: LockedImage | None = None,
    libraries: Mapping[str, str] | None = None,
    files: tuple[LockedFile, ...] = (),
) -> Entry:
    """The entry of one service. Before anything was brought here, image, libraries and files stay unknown."""
    cards = _cards(plan, host)
    revision = plan.model.revision
    return Entry(
        runtime=plan.runtime,
        engine=plan.build.engine,
        engine_version=plan.build.version,
        image=image,
        model=plan.model.id,
        # that of a folder counts the times of its files: the sums stand for it
        revision=revision.value if isinstance(revision, Known) and plan.model.origin is not Origin.FOLDER else "",
        files=files,
        reasoning=reasoning_words(plan.reasoning) if plan.reasoning.can_think else "none",
        weights_precision=plan.weights_precision,
        kv_precision=plan.kv_precision,
        context=plan.context,
        concurrency=plan.concurrency,
        devices=0 if plan.device == "cpu" else plan.device_count,
        flags=tuple(_flags(plan.argv)),
        plan_digest=digest_of(plan),
        libraries=dict(libraries or {}),
        host=_host(plan, host, cards),
        selfhost=selfhost.__version__,
    )


def reasoning_words(reasoning: ReasoningPlan) -> str:
    """As `--reasoning` takes it."""
    if reasoning.budget_tokens is not None:
        return f"budget={reasoning.budget_tokens}"
    return f"effort={reasoning.effort}" if reasoning.effort else reasoning.mode.value


def _flags(argv: tuple[str, ...]) -> Iterator[str]:
    """Each flag with its words, without those of one machine; the model's path stands before the first flag."""
    kept = False
    for word in argv:
        if word.startswith("--"):
            kept = word.partition("=")[0] not in _OF_ONE_MACHINE
        if kept:
            yield word


def _cards(plan: Plan, host: Host) -> list[Accelerator]:
    words = plan.device.split(",")
    return [card for card in host.accelerators if {card.uuid, card.pci, str(card.index)} & set(words) - {""}]


def _host(plan: Plan, host: Host, cards: list[Accelerator]) -> LockedHost:
    around = host.surroundings or Surroundings()
    vendors = {card.vendor for card in cards}
    stacks = [stack for stack in around.drivers if stack.vendor in vendors]
    drivers = [
        f"{_VENDORS.get(stack.vendor, 'other')} {stack.module.value}"
        for stack in stacks
        if isinstance(stack.module, Known)
    ]
    if not drivers and Vendor.NVIDIA in vendors and isinstance(host.driver, Known):
        drivers = [f"NVIDIA {host.driver.value}"]
    names = [card.name for card in cards]
    engine = "podman" if plan.runtime in _PODMAN else plan.runtime
    return LockedHost(
        driver=", ".join(drivers),
        cuda=next((stack.cuda.value for stack in stacks if isinstance(stack.cuda, Known)), ""),
        toolkit=", ".join(
            f"{one.vendor.value}-container-toolkit {one.version.value}"
            for one in around.toolkits
            if one.vendor in vendors and isinstance(one.version, Known)
        ),
        container_engine=next((f"{one.kind} {one.version}" for one in around.engines if one.kind == engine), ""),
        cards={name: names.count(name) for name in sorted(set(names))},
    )
