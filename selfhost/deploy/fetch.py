"""The step `fetch`: the engine's environment and the weights, on this machine and whole."""

import time
from dataclasses import replace
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing
from selfhost.deploy.announce import announce
from selfhost.deploy.run import Run
from selfhost.fetch import venv
from selfhost.models import embedded, weights
from selfhost.plan.command_line import command_line
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.units import format_bytes

STEP = "fetch"


def fetch(run: Run) -> tuple[str, Model]:
    """Bring engine and weights here.

    Returns the words for the finished step, empty when all was there before, and the model as it lies here. Raises
    EnvironmentMissing (network, disk, pip), InputError (damaged weights).
    """
    build, model = run.plan.build, run.plan.model
    before = venv.ready(build, paths=run.work.paths)
    here = local_folder(run, model)
    announce(run, engine_missing=before is None, weights_missing=here is None)
    began = time.monotonic()
    run.made(
        STEP, kind="environment", path=str(venv.folder_of(build, paths=run.work.paths)), existed=before is not None
    )
    run.environment = venv.ensure(build, paths=run.work.paths, system=run.work.system, sink=run.work.sink, step=STEP)
    run.plumbing_s += time.monotonic() - began
    began = time.monotonic()
    folder = here or _bring(run, model, run.environment)
    weights.check(Path(folder), allow_pickle=run.gathered.service.allow_pickle)
    run.model_s += time.monotonic() - began
    if model.origin is not Origin.FOLDER:
        run.made(STEP, kind="weights", path=folder, existed=here is not None)
    found = replace(model, path=folder, weights_bytes=weights.total_bytes(Path(folder)))
    words = "" if before is not None and here is not None else _words(run, found, before=before, here=here)
    return words, found


def local_folder(run: Run, model: Model) -> str | None:
    """The folder with the complete weights when nothing needs to be fetched; asks no network."""
    if model.origin is Origin.FOLDER:
        return model.path
    if model.origin is Origin.EMBEDDED:
        return embedded.is_ready(run.work.paths)
    if isinstance(model.revision, Known):
        return run.gathered.hub.snapshot(model.id, model.revision.value)
    return None


def _words(run: Run, model: Model, *, before: object, here: str | None) -> str:
    size = model.weights_bytes
    return " · ".join(
        (
            f"engine {run.plan.build.distribution} {run.plan.build.version}" + (" (was here)" if before else ""),
            f"weights {format_bytes(size.value) if isinstance(size, Known) else ''}".strip()
            + (" (were here)" if here else ""),
        )
    )


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
                "with a network, run the same command again:\n" + command_line("up", run.gathered.service),
                f"or fetch it elsewhere and copy the hub cache here:\nhf download {model.id}",
            ),
            id="MD030",
        )
    return run.gathered.hub.download(model.id, model.revision.value, sink=run.work.sink, step=STEP)
