"""The claim for the weights, and the job that fills it. As the chart's pvc.yaml and _fetch.tpl."""

from collections.abc import Mapping
from typing import Any

from selfhost.render.manifests.around import Object, Release, hash_of, literal
from selfhost.render.manifests.chart import over, script

_SPARE_S = 900
_DRAINED: Mapping[str, Any] = {
    "action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}  # fmt: skip
"""A node that is drained uses up no retry."""
_USELESS: Mapping[str, Any] = {
    "action": "FailJob", "onExitCodes": {"containerName": "fetch", "operator": "In", "values": [78]},
}  # fmt: skip
"""fetch.py ends so where no retry mends it: a gated model, a typo, no room."""


def claim(release: Release) -> Object:
    weights = release.values["weights"]
    name = weights.get("storageClassName")
    keep = {"helm.sh/resource-policy": "keep"} if weights["keep"] else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": release.metadata("weights", release.claim, annotations=keep),
        "spec": {
            "accessModes": list(weights["accessModes"]),
            **({"storageClassName": name} if isinstance(name, str) else {}),
            "resources": {"requests": {"storage": weights["size"]}},
        },
    }


def fetch(release: Release) -> Object:
    """A job never changes: what would change it gives it another name."""
    spec = _spec(release)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": release.metadata("fetch", f"{release.full}-fetch-{hash_of(spec)}", labels=release.queue),
        "spec": spec,
    }


def _spec(release: Release) -> Object:
    job = release.values["fetch"]
    return {
        "backoffLimit": int(job["backoffLimit"]),
        "podFailurePolicy": {"rules": [_DRAINED, _USELESS]},
        "template": {"metadata": {"labels": release.component("fetch")}, "spec": _pod(release)},
    }


def _pod(release: Release) -> Object:
    values = release.values
    spec = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": int(values["fetch"]["budgetSeconds"]) + _SPARE_S,
        **release.pod(),
    }
    for key in ("priorityClassName", "nodeSelector"):
        if values[key]:
            spec[key] = values[key]
    if release.one_node:
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": release.component("engine")},
        }
        spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if release.tolerations:
        spec["tolerations"] = release.tolerations
    spec["containers"] = [_container(release)]
    spec["volumes"] = [release.weights_volume(), {"name": "tmp", "emptyDir": {}}, *release.ca_volumes()]
    return spec


def _container(release: Release) -> Object:
    values = release.values
    return {
        "name": "fetch",
        "image": release.image,
        "imagePullPolicy": values["image"]["pullPolicy"],
        "command": ["python3", "-c"],
        "args": [script("fetch.py"), "/weights"],
        "env": _env(release),
        "resources": over(values["fetch"]["resources"], {}),
        "securityContext": over(values["securityContext"], {}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            release.weights_mount("/weights"),
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - inside the container
            *release.ca_mounts(),
        ],
    }


def _env(release: Release) -> list[Object]:
    job = release.values["fetch"]
    found = {
        **job["env"],
        "HOME": "/tmp",  # noqa: S108 - inside the container
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_XET_CHUNK_CACHE_SIZE_BYTES": "0",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "SELFHOST_WANTED": release.wanted,
        "USER": "selfhost",
        **({"HF_ENDPOINT": job["endpoint"]} if job["endpoint"] else {}),
        **release.ca_variables(),
    }
    env: list[Object] = [{"name": name, "value": literal(found[name])} for name in sorted(found)]
    if job["existingSecret"]:
        secret = {"name": job["existingSecret"], "key": job["existingSecretKey"]}
        env.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": secret}})
    return env
