"""Containers that were ended, or end again and again for a reason that only their own words tell."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from selfhost.doctor.cluster.fit import readable
from selfhost.doctor.cluster.mend import describe, logs, patch_container
from selfhost.doctor.cluster.pod import Container, containers, engine, going, healthy, phase
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, cut, label, number, part, rows, text
from selfhost.doctor.cluster.workers import per_worker
from selfhost.engines.explain import explain
from selfhost.hosts.cluster_quantity import quantity
from selfhost.shapes.finding import Severity

LIFE: Final = "https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/"
_BUFFERS: Final = ("LMCACHE_MAX_LOCAL_CPU_SIZE",)


def _memory_volumes(pod: Object, one: Container) -> list[tuple[str, str]]:
    """EmptyDirs in memory that the container mounts, with their limit."""
    own = {text(mount, "name") for mount in rows(one.spec, "volumeMounts")}
    return [
        (text(volume, "name"), text(volume, "emptyDir", "sizeLimit") or "no limit")
        for volume in rows(pod, "spec", "volumes")
        if text(volume, "name") in own and text(volume, "emptyDir", "medium") == "Memory"
    ]


@cluster_rule("KX311", title="the kernel ended a container that used more memory than its limit",
              source="https://kubernetes.io/docs/tasks/configure-pod-container/assign-memory-resource/")  # fmt: skip
def out_of_memory(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one in containers(pod):
        if text(one.ended, "reason") != "OOMKilled":
            continue
        limit = text(one.spec, "resources", "limits", "memory")
        shared, (buffers, pinned) = _memory_volumes(pod, one), per_worker(one, _BUFFERS)
        also = [f"{called} {size}" for called, size in shared]
        amount = quantity(limit)
        more = readable("memory", max(amount * Decimal("1.5"), amount + pinned)) if amount else "…"
        yield Seen(
            title=f"{label(pod)}: container {one.name} was ended for memory at its limit of {limit or 'the node'}",
            evidence=f"OOMKilled, exit {number(one.ended, 'exitCode', default=137)}, {one.restarts} restarts; "
            f"emptyDirs in memory: {', '.join(also) or 'none'}{f'; {buffers}' if buffers else ''}",
            why="Layer: cgroup. Host memory, not the card's: what the workers pin while they load, and all that lies "
            "in an emptyDir in memory, counts against the "
            f"limit.{f' The buffer is per worker: {buffers} > memory limit {limit}.' if buffers else ''}",
            fix=(
                patch_container(cluster, pod, one.name, f"raise the limit to {more}",
                                {"resources": {"limits": {"memory": more}, "requests": {"memory": more}}}),
                "or make buffers smaller: --swap-space, CPU offload, LMCache's max_local_cpu_size (times TP)",
            ),
        )  # fmt: skip
        return


@cluster_rule("KX312", title="a container was killed (exit 137), and not for memory", source=LIFE,
              severity=Severity.WARNING,
              after=("KX30", "KX210", "KX321"))  # fmt: skip
def killed(cluster: Cluster, pod: Object) -> Iterator[Said]:
    if healthy(pod) and not any(part(one.status, "lastState", "terminated") for one in containers(pod)):
        return
    for one in containers(pod):
        code, reason = number(one.ended, "exitCode", default=-1), text(one.ended, "reason")
        if code != 137 or reason == "OOMKilled" or going(pod):
            continue
        events = [
            event.message
            for event in cluster.events(pod)
            if event.reason in ("Killing", "Evicted", "Preempting", "Unhealthy")
        ]
        yield Seen(
            title=f"{label(pod)}: container {one.name} was killed (exit 137), and not for memory",
            evidence=f"reason {reason or 'none'}; "
            f"{cut(events[0]) if events else 'no event says by whom; they are kept for an hour'}",
            why="Layer: kubelet. SIGKILL comes when a probe has failed and the grace period is over, at an eviction, "
            "or by the node's own out-of-memory killer outside the pod's limit.",
            fix=(
                describe(cluster, pod, "see the order of events"),
                "on the node, look for the kernel's:\nsudo dmesg | grep -i 'killed process'",
            ),
        )
        return


@cluster_rule("KX321", title="a pod was evicted for the node's memory or processes",
              source="https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/")  # fmt: skip
def evicted(cluster: Cluster, pod: Object) -> Iterator[Said]:
    said = text(pod, "status", "message")
    if text(pod, "status", "reason") not in ("Evicted", "Preempting") or "ephemeral" in said or "emptyDir" in said:
        return
    one = engine(pod)
    request = text(one.spec, "resources", "requests", "memory") if one is not None else ""
    limit = text(one.spec, "resources", "limits", "memory") if one is not None else ""
    yield Seen(
        title=f"{label(pod)} was evicted: {cut(said, 90) or 'the node ran out of something'}",
        evidence=f"{cut(said, 300)}; memory request {request or 'none'}, limit {limit or 'none'}",
        why="Layer: kubelet. Under pressure the pods go first that use more than they asked for. An engine whose "
        "request is its limit goes last.",
        fix=(
            *((patch_container(cluster, pod, one.name, "ask for what it may use",
                               {"resources": {"requests": {"memory": limit}}}),)
              if one is not None and limit and request != limit else ()),
            describe(cluster, pod, "see what the node lacked"),
        ),
    )  # fmt: skip


@cluster_rule(
    "KX313",
    title="a container ends again and again",
    source=LIFE,
    after=("KX1", "KX2", "KX30", "KX31", "KX320", "KX50", "KX510", "KX511", "KX602"),
    mute=True,
)
def ends_again(cluster: Cluster, pod: Object) -> Iterator[Said]:
    """Its last words go through the table of engine failures; what that knows is said by its own id."""
    for one in containers(pod):
        code = number(one.ended, "exitCode", default=0)
        looping = (
            one.waiting == "CrashLoopBackOff"
            or (phase(pod) == "Failed" and code)
            or (one.restarts and code and not one.ready)
        )
        if not looping or going(pod):
            continue
        known = explain(one.last_words, exit_code=code, requests=False) if one.last_words else ()
        if known and known[0].severity is not Severity.INFO:
            found = known[0]
            yield Seen(
                id=found.id,
                title=f"{label(pod)}: {found.title}",
                evidence=found.evidence,
                why=found.why,
                fix=(*found.fix, logs(cluster, pod, one.name, "its whole log")),
                severity=found.severity,
                source=found.source,
            )
            return
        said = cut(one.last_words.strip().splitlines()[-1]) if one.last_words.strip() else ""
        yield Seen(
            title=f"{label(pod)}: container {one.name} ended {one.restarts or 1} times, last with exit {code}",
            evidence=said or f"reason {text(one.ended, 'reason') or 'none'}; no last words "
            "(terminationMessagePolicy is File)",
            why="Layer: container. " + ("These words are in no table of ours." if said else "Its own log says why."),
            fix=(
                (f"let its log be explained:\n{cluster.in_(pod)} logs {text(pod, 'metadata', 'name')} -c {one.name} "
                "--previous | selfhost explain -"),
                *(() if said else (patch_container(cluster, pod, one.name, "and let the next end keep its last lines",
                                                   {"terminationMessagePolicy": "FallbackToLogsOnError"}),)),
            ),
        )  # fmt: skip
        return
