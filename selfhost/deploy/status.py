"""`status`: what runs, by asking it; nothing here is remembered that can be seen."""

import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from selfhost.core.lock import holder_of
from selfhost.core.paths import Paths
from selfhost.core.secret import read_key
from selfhost.core.system import LocalSystem
from selfhost.runtimes.registry import names
from selfhost.shapes.finding import Finding
from selfhost.shapes.units import format_bytes, format_duration, format_tokens

TOKENS = re.compile(r"^(vllm:(?:prompt|generation)_tokens_total)(?:\{[^}]*\})?\s+([0-9.eE+]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One deployment. None means: could not be seen, and `health` says why."""

    name: str
    state: str
    """ready, starting, not answering, stopped, failed."""
    health: str
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
    from selfhost.deploy.state import State
    from selfhost.plan.digest import digest_of
    from selfhost.runtimes.process import ProcessRuntime

    state = State(paths, name, say=say)
    plan = state.plan()
    runtime = ProcessRuntime(paths, system)
    seen = runtime.inspect(name)
    if plan is None:
        words = "its plan is missing; `selfhost up` makes it again"
        return Status(name=name, state="running" if seen.alive else "stopped", health=words, pid=seen.pid or None)
    common = Status(
        name=name,
        state="stopped",
        health="",
        url=f"http://{plan.address}:{plan.port}/v1",
        model=plan.model.served_name,
        engine=f"{plan.build.engine} {plan.build.version}",
        device=plan.device_name,
        context=plan.context,
    )
    checks = state.checks()
    checked = "never checked"
    if checks is not None:
        fresh = checks.plan_digest == digest_of(plan) and checks.instance == seen.instance
        checked = ("" if fresh else "stale: ") + f"{checks.summary} ({checks.at})"
    if not seen.alive:
        return _with(common, checked=checked, **_gone(seen.exit_code, seen.signal, holder_of(state.lock_file)))
    found: dict[str, object] = {
        "pid": seen.pid,
        "memory_bytes": runtime.memory_bytes(name),
        "uptime_s": time.time() - seen.started_at if seen.started_at else None,
        "checked": checked,
    }
    key = read_key(state.key_file) if state.key_file.exists() else ""
    starting = holder_of(state.lock_file) is not None
    return _with(common, **found, **ask(common.url, plan.model.served_name, key, starting=starting))


def _gone(exit_code: int | None, signal: int | None, busy: object) -> dict[str, object]:
    if busy is not None:
        return {"state": "starting", "health": "`selfhost up` is at work on it"}
    if signal:
        return {"state": "failed", "health": f"the engine was ended by signal {signal}; `selfhost up` starts it again"}
    if exit_code:
        return {"state": "failed", "health": f"the engine ended with exit code {exit_code}"}
    return {"state": "stopped", "health": "no engine process; `selfhost up` starts it again"}


def _with(base: Status, **found: object) -> Status:
    return Status(**{**asdict(base), **found})


def ask(url: str, model: str, key: str, *, starting: bool) -> dict[str, object]:
    """Health by a real request: one generated token, then the engine's own counters."""
    from selfhost.core.http import Client  # at use: 187 ms

    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1, "temperature": 0}
    with Client(url, key=key, timeout_s=5.0) as client:
        answer = client.post("/chat/completions", body)
        if not answer.ok:
            words = answer.error or f"HTTP {answer.status} to one generation"
            return {"state": "starting" if starting else "not answering", "health": words}
        metrics = client.get(url.removesuffix("/v1") + "/metrics")
    counts: dict[str, int] = {}
    for counter, value in TOKENS.findall(metrics.text if metrics.ok else ""):
        counts[counter] = counts.get(counter, 0) + int(float(value))
    return {
        "state": "ready",
        "health": f"one generation answered in {format_duration(answer.seconds)}",
        "prompt_tokens": counts.get("vllm:prompt_tokens_total"),
        "generated_tokens": counts.get("vllm:generation_tokens_total"),
    }


def lines(found: Status) -> list[str]:
    """One deployment as text."""
    rows = [f"{found.name}  {found.state}"]
    facts = [
        ("address", found.url),
        ("model", f"{found.model} · {found.engine} · {found.device}" if found.model else ""),
        ("health", found.health),
        ("checked", found.checked),
        ("memory", format_bytes(found.memory_bytes) if found.memory_bytes is not None else ""),
        ("uptime", format_duration(found.uptime_s) if found.uptime_s is not None else ""),
        ("tokens", _tokens(found)),
        ("process", str(found.pid) if found.pid else ""),
    ]
    rows.extend(f"  {label:<8} {value}" for label, value in facts if value)
    return rows


def _tokens(found: Status) -> str:
    if found.prompt_tokens is None or found.generated_tokens is None:
        return ""
    return f"{format_tokens(found.prompt_tokens)} read, {format_tokens(found.generated_tokens)} generated"
