"""`status`: what runs, by asking it; nothing here is remembered that can be seen."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from selfhost.core.lock import holder_of
from selfhost.core.paths import Paths
from selfhost.core.secret import read_key
from selfhost.core.system import LocalSystem
from selfhost.deploy.again import again
from selfhost.deploy.state import Checks, State
from selfhost.engines.names import shown
from selfhost.runtimes.base import Seen
from selfhost.runtimes.deployments import names
from selfhost.runtimes.process import ProcessRuntime
from selfhost.shapes.finding import Finding
from selfhost.shapes.plan import Plan
from selfhost.shapes.units import format_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One deployment. None means: could not be seen, and `health` says why."""

    name: str
    state: str
    """ready, starting, not answering, stopped, failed."""
    health: str = ""
    url: str = ""
    model: str = ""
    engine: str = ""
    device: str = ""
    context: int | None = None
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


def look(paths: Paths, system: LocalSystem, name: str, *, say: Callable[[Finding], None]) -> Status:
    """See one deployment: its process, one real generation, its counters."""
    state = State(paths, name, say=say)
    plan = state.plan()
    runtime = ProcessRuntime(paths, system)
    seen = runtime.inspect(name)
    for finding in seen.findings:
        say(finding)
    port = seen.port if seen.alive and seen.port is not None else plan.port if plan is not None else None
    url = f"http://127.0.0.1:{port}/v1" if port is not None else ""
    found = replace(_planned(name, plan), url=url, checked=_checked(state.checks(), seen))
    busy = holder_of(state.lock_file)
    if not seen.alive:
        return replace(found, **_gone(state, seen, busy))
    found = replace(
        found,
        pid=seen.pid,
        memory_bytes=runtime.memory_bytes(name),
        uptime_s=time.time() - seen.started_at if seen.started_at else None,
    )
    if plan is None:
        return replace(found, state="not answering", health=f"its plan is missing. {_again(state)}")
    answered = ask(url, plan, state, busy=busy)
    remark = f"; {seen.reason}" if seen.reason else ""
    return replace(found, **{**answered, "health": answered["health"] + remark})


def _planned(name: str, plan: Plan | None) -> Status:
    if plan is None:
        return Status(name=name, state="stopped")
    return Status(
        name=name,
        state="stopped",
        model=plan.model.served_name,
        engine=f"{shown(plan.build.engine)} {plan.build.version}",
        device=plan.device_name,
        context=plan.context,
    )


def _checked(checks: Checks | None, seen: Seen) -> str:
    if checks is None:
        return "never checked"
    fresh = not seen.alive or (checks.plan_digest, checks.instance) == (seen.plan_digest, seen.instance)
    return ("" if fresh else "stale, it was for another start: ") + f"{checks.summary} ({checks.at})"


def _gone(state: State, seen: Seen, busy: Mapping[str, object] | None) -> dict[str, Any]:
    if busy is not None:
        return {"state": "starting" if " up" in str(busy.get("command")) else "stopped", "health": _at_work(busy)}
    failed = not seen.stopped and (seen.signal is not None or bool(seen.exit_code))
    why = f". Why: selfhost explain {state.name}" if failed and seen.signal is None else ""
    return {"state": "failed" if failed else "stopped", "health": f"{seen.reason}{why}. {_again(state)}"}


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
