"""The steps before anything is applied to a cluster: what it is, the plan, the weights' revision, the files, lint."""

from collections import Counter
from pathlib import Path

from selfhost import __version__
from selfhost.core.errors import DoesNotFit
from selfhost.core.yaml import documents
from selfhost.deploy.bundle import texts_of
from selfhost.deploy.fit import ways_of
from selfhost.deploy.render import write_files
from selfhost.deploy.run import Run
from selfhost.deploy.steps import Outcome, Step, held, judged, summary
from selfhost.hosts.cluster import devices
from selfhost.plan.digest import digest_of
from selfhost.plan.fit import refusal
from selfhost.plan.ways_out import Door
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.cluster import ClusterPlan
from selfhost.shapes.host import Known
from selfhost.shapes.plan import Verdict
from selfhost.shapes.units import format_bytes

MANIFESTS = "manifests.yaml"


def of(run: Run) -> ClusterPlan:
    if run.plan.cluster is None:
        raise ValueError("a plan for another runtime")
    return run.plan.cluster


def detect(run: Run) -> Outcome:
    """Say which cluster it is, and what it offers."""
    cluster, around = of(run), run.gathered.host.surroundings
    nodes = around.nodes if around is not None else ()
    offered: Counter[str] = Counter()
    for node in nodes:
        offered.update(devices(node))
    cards = ", ".join(f"{count} {name}" for name, count in offered.items() if count)
    parts = [
        f"context {cluster.context}",
        f"namespace {cluster.namespace}",
        f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}",
        cards or "no cards",
    ]
    return Outcome(text=" · ".join(parts))


def plan(run: Run) -> Outcome:
    """Refuse what does not fit, before anything is applied for it."""
    if run.plan.verdict is Verdict.DOES_NOT_FIT:
        raise _does_not_fit(run)
    held(run)
    if run.plan.verdict is Verdict.TOO_CLOSE:
        memory = run.plan.decision("memory")
        run.tell("plan", "warning", f"too close to call: {memory.reason if memory else 'it may not fit'}")
    for why in of(run).exceptions:
        run.tell("plan", "warning", f"a namespace that enforces `restricted` refuses this pod: {why}")
    before = run.state.plan()
    words = f"{summary(run.plan)} · {run.plan.device_name}"
    return Outcome(text=words, unchanged=before is not None and digest_of(before) == run.digest)


def _does_not_fit(run: Run) -> DoesNotFit:
    return refusal(run.plan, run.gathered.service, ways_of(run.gathered, door=Door(verb="up"), plan=run.plan))


def fetch(run: Run) -> Outcome:
    """Nothing comes to this machine: a job of the cluster fetches the weights, at this revision."""
    model = run.plan.model
    run.state.write_lock(
        model=model.id,
        revision=model.revision.value if isinstance(model.revision, Known) else "",
        engine=f"{run.plan.build.distribution}=={run.plan.build.version}",
        image=of(run).image,
        selfhost=__version__,
    )
    if of(run).weights_claim:
        return Outcome(text=f"the weights lie in the volume {of(run).weights_claim}")
    size = model.weights_bytes
    weight = format_bytes(size.value) if isinstance(size, Known) else "weights of unknown size"
    return Outcome(text=f"{weight}, by a job in the cluster into the volume of {of(run).release}")


def render(run: Run) -> Outcome:
    """The chart, its values, and the same objects as plain manifests; the user's own values over both."""
    from selfhost.deploy.read_back import manifests_of
    from selfhost.render.targets import render as files_of  # at use: Jinja

    place = run.place(checked=False)
    chart, plain = (files_of(target, run.plan, place) for target in ("helm", "kubernetes"))
    folder = run.state.bundle
    theirs = {path: text for path, text in texts_of(folder).items() if path.startswith("overrides/")}
    objects = plain.files[MANIFESTS]
    if theirs:
        objects = manifests_of({**chart.files, **theirs}, folder=str(folder), namespace=of(run).namespace)
    run.bundle = Bundle(files={**chart.files, MANIFESTS: objects}, executable=chart.executable)
    text, unchanged = write_files(run)
    return Outcome(text=text, unchanged=unchanged)


def lint(run: Run) -> Outcome:
    """Judge the objects as a stranger would, beside what the cluster has. Errors stop here."""
    from selfhost.deploy.read_back import containers_in
    from selfhost.visibility.lint import lint_all, lint_objects
    from selfhost.visibility.objects import Manifests

    if run.bundle is None:
        raise ValueError("lint before render")
    path = str(Path(run.state.bundle) / MANIFESTS)
    text = run.bundle.files[MANIFESTS]
    workloads = containers_in(text, path=path)
    host = run.gathered.host
    findings = (*lint_all(workloads, host), *lint_objects(Manifests.of(documents(text, path=path)), host))
    return judged(run, findings, refused="the rendered objects have {errors}; nothing was applied")


BEFORE_APPLY = (
    Step(name="detect", act=detect),
    Step(name="plan", act=plan),
    Step(name="fetch", act=fetch),
    Step(name="render", act=render),
    Step(name="lint", act=lint),
)
