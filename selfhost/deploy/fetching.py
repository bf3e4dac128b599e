"""The step `fetch`: the engine's environment and the weights, on this machine and whole."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.deploy.run import Run
from selfhost.fetch import venv
from selfhost.models import embedded, weights
from selfhost.models.hub import Hub
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.plan import Plan
from selfhost.shapes.units import GIB, format_bytes

STEP = "fetch"
ASK_ABOVE_BYTES = 10 * 1000**3
"""Downloads above this are asked for, also when the model was named (design of `up`)."""


def fetch(run: Run) -> str:
    """Bring engine and weights here; return the words for the finished step, empty when all was there before.

    Raises EnvironmentMissing (network, disk, pip), InputError (damaged weights).
    """
    before = venv.ready(run.plan.build, paths=run.work.paths)
    weights_here = local_folder(run, run.plan.model)
    _announce(run, engine_missing=before is None, weights_missing=weights_here is None)
    began = time.monotonic()
    environment = venv.ensure(
        run.plan.build, paths=run.work.paths, system=run.work.system, sink=run.work.sink, step=STEP
    )
    run.plumbing_s += time.monotonic() - began
    run.environment = environment
    _record(run, kind="environment", path=environment.folder, existed=before is not None)
    began = time.monotonic()
    folder = weights_here or _bring(run, run.plan.model, environment)
    if run.plan.model.origin is not Origin.EMBEDDED or weights_here is None:
        weights.check(Path(folder))
    run.model_s += time.monotonic() - began
    if run.plan.model.origin is not Origin.FOLDER:
        _record(run, kind="weights", path=folder, existed=weights_here is not None)
    run.notes.append(folder)
    if before is not None and weights_here is not None:
        return ""
    size = weights.total_bytes(Path(folder))
    parts = [
        f"engine {run.plan.build.distribution} {run.plan.build.version}" + (" (was here)" if before else ""),
        f"weights {format_bytes(size.value) if isinstance(size, Known) else ''}".strip()
        + (" (were here)" if weights_here else ""),
    ]
    return " · ".join(parts)


def local_folder(run: Run, model: Model) -> str | None:
    """The folder with the complete weights when nothing needs to be fetched; asks no network."""
    if model.origin is Origin.FOLDER:
        return model.path
    if model.origin is Origin.EMBEDDED:
        return embedded.is_ready(run.work.paths)
    if isinstance(model.revision, Known):
        return Hub(run.work.env).snapshot(model.id, model.revision.value)
    return None


def _bring(run: Run, model: Model, environment: venv.Environment) -> str:
    if model.origin is Origin.EMBEDDED:
        return embedded.fetch(
            python=environment.python, paths=run.work.paths, system=run.work.system, sink=run.work.sink, step=STEP
        )
    if not isinstance(model.revision, Known):
        raise EnvironmentMissing(
            f"the revision of {model.id} could not be read, and it is not on this machine",
            why=model.revision.reason,
            fix=(
                "with a network, run the same command again",
                f"or fetch it elsewhere and copy the hub cache here:\nhf download {model.id}",
            ),
            id="MD020",
        )
    return Hub(run.work.env).download(model.id, model.revision.value, sink=run.work.sink, step=STEP)


def _announce(run: Run, *, engine_missing: bool, weights_missing: bool) -> None:
    """Say what will come and onto which disk, check the room, and ask when it is large or nobody named the model."""
    model = run.plan.model
    coming = _coming(run.plan, engine_missing=engine_missing, weights_missing=weights_missing)
    if not coming:
        return
    total = sum(coming.values())
    target = str(run.work.paths.cache)
    _, free = run.work.system.disk(target)
    words = " + ".join(f"{what} {format_bytes(size)}" for what, size in coming.items())
    run.tell(STEP, "working", f"coming: {words}, onto {target} with {format_bytes(free)} free")
    if free < total + GIB // 2:
        raise EnvironmentMissing(
            f"{target} has {format_bytes(free)} free; {words} need {format_bytes(total)}",
            why="Nothing was downloaded yet.",
            fix=(
                "free some room there, then run the same command again",
                "or use a larger disk for environments and converted models:\nexport XDG_CACHE_HOME=/mnt/large/cache",
            ),
            id="RT011",
        )
    named = run.gathered.service.origins.get("model") != "selfhost's choice"
    download = coming.get("weights", 0)
    if (download > ASK_ABOVE_BYTES or (not named and download > ASK_ABOVE_BYTES)) and not run.work.ask(
        f"Download {words} for {model.served_name}?"
    ):
        raise InputError(
            f"{format_bytes(total)} were not downloaded: the answer was no",
            fix=("choose a smaller model, for instance:\nselfhost up qwen3-0.6b",),
            id="CF011",
        )


def _coming(plan: Plan, *, engine_missing: bool, weights_missing: bool) -> Mapping[str, int]:
    coming: dict[str, int] = {}
    if engine_missing:
        coming["engine"] = plan.build.installed_bytes
    if weights_missing:
        size = plan.model.weights_bytes
        coming["weights"] = size.value if isinstance(size, Known) else 0
    return coming


def _record(run: Run, *, kind: str, path: str, existed: bool) -> None:
    run.journal.write(STEP, "made", data={"made": [{"kind": kind, "path": path, "existed": existed}]})


def with_folder(model: Model, folder: str) -> Model:
    """The model as it lies on this machine."""
    return replace(model, path=folder, weights_bytes=weights.total_bytes(Path(folder)))
