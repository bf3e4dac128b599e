"""The steps before an engine is touched: detect, plan, fetch, render, lint. apply, wait and smoke follow in up.py."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from selfhost.core.errors import DoesNotFit, InputError
from selfhost.deploy.fetch import fetch
from selfhost.deploy.file_sums import files_of
from selfhost.deploy.fit import ways_of
from selfhost.deploy.memory import memory_now
from selfhost.deploy.render import write_bundle
from selfhost.deploy.run import Run
from selfhost.engines.names import shown
from selfhost.plan.decide import decide
from selfhost.plan.describe import precision_words
from selfhost.plan.digest import digest_of
from selfhost.plan.fit import refusal
from selfhost.plan.ways_out import Door
from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Plan, Verdict
from selfhost.shapes.units import format_bytes, format_tokens
from selfhost.stack.entry import LockedImage


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Words for the finished step; `unchanged` when there was nothing to do."""

    text: str
    unchanged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`bound` says whose time it is: ours (`plumbing`), the `model`'s, or accounted by the step `itself`."""

    name: str
    act: Callable[[Run], Outcome]
    bound: str = "plumbing"


def detect(run: Run) -> Outcome:
    """Say what the machine is; it was looked at before the lock, since looking changes nothing."""
    host = run.gathered.host
    cores, memory = host.cpu.cores, host.memory.limit
    parts = [host.cpu.model or host.cpu.architecture]
    if isinstance(cores, Known):
        parts.append(f"{cores.value:g} cores")
    if isinstance(memory, Known):
        parts.append(f"{format_bytes(memory.value)} memory")
    parts.extend(card.name for card in host.usable_accelerators)
    for note in run.gathered.placement.notes if run.gathered.placement else ():
        run.tell("detect", "warning", note)
    return Outcome(text=" · ".join(parts))


def plan(run: Run) -> Outcome:
    """Refuse what does not fit, before anything is fetched for it."""
    if run.plan.verdict is Verdict.DOES_NOT_FIT:
        raise _does_not_fit(run)
    held(run)
    memory_now(run)
    if run.plan.verdict is Verdict.TOO_CLOSE:
        memory = run.plan.decision("memory")
        run.tell("plan", "warning", f"too close to call: {memory.reason if memory else 'it may not fit'}")
    before = run.state.plan()
    return Outcome(text=summary(run.plan), unchanged=before is not None and digest_of(before) == run.digest)


def _does_not_fit(run: Run) -> DoesNotFit:
    ways = ways_of(run.gathered, door=Door(verb="up"), plan=run.plan)
    return refusal(run.plan, run.gathered.service, ways)


def fetch_all(run: Run) -> Outcome:
    """Fetch, then decide once more with the true folder and size of the weights."""
    text, model = fetch(run)
    replan(run, port=run.plan.port, model=model)
    if run.plan.verdict is Verdict.DOES_NOT_FIT:
        raise _does_not_fit(run)
    run.state.write_lock(
        model=model.id,
        revision=model.revision.value if isinstance(model.revision, Known) else "",
        engine=f"{run.plan.build.distribution}=={run.plan.build.version}",
        versions=run.environment.versions if run.environment else {},
        **_image(run),
    )
    held(run)
    return Outcome(text=text, unchanged=not text)


def held(run: Run) -> None:
    """Against the lock: before anything is fetched with what is decided, afterwards with what came as well."""
    if run.locked is None:
        return
    from selfhost.deploy.lockfile import lock_of
    from selfhost.stack.locked import check_locked

    now = lock_of(run.plan, run.gathered.host)
    if run.environment is not None or run.image is not None:
        found = LockedImage(
            reference=str(_image(run).get("image", "")),
            digest=run.image.digest if run.image is not None else "",
            platform=run.image.platform if run.image is not None else "",
        )
        now = lock_of(
            run.plan,
            run.gathered.host,
            image=found if run.image is not None else None,
            libraries=run.environment.versions if run.environment is not None and run.image is None else {},
            files=files_of(Path(run.plan.model.path), kept=run.work.paths.cache / "sums.json", sink=run.work.sink),
        )
    for difference in check_locked(run.locked, now, name=run.plan.name):
        run.tell("plan", "warning", f"not as locked, and may differ: {difference}. {difference.why}")


def _image(run: Run) -> dict[str, str]:
    """What the container is made from, as it was resolved here."""
    if run.image is None or run.plan.container is None:
        return {}
    return {
        "image": run.plan.container.image,
        "image_digest": run.image.digest,
        "image_id": run.image.id,
        "platform": run.image.platform,
    }


def replan(run: Run, *, port: int, model: Model | None = None) -> None:
    """Decide again with what is known now."""
    run.plan = decide(
        host=run.gathered.host,
        model=model or run.plan.model,
        service=run.gathered.service,
        port=port,
        build=run.plan.build,
    )
    run.digest = digest_of(run.plan)


def render(run: Run) -> Outcome:
    """Write the files that start the same engine without selfhost."""
    text, unchanged = write_bundle(run)
    return Outcome(text=text, unchanged=unchanged)


def lint(run: Run) -> Outcome:
    """Read the rendered files back, as a stranger would, and judge them. Errors stop here."""
    from selfhost.visibility.lint import lint as judge
    from selfhost.visibility.readers.process import read

    if run.bundle is None:
        raise ValueError("lint before render")
    workload = run.workload or read(run.bundle.files["serve.sh"], path=str(run.state.bundle / "serve.sh"))
    findings = judge(workload, run.gathered.host)
    return judged(run, findings, refused="the rendered files have {errors}; nothing was started")


def judged(run: Run, findings: Sequence[Finding], *, refused: str) -> Outcome:
    """Say what lint found. Raises InputError with `refused`, its `{errors}` counted, where there are any."""
    from selfhost.visibility.lint import rule_count

    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    for finding in findings:
        run.work.say(finding)
    if errors:
        raise InputError(
            refused.format(errors=f"{len(errors)} error{'s' if len(errors) > 1 else ''}"),
            why=errors[0].title,
            fix=errors[0].fix,
            id=errors[0].id,
        )
    return Outcome(text=f"{rule_count()} rules, {len(findings) or 'nothing'} found")


def summary(plan: Plan) -> str:
    parts = [
        f"{shown(plan.build.engine)} {plan.build.version}",
        precision_words(plan),
        f"{format_tokens(plan.context)} context",
    ]
    if plan.reasoning.can_think:
        parts.append(f"reasoning {plan.reasoning.mode.value}")
    return " · ".join(parts)


BEFORE_APPLY = (
    Step(name="detect", act=detect),
    Step(name="plan", act=plan),
    Step(name="fetch", act=fetch_all, bound="itself"),
    Step(name="render", act=render),
    Step(name="lint", act=lint),
)
