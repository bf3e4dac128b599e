"""How many pods there are, may go away, and are measured. As the chart's autoscaling, pdb and monitoring."""

import json
from collections.abc import Iterator

from selfhost.render.manifests.around import Object, Release


def budget(release: Release) -> Iterator[Object]:
    values = release.values
    scaling, wanted = values["autoscaling"], values["podDisruptionBudget"]["enabled"]
    least = int(scaling["minReplicas"] if scaling["enabled"] else values.get("replicaCount") or 1)
    if wanted is True or wanted == "true" or (wanted == "auto" and least >= 2):
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": release.metadata("engine", release.full),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": release.component("engine")}},
        }


def autoscaler(release: Release) -> Iterator[Object]:
    found = release.values["autoscaling"]
    if found["enabled"]:
        yield _hpa(release) if found["kind"] == "hpa" else _keda(release)


def _hpa(release: Release) -> Object:
    found = release.values["autoscaling"]
    target = {"type": "AverageValue", "averageValue": str(int(found["waiting"]))}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": release.metadata("engine", release.full),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": release.full},
            "minReplicas": int(found["minReplicas"]),
            "maxReplicas": int(found["maxReplicas"]),
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": found["metric"]}, "target": target}}],
            "behavior": _slowly(release),
        },
    }


def _keda(release: Release) -> Object:
    values = release.values
    found = values["autoscaling"]
    metric = "vllm:num_requests_waiting" if values["engine"]["name"] == "vllm" else "sglang:num_queue_reqs"
    labels = {"model_name": values["model"]["servedName"], "namespace": release.namespace}
    which = ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in labels.items() if value)
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": release.metadata("engine", release.full),
        "spec": {
            "scaleTargetRef": {"name": release.full},
            "minReplicaCount": int(found["minReplicas"]),
            "maxReplicaCount": int(found["maxReplicas"]),
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _slowly(release)}},
            "triggers": [
                {
                    "type": "prometheus",
                    "metricType": "AverageValue",
                    "metadata": {
                        "serverAddress": found["prometheus"],
                        "query": f"sum({metric}{{{which}}})",
                        "threshold": str(int(found["waiting"])),
                        "ignoreNullValues": "false",
                    },
                }
            ],
        },
    }


def _slowly(release: Release) -> Object:
    seconds = int(release.values["autoscaling"]["scaleDownSeconds"])
    return {"scaleDown": {"stabilizationWindowSeconds": seconds}}


def monitors(release: Release) -> Iterator[Object]:
    found = release.values["monitoring"]
    for key, kind, endpoints in (
        ("podMonitor", "PodMonitor", "podMetricsEndpoints"),
        ("serviceMonitor", "ServiceMonitor", "endpoints"),
    ):
        if found[key]:
            yield {
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": kind,
                "metadata": release.metadata("engine", release.full, labels=found["labels"]),
                "spec": {
                    "selector": {"matchLabels": release.component("engine")},
                    endpoints: [{"port": "http", "path": "/metrics", "interval": found["interval"]}],
                },
            }
