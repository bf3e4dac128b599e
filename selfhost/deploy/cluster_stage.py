"""Where a start in a cluster stands, from its objects: one stage, in words, and what cannot get well. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selfhost.runtimes.cluster.sight import PodState, engine_pod, pod_state, words

Object = Mapping[str, Any]
FOREVER = (
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)
"""Reasons of a waiting container that nothing but another pod spec, or another object, mends."""
_NO_IMAGE = (
    "manifest unknown", "not found", "no match for platform", "unauthorized", "denied", "invalid reference",
    "repository does not exist",
)  # fmt: skip
_REFUSED = ("is forbidden", "runtimeclass", "no priorityclass", "invalid")
_FULL = "exceeded quota"
"""Refused as well, and another pod's end changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """`name`: applying, refused, scheduling, pulling, fetching, starting, loading, ready, ended."""

    name: str
    text: str
    pod: PodState | None = None
    hopeless: str = ""
    """What was said that no waiting changes; empty while it may get well."""
    stalled: bool = False
    """It waits for something outside of it, such as a card: worth a diagnosis."""


def stage_of(objects: Sequence[Object]) -> Stage:
    """Of what the watch has seen of one deployment."""
    of = _by_kind(objects)
    engines = [one for one in of.get("Pod", ()) if _component(one) == "engine"]
    pod = engine_pod(engines, of.get("ReplicaSet", ()))
    if pod is None or pod_state(pod).stage == "leaving":
        refused = next(_refusals(of), "")
        if refused:
            low = refused.lower()
            gone = any(word in low for word in _REFUSED) and _FULL not in low
            return Stage(
                name="refused", text=f"no pod is made: {refused}", hopeless=refused if gone else "", stalled=True
            )
        text = words(pod_state(pod)) if pod is not None else "the Deployment has no pod yet"
        return Stage(name="applying", text=text)
    state = pod_state(pod)
    return _of_pod(state, of)


def _of_pod(state: PodState, of: Mapping[str, Sequence[Object]]) -> Stage:
    if state.stage == "unscheduled":
        text = words(state) if state.message else f"pod {state.name} waits for a node"
        return Stage(name="scheduling", text=text, pod=state, stalled=bool(state.message) or state.reason != "")
    if state.stage == "pulling":
        hopeless = _no_start(state)
        odd = state.reason not in ("", "ContainerCreating", "PodInitializing")
        said = next((each for each in _pulls(state.name, of)), "")
        text = f"{words(state)}{f': {said}' if said and not state.message else ''}"
        return Stage(name="pulling", text=text, pod=state, hopeless=hopeless, stalled=odd)
    if state.stage == "starting":
        return _fetching(state, of)
    return Stage(name=state.stage, text=words(state), pod=state)


def _fetching(state: PodState, of: Mapping[str, Sequence[Object]]) -> Stage:
    """The engine's pod waits for the weights, which a job brings."""
    for job in of.get("Job", ()):
        failed = _condition(job, "Failed")
        if failed:
            what = str(failed.get("message") or failed.get("reason") or "it failed")
            return Stage(
                name="fetching",
                text=f"the job {_name(job)} failed: {what}",
                pod=state,
                hopeless=f"{_name(job)}: {what}",
            )
    pods = [one for one in of.get("Pod", ()) if _component(one) == "fetch"]
    now = max(pods, key=lambda one: str((one.get("metadata") or {}).get("creationTimestamp")), default=None)
    if now is None:
        return Stage(name="fetching", text="it waits for the weights", pod=state, stalled=not of.get("Job"))
    its = pod_state(now)
    text = {
        "loading": "the job fetches the weights",
        "ready": "the job fetches the weights",
        "ended": f"the job's pod {its.name} ended ({its.exit_reason or its.reason})",
    }.get(its.stage, words(its))
    return Stage(name="fetching", text=text, pod=state, hopeless=_no_start(its), stalled=its.stage == "unscheduled")


def _no_start(state: PodState) -> str:
    """Why the container of a placed pod will never run as it is."""
    said = f"{state.reason}: {state.message}" if state.message else state.reason
    if state.reason in FOREVER:
        return said
    if state.reason in ("ErrImagePull", "ImagePullBackOff") and any(one in state.message.lower() for one in _NO_IMAGE):
        return said
    return ""


def _refusals(of: Mapping[str, Sequence[Object]]) -> Iterator[str]:
    """FailedCreate shows on the ReplicaSet, and the Deployment repeats it."""
    for one in (*of.get("ReplicaSet", ()), *of.get("Deployment", ())):
        condition = _condition(one, "ReplicaFailure")
        if condition:
            yield " ".join(str(condition.get("message") or condition.get("reason")).split())


def _pulls(pod: str, of: Mapping[str, Sequence[Object]]) -> Iterator[str]:
    """What events say of a pod on its node: `Pulling image …`, a volume that cannot be attached."""
    about = [
        one
        for one in of.get("Event", ())
        if (one.get("involvedObject") or one.get("regarding") or {}).get("name") == pod
    ]
    about.sort(key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""), reverse=True)
    for one in about:
        if one.get("reason") in ("Pulling", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "Failed"):
            yield " ".join(str(one.get("message") or one.get("note") or "").split())[:200]


def overdue(objects: Sequence[Object]) -> str:
    """The Deployment's own words once its progress deadline is over; empty before."""
    for one in objects:
        condition = _condition(one, "Progressing") if one.get("kind") == "Deployment" else None
        if condition and condition.get("reason") == "ProgressDeadlineExceeded":
            return str(condition.get("message") or condition["reason"])
    return ""


def observed(objects: Sequence[Object]) -> bool:
    """Whether the Deployment's controller has seen the newest spec: before that, its pods are those of the old one."""
    for one in objects:
        if one.get("kind") == "Deployment":
            status: Mapping[str, Any] = one.get("status") or {}
            generation = (one.get("metadata") or {}).get("generation") or 0
            return int(status.get("observedGeneration") or 0) >= int(generation)
    return False


def updated(objects: Sequence[Object]) -> bool:
    """Whether the pods of the newest spec are ready."""
    for one in objects:
        if one.get("kind") == "Deployment":
            status: Mapping[str, Any] = one.get("status") or {}
            return bool(status.get("updatedReplicas")) and bool(status.get("readyReplicas"))
    return False


def _condition(one: Object, kind: str) -> Mapping[str, Any] | None:
    wanted = "False" if kind == "Progressing" else "True"
    for each in (one.get("status") or {}).get("conditions") or ():
        if each.get("type") == kind and each.get("status") == wanted:
            return dict(each)
    return None


def _by_kind(objects: Sequence[Object]) -> Mapping[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for one in objects:
        found.setdefault(str(one.get("kind")), []).append(one)
    return found


def _component(one: Object) -> str:
    return str(((one.get("metadata") or {}).get("labels") or {}).get("app.kubernetes.io/component") or "")


def _name(one: Object) -> str:
    return str((one.get("metadata") or {}).get("name"))
