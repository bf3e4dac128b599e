"""Make this machine ready for containers: look, run the roles it needs, look again."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.signals import Terminated
from selfhost.deploy import prepare_variables as given
from selfhost.deploy.prepare_elsewhere import distribution, refuse
from selfhost.deploy.prepare_faults import Failed, fault, no_root
from selfhost.deploy.prepare_roles import Choice, all_roles, choose, is_step, steps_of
from selfhost.deploy.prepare_words import question
from selfhost.deploy.workplace import Workplace
from selfhost.doctor.examine import Examination, examine
from selfhost.doctor.look import look
from selfhost.hosts.detect import detect
from selfhost.runtimes import ansible
from selfhost.runtimes.ansible import Play, TaskEvent
from selfhost.shapes.event import Event, State
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.host import Host

PLAYBOOK = "prepare.yml"
_SUDO_TIMEOUT_S = 10.0
_WITH_A_USER = ("docker", "podman", "amd_access")
_SLOW = "package"
"""Steps that take minutes are announced; the others are told when they are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """One step of a role; `state` is changed, would change, or ok."""

    role: str
    step: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`notices`: what the roles found worth saying. `before` and `after`: doctor's words."""

    check: bool
    agreed: bool
    user: str
    choices: tuple[Choice, ...]
    steps: tuple[StepDone, ...] = ()
    notices: tuple[str, ...] = ()
    before: Examination
    after: Examination

    @property
    def changed(self) -> tuple[StepDone, ...]:
        return tuple(one for one in self.steps if one.state != "ok")

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.NO if (self.check and self.changed) or not self.agreed else ExitCode.OK

    @property
    def gone(self) -> tuple[Finding, ...]:
        return _without(self.before, self.after)

    @property
    def new(self) -> tuple[Finding, ...]:
        return _without(self.after, self.before)


@dataclass(slots=True, kw_only=True)
class _Follow:
    """The play as it goes: steps counted, notices kept, the failure remembered."""

    work: Workplace
    check: bool
    roles: Sequence[str]
    total: int
    number: int = 0
    name: str = ""
    steps: list[StepDone] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    lists: str = ""
    failed: TaskEvent | None = None

    def on(self, event: TaskEvent) -> None:
        if event.state == "failed":
            self.failed = event
        elif event.role not in self.roles:
            return
        elif event.task.startswith("Say ") and event.state == "ok":
            self._notice(event)
        elif is_step(event.task):
            self._step(event)

    def _step(self, event: TaskEvent) -> None:
        label = _lower(event.task)
        if event.state == "started":
            self.number += 1
            self.name = f"{self.number}/{self.total} {event.role}"
            if label.startswith(_SLOW):
                self._tell("working", label)
            return
        if label == "package lists":
            self.lists = event.output
        if event.state == "skipped":
            self._tell("unchanged", f"{label} … not needed")
            return
        changed = event.state == "changed"
        state = ("would change" if self.check else "changed") if changed else "ok"
        self.steps.append(StepDone(role=event.role, step=label, state=state))
        self._tell("done" if changed else "unchanged", f"{label} … {state}")

    def _notice(self, event: TaskEvent) -> None:
        for line in dict.fromkeys(line for line in event.said.splitlines() if line):
            self.notices.append(line)
            self.work.sink.on(_event(f"{event.role}", "warning", line))

    def _tell(self, state: State, text: str) -> None:
        self.work.sink.on(_event(self.name, state, text))


