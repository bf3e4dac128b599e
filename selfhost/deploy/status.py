"""`status`: what runs, by asking it; nothing here is remembered that can be seen."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from selfhost.core.errors import SelfhostError
from selfhost.core.lock import holder_of
from selfhost.core.paths import Paths
from selfhost.core.secret import read_key
from selfhost.core.system import LocalSystem
from selfhost.deploy import status_container as of_container
from selfhost.deploy.again import again
from selfhost.deploy.cluster_words import forward_command
from selfhost.deploy.journal import Journal
from selfhost.deploy.runtime import cluster_runtime, of_state, runtimes_with
from selfhost.deploy.state import Checks, State
from selfhost.engines.names import shown
from selfhost.runtimes.base import EngineState, Runtime, Seen
from selfhost.runtimes.containers import container_name
from selfhost.runtimes.deployments import names
from selfhost.shapes.finding import Finding
from selfhost.shapes.plan import Plan
from selfhost.shapes.units import format_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One deployment. None means: could not be seen, and `health` says why."""

    name: str
    state: str
    """ready, starting, not answering, stopped, failed; unknown: who runs it does not answer."""
    health: str = ""
    url: str = ""
    model: str = ""
    engine: str = ""
    device: str = ""
    context: int | None = None
    runtime: str = ""
    container: str = ""
    """Its id, short; empty for a process."""
    cluster: str = ""
    """Context and namespace, for an engine that runs in one."""
    forward: str = ""
    """The command that leads the address here to the engine of a cluster."""
    container_health: str = ""
    """By the container engine's own check: `starting`, `healthy`, `unhealthy`."""
    restarts: int = 0
    """By the container engine, by itself."""
    restarted: str = ""
    cards: tuple[Mapping[str, str], ...] = ()
    """What became of each planned card; looked at only when a container with cards does not answer."""
    pid: int | None = None
    memory_bytes: int | None = None
    uptime_s: float | None = None
    prompt_tokens: int | None = None
    generated_tokens: int | None = None
    checked: str = ""
    """Words of the last smoke run; starts with `stale` when it was for another start or plan."""

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def status(paths: Paths, system: LocalSystem, *, say: Callable[[Finding], None], only: str | None) -> list[Status]:
    return [look(paths, system, name, say=say) for name in names(paths) if only in (None, name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What was found out about one deployment before its endpoint is asked."""

    state: State
    plan: Plan | None
    runtime: Runtime
    seen: Seen
    checks: Checks | None
    busy: Mapping[str, object] | None
    booted_at: float
    """When the machine of the engine was started, in seconds since the epoch; 0.0 when that is another machine."""


def look(paths: Paths, system: LocalSystem, name: str, *, say: Callable[[Finding], None]) -> Status:
    """See one deployment: its process, one real generation, its counters."""
    state = State(paths, name, say=say)
    plan = state.plan()
    found = _planned(name, plan)
    try:
        runtime = next(iter(runtimes_with(state, paths=paths, system=system)), None) if plan is None else None
        runtime = runtime or of_state(state, paths=paths, system=system)
        seen = runtime.inspect(name)
        memory = runtime.memory_bytes(name) if seen.alive else None
    except SelfhostError as error:
        return _unknown(found, error.what)
    for finding in seen.findings:
        say(finding)
    at = _Look(
        state=state,
        plan=plan,
        runtime=runtime,
        seen=seen,
        checks=state.checks(),
        busy=holder_of(state.lock_file),
        booted_at=_booted_at(system) if runtime.info.sees_processes else 0.0,
    )
    found = replace(found, **_seen(at), memory_bytes=memory)
    if seen.state is EngineState.UNKNOWN:
        return _unknown(found, seen.reason)
    if not seen.alive:
        found = replace(found, **_gone(at))
        return _with_cards(found, at, system) if found.state == "failed" else found
    if plan is None:
        return replace(found, state="not answering", health=f"its plan is missing. {_again(state)}")
    answered = _asked(found, at, plan)
    if answered["state"] == "not answering" and seen.health == "starting":
        answered = {"state": "starting", "health": f"it is loading; {answered['health']}"}
    remark = f"; {seen.reason}" if seen.reason else ""
    found = replace(found, **{**answered, "health": answered["health"] + remark})
    ill = found.state == "not answering" or seen.health == "unhealthy"
    return _with_cards(found, at, system) if ill else found


def _asked(found: Status, at: _Look, plan: Plan) -> dict[str, Any]:
    """In a cluster through a port-forward of our own, since nobody else's need lead there; loading is no silence."""
    if not at.runtime.info.cluster:
        return ask(found.url, plan, at.state, busy=at.busy)
    if at.seen.health != "healthy":
        busy = f"; {_at_work(at.busy)}" if at.busy is not None else ""
        return {"state": "starting", "health": f"{'it is loading' if at.seen.health else 'it waits'}{busy}"}
    port = cluster_runtime(at.runtime).forward(at.state.name).port
    return ask(f"http://127.0.0.1:{port}/v1", plan, at.state, busy=at.busy)


def _planned(name: str, plan: Plan | None) -> Status:
    if plan is None:
        return Status(name=name, state="stopped")
    return Status(
        name=name,
        state="stopped",
        url=f"http://127.0.0.1:{plan.port}/v1",
        model=plan.model.served_name,
        engine=f"{shown(plan.build.engine)} {plan.build.version}",
        device=plan.device_name,
        context=plan.context,
        runtime=plan.runtime,
    )


def _seen(at: _Look) -> dict[str, Any]:
    seen = at.seen
    port = seen.port if seen.alive and seen.port is not None else at.plan.port if at.plan is not None else None
    return {
        "url": f"http://127.0.0.1:{port}/v1" if port is not None else "",
        "runtime": at.runtime.info.name if at.plan is not None or seen.alive else "",
        "container": seen.container,
        "cluster": _cluster(at.plan),
        "forward": forward_command(at.plan) if at.plan is not None else "",
        "container_health": seen.health if seen.alive else "",
        "restarts": seen.restarts,
        "restarted": of_container.restarted(seen, at.runtime.info, since=_applied_at(at.state)),
        "pid": seen.pid if seen.alive else None,
        "uptime_s": time.time() - seen.started_at if seen.alive and seen.started_at else None,
        "checked": _checked(at),
    }


def _cluster(plan: Plan | None) -> str:
    if plan is None or plan.cluster is None:
        return ""
    return f"context {plan.cluster.context}, namespace {plan.cluster.namespace}"


def _applied_at(state: State) -> str:
    entries, _ = Journal(state.journal_file).read()
    return next((entry.at for entry in reversed(entries) if (entry.step, entry.state) == ("apply", "done")), "")


def _checked(at: _Look) -> str:
    checks, seen = at.checks, at.seen
    if checks is None:
        return "never checked"
    words = f"{checks.summary} ({checks.at})"
    if seen.state is EngineState.UNKNOWN or not seen.alive:
        return words
    if (checks.plan_digest, checks.instance) != (seen.plan_digest, seen.instance):
        return f"stale, it was for another start: {words}"
    anew = of_container.started_again(seen, checks, booted_at=at.booted_at)
    if not anew:
        return words
    return f"stale, {anew}; container and plan are the same, so mode and precision are as they were checked: {words}"


def _booted_at(system: LocalSystem) -> float:
    try:
        lines = system.read("/proc/stat").splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith("btime ")), 0.0)


