"""What a deployment's objects say of its engine, in the words of every runtime. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from selfhost.runtimes.base import EngineState, Seen
from selfhost.runtimes.cluster.owners import DIGEST_LABEL, annotations, labels

Object = Mapping[str, Any]
ENGINE = "engine"
"""Its container, and its component."""
_KILL = 137


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """One pod of the engine. `stage`: unscheduled, pulling, starting, loading, ready, ended, leaving."""

    name: str
    uid: str
    stage: str
    reason: str = ""
    message: str = ""
    node: str = ""
    started_at: float = 0.0
    exit_code: int | None = None
    exit_reason: str = ""
    """`OOMKilled`, `Error`, `Completed` of the last end."""
    restarts: int = 0
    image: str = ""

    @property
    def runs(self) -> bool:
        return self.stage in ("loading", "ready")


def engine_pod(pods: Sequence[Object], replica_sets: Sequence[Object] = ()) -> Object | None:
    """The pod that counts: of the newest ReplicaSet, not leaving, the one that is furthest."""
    order = {_name(one): _revision(one) for one in replica_sets}

    def rank(pod: Object) -> tuple[int, int, int, str]:
        state = pod_state(pod)
        stages = ("leaving", "ended", "unscheduled", "pulling", "starting", "loading", "ready")
        owner = next((str(one.get("name")) for one in _meta(pod).get("ownerReferences") or ()), "")
        created = str(_meta(pod).get("creationTimestamp") or "")
        return (state.stage != "leaving", order.get(owner, 0), stages.index(state.stage), created)

    return max(pods, key=rank, default=None)


def pod_state(pod: Object) -> PodState:
    status: Mapping[str, Any] = pod.get("status") or {}
    container = _container(status, "containerStatuses")
    state = container.get("state") or {}
    last = (container.get("lastState") or {}).get("terminated") or state.get("terminated") or {}
    stage, reason, message = _stage(pod, status, container)
    return PodState(
        name=_name(pod),
        uid=str(_meta(pod).get("uid") or ""),
        stage=stage,
        reason=reason,
        message=message,
        node=str((pod.get("spec") or {}).get("nodeName") or ""),
        started_at=_seconds((state.get("running") or {}).get("startedAt") or last.get("startedAt")),
        exit_code=_whole(last.get("exitCode")),
        exit_reason=str(last.get("reason") or ""),
        restarts=_whole(container.get("restartCount")) or 0,
        image=str(container.get("imageID") or ""),
    )


def _stage(pod: Object, status: Mapping[str, Any], container: Mapping[str, Any]) -> tuple[str, str, str]:
    if _meta(pod).get("deletionTimestamp"):
        return "leaving", "", ""
    if status.get("phase") in ("Failed", "Succeeded"):
        return "ended", str(status.get("reason") or status["phase"]), str(status.get("message") or "")
    if not (pod.get("spec") or {}).get("nodeName"):
        conditions = {str(one.get("type")): one for one in status.get("conditions") or ()}
        placed = conditions.get("PodScheduled") or {}
        return "unscheduled", str(placed.get("reason") or ""), str(placed.get("message") or "")
    return _stage_on_node(status, container)


def _stage_on_node(status: Mapping[str, Any], container: Mapping[str, Any]) -> tuple[str, str, str]:
    state = container.get("state") or {}
    if "running" in state:
        return ("ready" if container.get("ready") else "loading"), "", ""
    if "terminated" in state:
        return "ended", str(state["terminated"].get("reason") or ""), str(state["terminated"].get("message") or "")
    first = next(
        (one for one in status.get("initContainerStatuses") or () if "terminated" not in (one.get("state") or {})), None
    )
    waiting = (((first or container).get("state") or {}).get("waiting")) or {}
    reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason == "CrashLoopBackOff":
        return "ended", reason, message
    if first is not None and "running" in (first.get("state") or {}):
        return "starting", str(first.get("name") or ""), ""
    return "pulling", reason, message


def seen_of(deployment: Object | None, pods: Sequence[Object], replica_sets: Sequence[Object], *, port: int) -> Seen:
    """One look, as `inspect` gives it."""
    if deployment is None:
        return Seen(state=EngineState.GONE, reason="nothing of it is in the cluster", port=port or None)
    digest = labels(deployment).get(DIGEST_LABEL) or annotations(deployment).get(DIGEST_LABEL, "")
    if (deployment.get("spec") or {}).get("replicas") == 0:
        reason = "its Deployment has 0 replicas"
        return Seen(state=EngineState.EXITED, reason=reason, plan_digest=digest, port=port or None, stopped=True)
    pod = engine_pod(pods, replica_sets)
    if pod is None:
        reason = _not_made(deployment) or "its Deployment has no pod yet"
        return Seen(state=EngineState.STARTING, reason=reason, plan_digest=digest, port=port or None)
    state = pod_state(pod)
    kind, health = _kind(state)
    return Seen(
        state=kind,
        reason=words(state),
        instance=f"{state.uid}/{state.restarts}",
        plan_digest=digest,
        port=port or None,
        started_at=state.started_at,
        exit_code=state.exit_code if kind is EngineState.EXITED else None,
        signal=9 if kind is EngineState.EXITED and state.exit_code == _KILL else None,
        out_of_memory=state.exit_reason == "OOMKilled" if state.exit_code == _KILL else None,
        container=state.name,
        image=state.image,
        restarts=state.restarts,
        health=health,
    )


def _kind(state: PodState) -> tuple[EngineState, str]:
    if state.stage == "ready":
        return EngineState.RUNNING, "healthy"
    if state.stage == "loading":
        return EngineState.RUNNING, "starting"
    if state.stage == "ended":
        return EngineState.EXITED, ""
    return EngineState.STARTING, ""


def words(state: PodState) -> str:
    """Where the pod stands, as a clause; empty for one that is ready."""
    said = f": {_first(state.message)}" if state.message else ""
    usual = state.reason in ("", "ContainerCreating", "PodInitializing")
    code = f" with exit code {state.exit_code}" if state.exit_code is not None else ""
    how = state.exit_reason or state.reason
    back = "; Kubernetes starts it again" if state.reason == "CrashLoopBackOff" else ""
    return {
        "unscheduled": f"pod {state.name} has no node yet{said}",
        "pulling": f"pod {state.name} is being made on {state.node}{'' if usual else f' ({state.reason})'}{said}",
        "starting": f"pod {state.name} waits for `{state.reason}` to end",
        "loading": f"pod {state.name} is not ready yet",
        "leaving": f"pod {state.name} is being deleted",
        "ended": f"the engine of pod {state.name} ended{code}{f' ({how})' if how else ''}{back}",
    }.get(state.stage, "")


def _not_made(deployment: Object) -> str:
    """Why no pod is made, where the Deployment itself says so."""
    for one in (deployment.get("status") or {}).get("conditions") or ():
        if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
            return f"no pod is made: {_first(str(one.get('message') or ''))}"
    return ""


def _container(status: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = [one for one in status.get(key) or () if isinstance(one, Mapping)]
    return next((one for one in found if one.get("name") == ENGINE), found[0] if found else {})


def _revision(one: Object) -> int:
    return _whole(annotations(one).get("deployment.kubernetes.io/revision")) or 0


def _meta(one: Object) -> Mapping[str, Any]:
    return one.get("metadata") or {}


def _name(one: Object) -> str:
    return str(_meta(one).get("name") or "")


def _whole(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def _seconds(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


def _first(text: str) -> str:
    return " ".join(text.split())[:300]
