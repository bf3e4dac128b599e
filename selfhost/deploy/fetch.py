"""The step `fetch`: the engine's environment and the weights, on this machine and whole."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from selfhost.core.errors import EnvironmentMissing
from selfhost.deploy.announce import announce
from selfhost.deploy.run import Run
from selfhost.deploy.runtime import container_runtime
from selfhost.engines.builds import choose
from selfhost.fetch import venv
from selfhost.fetch.venv import Environment
from selfhost.models import embedded, weights
from selfhost.plan.command_line import command_line
from selfhost.runtimes.base import LocalImage
from selfhost.runtimes.image_size import PROCESSORS
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model, Origin
from selfhost.shapes.plan import EngineBuild
from selfhost.shapes.units import format_bytes

STEP = "fetch"


def fetch(run: Run) -> tuple[str, Model]:
    """Bring the engine, or its image, and the weights here.

    Returns the words for the finished step, empty when all was there before, and the model as it lies here. Raises
    EnvironmentMissing (network, disk, pip, registry), InputError (damaged weights).
    """
    model = run.plan.model
    here = local_folder(run, model)
    runner = _container(run) if run.plan.container is not None else _process(run, weights_missing=here is None)
    began = time.monotonic()
    folder = here or _bring(run, model)
    weights.check(Path(folder), allow_pickle=run.gathered.service.allow_pickle)
    run.model_s += time.monotonic() - began
    if model.origin is not Origin.FOLDER:
        run.made(STEP, kind="weights", path=folder, existed=here is not None)
    found = replace(model, path=folder, weights_bytes=weights.total_bytes(Path(folder)))
    return "" if runner.was_here and here is not None else _words(found, runner=runner, here=here), found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """What runs the engine: an environment or an image."""

    words: str
    was_here: bool


def _process(run: Run, *, weights_missing: bool) -> _Runner:
    build = run.plan.build
    before = venv.ready(build, paths=run.work.paths)
    announce(run, engine_missing=before is None, weights_missing=weights_missing)
    began = time.monotonic()
    _environment(run, build)
    run.plumbing_s += time.monotonic() - began
    return _Runner(words=f"engine {build.distribution} {build.version}", was_here=before is not None)


def _environment(run: Run, build: EngineBuild) -> Environment:
    before = venv.ready(build, paths=run.work.paths)
    place = str(venv.folder_of(build, paths=run.work.paths))
    run.made(STEP, kind="environment", path=place, existed=before is not None)
    run.environment = venv.ensure(build, paths=run.work.paths, system=run.work.system, sink=run.work.sink, step=STEP)
    return run.environment


def _container(run: Run) -> _Runner:
    """The image of the plan, pulled when it is not here."""
    plan, model = run.plan.container, run.plan.model
    runtime = container_runtime(run.runtime)
    if plan is None:
        raise ValueError("an image without a plan for a container")
    began = time.monotonic()
    here = runtime.image(plan.image)
    announce(run, engine_missing=False, weights_missing=local_folder(run, model) is None, image_missing=here is None)
    run.made(STEP, kind="image", path=plan.image, existed=here is not None)
    run.image = here or runtime.pull(plan.image, sink=run.work.sink, step=STEP)
    _refuse_other_processor(run, run.image)
    run.plumbing_s += time.monotonic() - began
    return _Runner(words=f"image {plan.image}", was_here=here is not None)


def _refuse_other_processor(run: Run, image: LocalImage) -> None:
    """A tag with a single image is pulled whatever it is for; Docker warns and starts it. Raises EnvironmentMissing."""
    here, made_for = run.gathered.host.cpu.architecture, image.platform.split("/")[1:2]
    if not run.runtime.info.sees_processes or here not in PROCESSORS or made_for in ([], [PROCESSORS[here]]):
        return
    raise EnvironmentMissing(
        f"the image {image.reference} is for {image.platform}; this machine's processor is {here}",
        why="Its programs can't run here, and nothing was started.",
        fix=("take an image for this one:\n" + command_line("up", run.gathered.service, change={"image": "NAME:TAG"}),),
        id="RT079",
    )


def local_folder(run: Run, model: Model) -> str | None:
    """The folder with the complete weights when nothing needs to be fetched; asks no network."""
    if model.origin is Origin.FOLDER:
        return model.path
    if model.origin is Origin.EMBEDDED:
        return embedded.is_ready(run.work.paths)
    if isinstance(model.revision, Known):
        return run.gathered.hub.snapshot(model.id, model.revision.value)
    return None


def _words(model: Model, *, runner: _Runner, here: object) -> str:
    size = model.weights_bytes
    return " · ".join(
        (
            runner.words + (" (was here)" if runner.was_here else ""),
            f"weights {format_bytes(size.value) if isinstance(size, Known) else ''}".strip()
            + (" (were here)" if here else ""),
        )
    )


def _bring(run: Run, model: Model) -> str:
    if model.origin is Origin.EMBEDDED:  # it is converted by an engine's libraries, also where a container serves it
        environment = run.environment or _environment(run, choose(backend="cpu", asked="vllm", driver=""))
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
