"""The Deployment of the engine. As the chart's deployment.yaml."""

from collections.abc import Mapping
from typing import Any

from selfhost.render.manifests.around import Object, Release, literal
from selfhost.render.manifests.chart import over, script
from selfhost.render.manifests.devices import template_name
from selfhost.render.manifests.engine import container

_SPARE_S = 900
"""For the image."""
_END_S = 15


def deployment(release: Release) -> Object:
    values = release.values
    model = {"selfhost.io/model": f"{values['model']['id']}@{values['model']['revision']}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": release.metadata("engine", release.full, labels=release.queue, annotations=model),
        "spec": {
            **_replicas(values),
            "revisionHistoryLimit": int(values["rollout"]["revisionHistoryLimit"]),
            "progressDeadlineSeconds": progress_deadline(values),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": _update(int(values["rollout"]["surge"]))},
            "selector": {"matchLabels": release.component("engine")},
            "template": {
                "metadata": {
                    "annotations": {**values["podAnnotations"], **model},
                    "labels": {**values["podLabels"], **release.component("engine")},
                },
                "spec": _pod(release),
            },
        },
    }


def progress_deadline(values: Mapping[str, Any]) -> int:
    """Fetching, loading and the first compilation lie within it."""
    fetch = int(values["fetch"]["budgetSeconds"]) if values["fetch"]["enabled"] else 0
    asked = values["rollout"]["progressDeadlineSeconds"]
    return int(asked or int(values["probes"]["startupBudgetSeconds"]) + fetch + _SPARE_S)


def _replicas(values: Mapping[str, Any]) -> Object:
    """Where an autoscaler owns the number, no update touches it."""
    count = values.get("replicaCount")
    if values["autoscaling"]["enabled"] or isinstance(count, bool) or not isinstance(count, (int, float)):
        return {}
    return {"replicas": int(count)}


def _update(surge: int) -> Object:
    return {"maxSurge": surge, "maxUnavailable": 0} if surge else {"maxSurge": 0, "maxUnavailable": 1}


def _pod(release: Release) -> Object:
    values = release.values
    drain = values["drain"]
    spec = {
        **release.pod(),
        "terminationGracePeriodSeconds": int(drain["preStopSeconds"]) + int(drain["engineSeconds"]) + _END_S,
    }
    if values["runtimeClassName"] not in ("auto", "none", ""):
        spec["runtimeClassName"] = values["runtimeClassName"]
    for key in ("priorityClassName", "schedulerName", "nodeSelector"):
        if values[key]:
            spec[key] = values[key]
    affinity = values["affinity"] or _affinity(values["accelerator"]["nodeLabels"])
    if affinity:
        spec["affinity"] = affinity
    if release.tolerations:
        spec["tolerations"] = release.tolerations
    spread = values["topologySpreadConstraints"] or _spread(release)
    if spread:
        spec["topologySpreadConstraints"] = spread
    if release.uses_claim:
        spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": template_name(release)}]
    if values["fetch"]["enabled"]:
        spec["initContainers"] = [_wait(release)]
    spec["containers"] = [container(release)]
    spec["volumes"] = _volumes(release)
    return spec


def _affinity(labels: list[Object]) -> Object:
    if not labels:
        return {}
    terms = {"nodeSelectorTerms": [{"matchExpressions": labels}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _spread(release: Release) -> list[Object]:
    if release.most_replicas <= 1:
        return []
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": release.component("engine")},
        }
    ]


def _wait(release: Release) -> Object:
    """Until the job has marked the weights as complete."""
    values = release.values
    return {
        "name": "weights",
        "image": release.image,
        "imagePullPolicy": values["image"]["pullPolicy"],
        "command": ["python3", "-c"],
        "args": [script("wait.py"), "/weights"],
        "env": [
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
            {"name": "SELFHOST_SECONDS", "value": str(int(values["fetch"]["budgetSeconds"]))},
            {"name": "SELFHOST_WANTED", "value": literal(release.wanted)},
        ],
        "resources": over(values["fetch"]["waitResources"], {}),
        "securityContext": over(values["securityContext"], {}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [release.weights_mount("/weights", readOnly=True)],
    }


def _volumes(release: Release) -> list[Object]:
    values = release.values
    cache = values["cache"]
    caches = [] if cache["persistent"] else [{"name": "cache", "emptyDir": {"sizeLimit": cache["size"]}}]
    return [
        release.weights_volume(),
        *caches,
        {"name": "tmp", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": values["shm"]["size"]}},
        *release.ca_volumes(),
        *values["extraVolumes"],
    ]
