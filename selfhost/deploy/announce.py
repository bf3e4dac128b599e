"""Before the first byte: what will come, onto which disk, whether there is room, and whether it is wanted."""

from collections.abc import Iterator
from dataclasses import dataclass

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.deploy.choose import CHOSEN
from selfhost.deploy.run import Run
from selfhost.plan.command_line import command_line
from selfhost.runtimes.image_size import PROCESSORS, pull_bytes
from selfhost.shapes.host import Known
from selfhost.shapes.model import Origin
from selfhost.shapes.units import GIB, format_bytes

STEP = "fetch"
ASK_ABOVE_BYTES = 10 * 1000**3
"""Weights above this are asked for, also when the model was named."""
MARGIN_BYTES = GIB // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """One thing that is to be fetched: onto which folder's disk, and the variable that moves it."""

    what: str
    size: int | None
    """Bytes on the disk; None when nobody knows."""
    folder: str
    variable: str
    packed: bool = False
    """`size` is what travels; unpacked it takes more, and nobody knows how much."""

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.what} of unknown size"
        return f"{self.what} {format_bytes(self.size)}{', more once unpacked' if self.packed else ''}"


def announce(run: Run, *, engine_missing: bool, weights_missing: bool, image_missing: bool = False) -> None:
    """Say what comes, refuse what has no room, and ask when it is large or nobody named the model."""
    coming = (
        *_coming(run, engine_missing=engine_missing, weights_missing=weights_missing),
        *((_image(run),) if image_missing else ()),
    )
    if not coming:
        return
    for folder in dict.fromkeys(one.folder for one in coming):
        _room(run, folder, [one for one in coming if one.folder == folder])
    size = next((one.size or 0 for one in coming if one.what == "weights"), 0)
    chosen = run.gathered.service.origins.get("model") == CHOSEN
    words = " and ".join(str(one) for one in coming)
    asked = size > ASK_ABOVE_BYTES or (chosen and run.work.interactive)
    if asked and not run.work.ask(f"{run.plan.model.served_name}: {words} will be fetched; go on?"):
        raise InputError(
            "nothing was fetched: the answer was no",
            why="Large downloads, and models that nobody named, are asked for first.",
            fix=("see what else there is:\nselfhost models", "or agree beforehand:\nselfhost up MODEL --yes"),
            id="CF011",
        )


def _coming(run: Run, *, engine_missing: bool, weights_missing: bool) -> Iterator[Coming]:
    if engine_missing:
        yield Coming(
            what="the engine",
            size=run.plan.build.installed_bytes,
            folder=str(run.work.paths.cache),
            variable="XDG_CACHE_HOME",
        )
    if weights_missing:
        size = run.plan.model.weights_bytes
        hub = run.plan.model.origin is Origin.HUB
        yield Coming(
            what="weights",
            size=size.value if isinstance(size, Known) else None,
            folder=run.gathered.hub.cache_folder if hub else str(run.work.paths.cache),
            variable="HF_HOME" if hub else "XDG_CACHE_HOME",
        )


def _image(run: Run) -> Coming:
    """Its disk must have room for what travels at the least; whether all of it fits shows only when it is unpacked."""
    around = run.gathered.host.surroundings
    engines = around.engines if around is not None else ()
    kind = run.plan.container.engine if run.plan.container is not None else ""
    root = next((one.root_dir for one in engines if one.kind == kind and one.root_dir and not one.remote), "")
    name = run.plan.container.image if run.plan.container is not None else ""
    return Coming(what=f"the image {name}", size=_travels(run, name), folder=root or "/", variable="", packed=True)


def _travels(run: Run, image: str) -> int | None:
    """What a pull will bring, asked of the registry; None where it does not say, or the machine is another one."""
    architecture = PROCESSORS.get(run.gathered.host.cpu.architecture, "")
    if not architecture or not run.runtime.info.sees_processes:
        return None
    found = pull_bytes(image, architecture=architecture)
    return found.value if isinstance(found, Known) else None


def _room(run: Run, folder: str, coming: list[Coming]) -> None:
    _, free = run.work.system.disk(folder)
    words = " and ".join(str(one) for one in coming)
    run.tell(STEP, "working", f"coming: {words}, onto {folder} with {format_bytes(free)} free")
    need = sum(one.size or 0 for one in coming)
    if free >= need + MARGIN_BYTES:
        return
    raise EnvironmentMissing(
        f"the disk of {folder} has {format_bytes(free)} free; {words} would come there",
        why=f"{format_bytes(MARGIN_BYTES)} are left free besides. Nothing was downloaded yet.",
        fix=(
            "free some room there, then run the same command again:\n" + command_line("up", run.gathered.service),
            *_larger(coming[0].variable),
        ),
        id="RT011",
    )


def _larger(variable: str) -> tuple[str, ...]:
    return (f"or use a larger disk, with a path of yours:\nexport {variable}=/mnt/large/cache",) if variable else ()
