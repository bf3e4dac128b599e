"""What a lock of the services of one file would say, by the state of their deployments on this machine."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing
from selfhost.deploy.file_sums import files_of
from selfhost.deploy.lockfile import lock_of
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.hosts.detect import detect
from selfhost.plan.digest import digest_of
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Plan
from selfhost.shapes.service import Service
from selfhost.stack.entry import Entry, LockedFile, LockedImage

_VERSIONED = re.compile(r"@.*")
_NOT_THE_WISH = ("origins", "name")


@dataclass(slots=True, kw_only=True)
class Locked:
    """`never` were not started here, `other` were started from other settings: of both nothing can be locked."""

    entries: dict[str, Entry] = field(default_factory=dict)
    never: list[str] = field(default_factory=list)
    other: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The fields that differ, by service."""
    remarks: list[str] = field(default_factory=list)


def lock_here(work: Workplace, services: Sequence[Service]) -> Locked:
    """Reads state and weights; starts, stops and fetches nothing."""
    host = detect(work.system, disk_paths=(), wide=True)
    locked = Locked()
    for service in services:
        state = State(work.paths, service.name, say=work.say)
        plan = state.plan()
        if plan is None:
            locked.never.append(service.name)
            continue
        if changed := _changed(service, state.service()):
            locked.other[service.name] = changed
            continue
        locked.entries[service.name] = _entry(work, state, plan, host)
        locked.remarks += _remarks(service.name, state, plan)
    return locked


def refuse_unfinished(locked: Locked, *, file: str) -> None:
    """A lock without some of the services would promise what it does not hold. Raises EnvironmentMissing."""
    if not locked.never and not locked.other:
        return
    parts = []
    if locked.never:
        parts.append(f"{_names(locked.never)} {'was' if len(locked.never) == 1 else 'were'} never started here")
    parts += [f"`{name}` was started with another {' and '.join(fields)}" for name, fields in locked.other.items()]
    names = [*locked.never, *locked.other]
    raise EnvironmentMissing(
        "; ".join(parts) + ": nothing was locked",
        why="Digests and sums are those of what was pulled and started; a service that was not has none.",
        fix=("start it, then lock again:\n" + "\n".join(f"selfhost up --file {file} {name}" for name in names),),
        id="CF029",
    )


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _changed(wanted: Service, started: Service | None) -> tuple[str, ...]:
    """Fields of the file that the running deployment was not started with. A pinned version is the same wish."""
    if started is None:
        return ()
    one, other = _comparable(wanted), _comparable(started)
    return tuple(key.replace("_", " ") for key in one if one[key] != other.get(key))


def _comparable(service: Service) -> dict[str, object]:
    plain = json.loads(json.dumps(asdict(service)))
    body: dict[str, object] = {key: value for key, value in plain.items() if key not in _NOT_THE_WISH}
    return {**body, "model": _VERSIONED.sub("", service.model), "engine": None, "image": None}


def _entry(work: Workplace, state: State, plan: Plan, host: Host) -> Entry:
    found = state.lock()
    is_container = plan.container is not None
    image = (
        LockedImage(
            reference=str(found.get("image", "")),
            digest=str(found.get("image_digest", "")),
            platform=str(found.get("platform", "")),
        )
        if is_container
        else None
    )
    versions = found.get("versions")
    return lock_of(
        plan,
        host,
        image=image,
        libraries={str(k): str(v) for k, v in versions.items()} if isinstance(versions, dict) else {},
        files=_files(work, plan),
    )


def _files(work: Workplace, plan: Plan) -> tuple[LockedFile, ...]:
    folder = Path(plan.model.path)
    if not plan.model.path or not folder.is_dir():
        raise EnvironmentMissing(
            f"the weights of `{plan.name}` are no longer in {plan.model.path or 'any folder'}",
            why="Their sums belong into the lock.",
            fix=(f"start it again, which brings them back:\nselfhost up {plan.model.ref} --name {plan.name}",),
            id="CF027",
        )
    return files_of(folder, kept=work.paths.cache / "sums.json", sink=work.sink)


def _remarks(name: str, state: State, plan: Plan) -> Iterator[str]:
    checks = state.checks()
    if checks is None or checks.plan_digest != digest_of(plan):
        yield f"{name} was not checked with this plan; `selfhost smoke {name}` would"
    elif checks.exit_code != 0:
        yield f"{name} is locked as it is, and its last check did not pass: {checks.summary}"
    if plan.container is not None and not state.lock().get("image_digest"):
        yield f"{name}: the image has no digest of a registry (it was made or loaded here); only its name is locked"
