"""Time to load a model, against the time that probes and deadlines leave for it."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.groups import is_worker
from selfhost.visibility.manifests.models import LASTING, Load, hub_cache, load_of, mount_over
from selfhost.visibility.manifests.probes import number, patience_s, probes
from selfhost.visibility.objects import Container, Manifests, label, place
from selfhost.visibility.rule import Found, manifest_rule

if TYPE_CHECKING:
    from selfhost.core.tree import Tree

BUDGET = "https://github.com/vllm-project/aibrix/issues/1054"
KILLED = "https://github.com/vllm-project/aibrix/issues/772"
DEADLINE = "https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#progress-deadline-seconds"
_LEAST_S = 120
"""A GPU engine of any size, cold: image read in, imports, memory profiled, graphs captured."""
_UNSAID_DEADLINE_S = 600


def _startup(seconds: int) -> str:
    """Three times what is expected, as a probe to paste."""
    budget = min(max(600, 3 * seconds), 10800)
    return (
        "startupProbe:\n  httpGet: {path: /health, port: 8000}\n  periodSeconds: 10\n"
        f"  failureThreshold: {math.ceil(budget / 10)}\n  timeoutSeconds: 5"
    )


def _in_words(load: Load) -> str:
    size = f"{load.weights_bytes / 1e9:.0f} GB" if load.weights_bytes >= 1e9 else f"{load.weights_bytes / 1e6:.0f} MB"
    return (
        f"{load.model}: some {size}"
        + (" at 50 MB/s, then" if load.downloads else ",")
        + " 500 MB/s from disk, 60 s to start"
    )


@manifest_rule("KX350", Severity.WARNING, source=BUDGET)
def startup_budget_too_short(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.engines:
        probe, load = container.tree.at("startupProbe"), load_of(container)
        if probe is None or load is None or is_worker(pod, container):
            continue
        budget = patience_s(probe)
        if budget >= load.seconds:
            continue
        yield Found(
            title=f"{container.wrapped.label} is killed before its model can be loaded",
            place=container.place(probe),
            evidence=f"startup budget {budget} s, expected load >= {load.seconds} s ({_in_words(load)})",
            why="The kubelet kills the container when the budget is over (`failed startup probe, will be restarted`)"
            + (
                ", and each try downloads again, for the cache is on no lasting volume."
                if _again(container, load)
                else "."
            ),
            fix=(
                f"give it some three times what the first start takes:\n{_startup(load.seconds)}",
                *(
                    ("keep the download on a PersistentVolumeClaim and point HF_HOME there",)
                    if _again(container, load)
                    else ()
                ),
            ),
        )


def _again(container: Container, load: Load) -> bool:
    where = hub_cache(container)
    over = mount_over(container, where[0]) if where else None
    return load.downloads and where is not None and (over is None or over.kind not in LASTING)


@manifest_rule("KX351", Severity.WARNING, source=KILLED)
def liveness_kills_the_loading_model(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.engines:
        probe = container.tree.at("livenessProbe")
        if probe is None or container.tree.at("startupProbe") is not None or is_worker(pod, container):
            continue
        load, patience = load_of(container), patience_s(probe)
        least = load.seconds if load else _LEAST_S if container.cards else 0
        if patience >= least:
            continue
        yield Found(
            title=f"the livenessProbe of {container.wrapped.label} kills it while it loads its model",
            place=container.place(probe),
            evidence=f"no startupProbe · killed after {patience} s, expected load >= {least} s"
            + (f" ({_in_words(load)})" if load else ""),
            why="An engine opens its port when the model is loaded. Until then every probe fails, and the container is "
            "killed and starts from the beginning: `KeyboardInterrupt: terminated`, restarts at a fixed interval.",
            fix=(f"hold the livenessProbe back until the model is loaded:\n{_startup(least)}",),
        )


def startup_budget(container: Container) -> int:
    return max((patience_s(probe) for key, probe in probes(container) if key == "startupProbe"), default=0)


@manifest_rule("KX359", Severity.WARNING, source=DEADLINE)
def deadline_before_the_start(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.engines:
        if pod.kind != "Deployment":
            continue
        budget, spec = startup_budget(container), pod.holder.at("spec")
        deadline = number(spec, "progressDeadlineSeconds", _UNSAID_DEADLINE_S) if spec is not None else 0
        load = load_of(container)
        needed = max(budget, load.seconds if load else 0)
        if not budget or deadline > budget or not needed:
            continue
        said: Tree | None = spec.at("progressDeadlineSeconds") if spec is not None else None
        yield Found(
            title=f"{label(pod.holder)} is reported as failed while its model may still load",
            place=place(pod.holder, said),
            evidence=f"progressDeadlineSeconds {deadline}{'' if said else ' (the default)'} · startup budget "
            f"{budget} s",
            why="When the deadline comes first the roll-out is `ProgressDeadlineExceeded`, and `helm --wait` "
            "rolls back what was healthy and only slow. Pulling the image counts against it too.",
            fix=(f"leave room for the pull and the start:\nprogressDeadlineSeconds: {budget + 900}",),
        )
