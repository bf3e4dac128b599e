"""Who owns the number of replicas, and by which signal it changes."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.rollout import part, replicas_of
from selfhost.visibility.manifests.selectors import labels_in
from selfhost.visibility.objects import Manifests, Pod, label, place
from selfhost.visibility.rule import Found, manifest_rule

OWNED = "https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#migrating-deployments-and-statefulsets-to-horizontal-autoscaling"
ACTIVATION = "https://keda.sh/docs/latest/concepts/scaling-deployments/#activating-and-scaling-thresholds"
METRICS = "https://docs.vllm.ai/en/latest/usage/metrics/"
STACK = "https://github.com/vllm-project/production-stack/blob/main/helm/templates/scaledobject-vllm.yaml"
DISRUPTION = "https://kubernetes.io/docs/tasks/run-application/configure-pdb/"
DRAIN = "https://github.com/kubernetes/kubernetes/issues/66811"
_SERIES = re.compile(r"\bvllm:[a-z_]+\{(?P<labels>[^}]*)\}")
_NAMES = (
    "num_requests_running", "num_requests_waiting", "num_requests_swapped", "gpu_cache_usage_perc",
    "cpu_cache_usage_perc", "kv_cache_usage_perc", "prompt_tokens_total", "generation_tokens_total",
    "iteration_tokens_total", "num_preemptions_total", "time_to_first_token_seconds", "request_queue_time_seconds",
    "e2e_request_latency_seconds",
)  # fmt: skip
_UNDERSCORED = re.compile(rf"\bvllm_(?:{'|'.join(_NAMES)})(?:_bucket|_sum|_count)?\b")
_OLD: Final = {"vllm:gpu_cache_usage_perc": "vllm:kv_cache_usage_perc"}
SIGNAL: Final = 'sum(vllm:num_requests_waiting{model_name="NAME"})'


def _target(scaler: Tree) -> tuple[str, str]:
    reference = scaler.at("spec", "scaleTargetRef")
    kind = reference.said("kind") if reference is not None else ""
    return (kind or "Deployment", reference.said("name") if reference is not None else "")


def _scaled(manifests: Manifests, scaler: Tree) -> Tree | None:
    kind, name = _target(scaler)
    return manifests.named(kind, name, scaler.said("metadata", "namespace")) if name else None


def _pod_of(manifests: Manifests, thing: Tree | None) -> Pod | None:
    return next((pod for pod in manifests.pods if pod.holder is thing), None)


@manifest_rule("KX058", Severity.WARNING, source=OWNED)
def replicas_owned_twice(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for scaler in manifests.kind("HorizontalPodAutoscaler", "ScaledObject"):
        thing = _scaled(manifests, scaler)
        value = thing.at("spec", "replicas") if thing is not None else None
        if thing is None or value is None or value.is_null:
            continue
        yield Found(
            title=f"{label(thing)} says its replicas, and {label(scaler)} sets them too",
            place=place(thing, value),
            evidence=f"replicas: {value.text} · scaleTargetRef of {label(scaler)}",
            why="Each apply puts the number back. With Helm 4 and server-side apply the upgrade fails instead: "
            '`conflict with "kube-controller-manager" … .spec.replicas`.',
            fix=("remove replicas, for the autoscaler owns it",),
        )


@manifest_rule("KX059", Severity.WARNING, source=METRICS)
def scaled_by_the_processor(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for scaler in manifests.kind("HorizontalPodAutoscaler", "ScaledObject"):
        pod = _pod_of(manifests, _scaled(manifests, scaler))
        if pod is None or not any(pod.engines):
            continue
        for tree, resource in _resource_signals(scaler):
            yield Found(
                title=f"{label(scaler)} scales an engine by its {resource}",
                place=place(scaler, tree),
                evidence=f"signal: {resource} of {label(pod.holder)}",
                why="An engine polls and holds its memory whether it works or not: processor and memory tell "
                "nothing of how many requests wait for the card.",
                fix=(f"scale by the queue, some 5 waiting requests a replica:\n{SIGNAL}",),
            )


def _resource_signals(scaler: Tree) -> Iterator[tuple[Tree, str]]:
    old = scaler.at("spec", "targetCPUUtilizationPercentage")
    if old is not None:
        yield old, "cpu"
    metrics = scaler.at("spec", "metrics")
    for metric in metrics.elements() if metrics is not None else ():
        for key in ("resource", "containerResource"):
            name = metric.at(key, "name")
            if name is not None and name.text in ("cpu", "memory"):
                yield name, name.text
    triggers = scaler.at("spec", "triggers")
    for trigger in triggers.elements() if triggers is not None else ():
        kind = trigger.at("type")
        if kind is not None and kind.text in ("cpu", "memory"):
            yield kind, kind.text


def texts(tree: Tree) -> Iterator[Tree]:
    """Every text inside, however deep."""
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if one.is_scalar:
            yield one
        waiting += [*(one.map or {}).values(), *(one.list or ())]


@manifest_rule("KX069", Severity.WARNING, source=ACTIVATION)
def never_wakes_up(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for scaler in manifests.kind("ScaledObject"):
        least = scaler.at("spec", "minReplicaCount")
        triggers = scaler.at("spec", "triggers")
        queries = [one.said("metadata", "query") for one in (triggers.elements() if triggers is not None else ())]
        if (
            least is None
            or least.text != "0"
            or not queries
            or not all(re.search(r"\b(?:vllm|sglang):", q) for q in queries)
        ):
            continue
        yield Found(
            title=f"{label(scaler)} goes down to 0 replicas and never comes back",
            place=place(scaler, least),
            evidence=f"minReplicaCount: 0 · {queries[0][:80]}",
            why="The number comes from the engine itself. With no engine there is no series, so nothing ever says "
            "that one is needed.",
            fix=("keep one:\nminReplicaCount: 1", "or add a trigger that a router or gateway in front exports"),
        )


@manifest_rule("KX655", Severity.WARNING, source=STACK)
def series_that_no_engine_has(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.kind("ScaledObject", "PrometheusRule", "HorizontalPodAutoscaler", "ConfigMap", "ScaledJob"):
        asks = thing.said("kind") in ("ScaledObject", "ScaledJob")  # elsewhere an adapter or a rule may have renamed it
        for text in texts(thing):
            said = _wrong_series(text.text, asks=asks) if "vllm" in text.text else None
            if said is None:
                continue
            fault, fix = said
            yield Found(
                title=f"{label(thing)} asks Prometheus for what vLLM does not export",
                place=place(thing, text),
                evidence=fault,
                why="The query gives an empty vector, which counts as nothing to do: the scaler says Ready and never "
                "moves. vLLM names its series with a colon, and the served model in the label model_name.",
                fix=(fix, "run the query once and see that it gives a number"),
            )


def _wrong_series(query: str, *, asks: bool) -> tuple[str, str] | None:
    for found in _SERIES.finditer(query):
        names = [part.partition("=")[0].strip(" !~") for part in found["labels"].split(",")]
        if "model" in names and "model_name" not in names:
            return f"label 'model' does not exist on the series: {found[0]}", "write model_name instead of model"
    underscored = _UNDERSCORED.search(query)
    if underscored and asks:
        right = underscored[0].replace("vllm_", "vllm:", 1)
        return f"{underscored[0]}: no such series", f"write it with a colon:\n{right}"
    old = next((name for name in _OLD if name in query), "")
    return (f"{old} was renamed", f"write {_OLD[old]}") if old else None


@manifest_rule("KX060", Severity.ERROR, source=DISRUPTION)
def budget_says_both(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for budget in manifests.kind("PodDisruptionBudget"):
        both = [budget.at("spec", key) for key in ("minAvailable", "maxUnavailable")]
        if all(value is not None and not value.is_null for value in both):
            yield Found(
                title=f"{label(budget)} says both minAvailable and maxUnavailable",
                place=place(budget, both[1]),
                evidence=f"minAvailable {both[0].text if both[0] else ''} · maxUnavailable "
                f"{both[1].text if both[1] else ''}",
                why="The API server refuses it: `minAvailable and maxUnavailable cannot be both set`.",
                fix=("keep one of the two:\nmaxUnavailable: 1",),
            )


@manifest_rule("KX061", Severity.WARNING, source=DRAIN)
def budget_lets_nothing_go(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for budget in manifests.kind("PodDisruptionBudget"):
        wanted = labels_in(budget.at("spec", "selector", "matchLabels"))
        least, most = budget.at("spec", "minAvailable"), budget.at("spec", "maxUnavailable")
        if most is not None and most.text.strip() in ("0", "0%"):
            yield _stuck(budget, most, "maxUnavailable 0 lets no pod go")
            continue
        for pod in manifests.pods:
            own = pod.labels()
            if least is None or not wanted or any(own.get(key) != value for key, value in wanted.items()):
                continue
            replicas = replicas_of(pod.holder) if pod.kind not in ("Pod", "DaemonSet") else 1
            if replicas is None or _is_scaled(manifests, pod) or not replicas:
                continue
            needed = part(least, replicas, up=True)
            if needed is not None and needed >= replicas:
                yield _stuck(budget, least, f"minAvailable {least.text} of {replicas} replicas of {label(pod.holder)}")


def _is_scaled(manifests: Manifests, pod: Pod) -> bool:
    scalers = manifests.kind("HorizontalPodAutoscaler", "ScaledObject")
    return any(_scaled(manifests, scaler) is pod.holder for scaler in scalers)


def _stuck(budget: Tree, tree: Tree, said: str) -> Found:
    return Found(
        title=f"{label(budget)} never lets a node be drained",
        place=place(budget, tree),
        evidence=said,
        why="`Cannot evict pod as it would violate the pod's disruption budget`: `kubectl drain` and upgrades of the "
        "cluster wait for ever.",
        fix=("let one pod go at a time; with one replica no budget can keep it up:\nmaxUnavailable: 1",),
    )