def _unknown(found: Status, reason: str) -> Status:
    """Whoever runs it does not answer, which says nothing of the engine."""
    health = f"{reason}, so nobody can see whether it runs. What is in the way: selfhost doctor"
    return replace(found, state="unknown", health=health)


def _gone(at: _Look) -> dict[str, Any]:
    state, seen, busy = at.state, at.seen, at.busy
    if busy is not None:
        return {"state": "starting" if " up" in str(busy.get("command")) else "stopped", "health": _at_work(busy)}
    failed = not seen.stopped and (seen.signal is not None or bool(seen.exit_code))
    why = f". Why: selfhost explain {state.name}" if failed and (seen.signal is None or seen.out_of_memory) else ""
    words = f"{seen.reason}{of_container.killed(seen, at.runtime.info)}{why}"
    if of_container.is_coming_back(seen):
        return {"state": "failed", "health": words}
    down = ""
    if at.plan is not None and seen.state is EngineState.EXITED:
        down = of_container.stays_down(at.plan, seen, at.checks, at.runtime.info, booted_at=at.booted_at)
    if at.plan is not None and at.plan.container is not None and seen.reason.endswith("somebody else's"):
        look_at = f"{at.plan.container.engine} inspect {container_name(state.name)}"
        return {"state": "stopped", "health": f"{words}, and is left alone. See what it is: {look_at}. {_again(state)}"}
    sentences = [words, *([down] if down else []), _again(state)]
    return {"state": "failed" if failed else "stopped", "health": ". ".join(sentences)}


def _with_cards(found: Status, at: _Look, system: LocalSystem) -> Status:
    """What became of the cards: a card that a container lost answers nobody, and no log of the engine says why."""
    if at.plan is None or at.plan.container is None or at.plan.device == "cpu" or at.busy is not None:
        return found
    from selfhost.deploy.inside_words import clause  # at use: looking inside costs a second
    from selfhost.deploy.look_inside import look_inside

    looked = look_inside(at.plan, at.seen, system)
    if looked is None:
        return found
    lost = clause(looked.cards, at.plan)
    cards = tuple(card.to_json() for card in looked.cards)
    return replace(found, cards=cards, health=f"{lost}; {found.health}" if lost else found.health)


def _at_work(busy: Mapping[str, object]) -> str:
    return f"`{busy.get('command', 'a command')}` is at work on it (pid {busy.get('pid', '?')})"


def _again(state: State) -> str:
    command = again(state)
    return f"Start it again: {command}" if command else f"Start it as before, with --name {state.name}"


def ask(url: str, plan: Plan, state: State, *, busy: Mapping[str, object] | None) -> dict[str, Any]:
    """Health by a real request: one generated token, then the engine's own counters."""
    from selfhost.core.http import Client  # at use: 187 ms
    from selfhost.deploy.generation import one_token
    from selfhost.smoke import metrics

    key = read_key(state.key_file) if state.key_file.exists() else None
    with Client(url, key=key) as client:
        answer = one_token(client, plan.model)
        if not answer.ok:
            words = answer.error or f"HTTP {answer.status} to one generation"
            if busy is not None:
                return {"state": "starting", "health": f"{_at_work(busy)}; {words}"}
            return {"state": "not answering", "health": words}
        page = client.get(url.removesuffix("/v1") + "/metrics").text
    return {
        "state": "ready",
        "health": f"one generation answered in {format_duration(answer.seconds)}",
        "prompt_tokens": metrics.total(page, metrics.PROMPT),
        "generated_tokens": metrics.total(page, metrics.GENERATED),
    }