def prepare(work: Workplace, *, check: bool, only: Sequence[str] = (), settings: Sequence[str] = ()) -> Result:
    """Raises InputError, EnvironmentMissing and Busy for what stands in the way; what was done before it stays."""
    variables = given.read(settings)
    host, before = _look(work)
    choices = choose(host, only)
    roles = all_roles(choices)
    given.of_roles(variables, roles)
    user = _user(work)
    result = Result(check=check, agreed=True, user=user, choices=choices, before=before, after=before)
    for choice in choices:
        if not choice.run and not only:
            work.sink.on(_event(choice.role, "unchanged", f"not run: {choice.reason}"))
    if not roles:
        return result
    refuse(distribution(work.system), roles)
    command = _command(only, settings, check=check)
    if (lack := ansible.missing()) is not None:
        raise lack
    become = _become(work, command)
    asked = {**{f"{role}_user": user for role in _WITH_A_USER}, **variables}
    if not check and not work.ask(question(host, roles, asked)):
        return replace(result, agreed=False)
    follow = _Follow(work=work, check=check, roles=roles, total=sum(steps_of(role) for role in roles))
    play = Play(playbook=PLAYBOOK, variables={"prepare_roles": list(roles), **asked}, check=check, become=become)
    _run(work, follow, play, command)
    after = before if check else _look(work)[1]
    return replace(result, steps=tuple(follow.steps), notices=tuple(follow.notices), after=after)


def _run(work: Workplace, follow: _Follow, play: Play, command: str) -> None:
    try:
        ended = ansible.run(play, env=work.env, on_event=follow.on)
    except (KeyboardInterrupt, Terminated):
        work.sink.on(_event(follow.name or "prepare", "warning", "interrupted"))
        work.sink.on(
            _event(
                "prepare",
                "warning",
                f"what was done stays, a package manager at work ends by itself; to go on: {command}",
            )
        )
        raise
    if ended.ok:
        return
    if follow.failed is None:
        what = "took too long" if ended.timed_out else "did not get to its first task"
        raise EnvironmentMissing(
            f"the play {what}",
            why="What was done before stays and is not done again.",
            evidence=ended.output,
            fix=(f"rerun:\n{command}",),
            id="RT101",
        )
    event = follow.failed
    step = f"{event.role or 'looking at this machine'}: {_lower(event.task)}"
    text = "\n".join(part for part in (event.said, event.output) if part)
    follow.work.sink.on(_event(follow.name or "prepare", "failed", _lower(event.task)))
    # What could not be fetched of the lists is why a package is not known.
    if "Unable to locate" in text or "was not found" in text:
        text = f"{text}\n{follow.lists}"
    raise fault(Failed(step=step, text=text, command=command))


def _look(work: Workplace) -> tuple[Host, Examination]:
    host = detect(work.system, wide=True)
    return host, examine(host, look(work.system, host))


def _user(work: Workplace) -> str:
    """Who is to use the containers: who called sudo, or who we are; nobody for root itself."""
    done = work.system.run(("id", "-un"), timeout_s=_SUDO_TIMEOUT_S)
    own = done.stdout.strip() if done.ok else ""
    return work.env.get("SUDO_USER", "").replace("root", "") if own == "root" else own


def _become(work: Workplace, command: str) -> bool:
    """Whether sudo is needed. Raises EnvironmentMissing where it would ask."""
    if work.system.ids.get("uid") == 0:
        return False
    done = work.system.run(("sudo", "-n", "true"), timeout_s=_SUDO_TIMEOUT_S)
    if not done.ok:
        said = "sudo is not installed" if done.missing else done.stderr.strip()
        raise no_root(command, said=said or f"sudo -n true ended with {done.rc}")
    return True


def _command(only: Sequence[str], settings: Sequence[str], *, check: bool) -> str:
    """To paste, also behind sudo, whose PATH holds no virtual environment."""
    words = (
        *(("--check",) if check else ()),
        *(word for role in only for word in ("--only", role)),
        *(word for setting in settings for word in ("--set", setting)),
    )
    return shlex.join((sys.executable, "-m", "selfhost", "prepare", *words))


def _without(one: Examination, other: Examination) -> tuple[Finding, ...]:
    there = {(finding.id, finding.title) for finding in other.report.findings}
    return tuple(
        finding
        for finding in one.report.findings
        if (finding.id, finding.title) not in there and finding.severity is not Severity.INFO
    )


def _lower(task: str) -> str:
    """`Package lists` in the middle of a line; `CDI specification` and `NVIDIA's key` stay."""
    return task[:1].lower() + task[1:] if task[1:2].islower() else task


def _event(step: str, state: State, text: str) -> Event:
    return Event(step=step, state=state, text=text)
