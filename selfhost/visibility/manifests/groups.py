"""LeaderWorkerSets: several pods that are one engine."""

from collections.abc import Iterator
from typing import Final

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.objects import Container, Manifests, Pod, label, place
from selfhost.visibility.rule import Found, manifest_rule

PULLS = "https://github.com/kubernetes-sigs/lws/issues/725"
LWS = "https://github.com/kubernetes-sigs/lws/tree/main/docs/examples/vllm"
PROBES = "https://github.com/ai-dynamo/dynamo/pull/11259"
ENDLESS: Final = "RecreateGroupOnPodRestart"


@manifest_rule("KX064", Severity.WARNING, source=PULLS)
def group_restarts_while_pulling(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.kind("LeaderWorkerSet"):
        template = thing.at("spec", "leaderWorkerTemplate")
        if template is None or template.said("size") in ("", "1"):
            continue
        policy = template.at("restartPolicy")
        if policy is not None and policy.text not in (ENDLESS, "Default", ""):
            continue
        yield Found(
            title=f"{label(thing)} starts all over whenever one of its pods restarts",
            place=place(thing, policy or template.at("size")),
            evidence=f"restartPolicy: {policy.text if policy is not None else f'not said, which is {ENDLESS}'} · "
            f"size {template.said('size')}",
            why="While a pod of the group is still Pending or pulling its image, the others run into the engine's own "
            "time-out for workers and stop; the whole group is made anew, the pull begins again, and it never ends.",
            fix=(
                "restart the group only once all of it has started (LWS 0.9):\nrestartPolicy: RecreateGroupAfterStart",
            ),
            severity=None if policy is not None else Severity.INFO,
        )


@manifest_rule("KX065", Severity.WARNING, source=LWS)
def leader_waits_for_itself(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.kind("LeaderWorkerSet"):
        value = thing.at("spec", "startupPolicy")
        if value is None or value.text != "LeaderReady" or thing.said("spec", "leaderWorkerTemplate", "size") == "1":
            continue
        probed = any(
            container.tree.at("readinessProbe") is not None or container.tree.at("startupProbe") is not None
            for pod, container in manifests.engines
            if pod.holder is thing
        )
        if probed:
            yield Found(
                title=f"workers of {label(thing)} wait for a leader that waits for them",
                place=place(thing, value),
                evidence="startupPolicy: LeaderReady · the leader is ready when the model is loaded",
                why="The model is loaded by all of the group. The leader is not ready before the workers have "
                "joined, and they are not made before it is ready.",
                fix=("let all of them start together:\nstartupPolicy: LeaderCreated",),
            )


def is_worker(pod: Pod, container: Container) -> bool:
    """A part of an engine that serves no HTTP."""
    argv = container.workload.argv
    in_template = pod.kind == "LeaderWorkerSet" and pod.spec is _worker_spec(pod) and _has_leader(pod)
    return "--headless" in argv or (in_template and "$LWS_WORKER_INDEX" not in " ".join(argv))


def _worker_spec(pod: Pod) -> object:
    return pod.holder.at("spec", "leaderWorkerTemplate", "workerTemplate", "spec")


def _has_leader(pod: Pod) -> bool:
    return pod.holder.at("spec", "leaderWorkerTemplate", "leaderTemplate", "spec") is not None


@manifest_rule("KX363", Severity.ERROR, source=PROBES)
def worker_is_probed(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.containers:
        if not is_worker(pod, container):
            continue
        for key in ("livenessProbe", "startupProbe", "readinessProbe"):
            probe = container.tree.at(key)
            if probe is None or (probe.at("httpGet") is None and probe.at("tcpSocket") is None):
                continue
            kills = key != "readinessProbe"
            yield Found(
                title=f"{container.wrapped.label} is a worker, which answers no {key}",
                place=container.place(probe),
                evidence=f"{key} · "
                + ("--headless" if "--headless" in container.workload.argv else "workerTemplate of a LeaderWorkerSet"),
                why="Only the leader serves HTTP. "
                + (
                    "A worker that is probed is killed again and again, and with it the whole group."
                    if kills
                    else "A worker that is probed is never Ready."
                ),
                fix=(f"remove {key} from the worker",),
                severity=None if kills else Severity.WARNING,
            )
