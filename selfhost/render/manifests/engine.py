"""The container that serves: its words, variables, cards, probes and mounts. As the chart's _engine.tpl."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from selfhost.render.manifests.around import Object, Release, compact, literal
from selfhost.render.manifests.chart import over

_PROBES = {
    "startup": {"periodSeconds": 10, "timeoutSeconds": 5},
    "readiness": {"periodSeconds": 5, "failureThreshold": 3, "timeoutSeconds": 5},
    "liveness": {"periodSeconds": 15, "failureThreshold": 8, "timeoutSeconds": 10},
}

_PARALLEL: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vllm": {
        "tensor": ("--tensor-parallel-size", "-tp"),
        "pipeline": ("--pipeline-parallel-size", "-pp"),
        "data": ("--data-parallel-size", "-dp"),
    },
    "sglang": {
        "tensor": ("--tp-size", "--tensor-parallel-size", "--tp"),
        "pipeline": ("--pp-size", "--pipeline-parallel-size", "--pp"),
        "data": ("--dp-size", "--data-parallel-size", "--dp"),
    },
}


def container(release: Release) -> Object:
    values = release.values
    engine, drain = values["engine"], int(values["drain"]["preStopSeconds"])
    stop = {"preStop": {"exec": {"command": ["/bin/sleep", str(drain)]}}}
    return {
        "name": "engine",
        "image": release.image,
        "imagePullPolicy": values["image"]["pullPolicy"],
        "command": list(engine["command"]),
        "args": arguments(values),
        "env": _env(release),
        "ports": [{"name": "http", "containerPort": int(engine["port"]), "protocol": "TCP"}],
        **_probes(values["probes"]),
        **({"lifecycle": stop} if drain else {}),
        "resources": _resources(values),
        "securityContext": over(values["securityContext"], {}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(release),
    }


def mode_of(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was planned for the mode; empty for a model without modes."""
    found: Mapping[str, Any] = values["reasoning"]["modes"].get(mode_key(values["reasoning"]), {})
    return found


def mode_key(reasoning: Mapping[str, Any]) -> str:
    mode = reasoning["mode"]
    mode = ("on" if mode else "off") if isinstance(mode, bool) else mode
    if mode == "budget":
        return f"budget={reasoning['budget_tokens']}"
    return f"effort={reasoning['effort']}" if mode == "effort" else str(mode)


def arguments(values: Mapping[str, Any]) -> list[str]:
    precision = values["precision"]
    forms = precision["forms"]
    planned = [
        *values["engine"]["args"],
        *_parallel(values),
        *forms["weights"].get(precision["weights"], []),
        *forms["kv"].get(precision["kv"], []),
        *mode_of(values).get("args", []),
    ]
    return [*(literal(word) for word in planned), *(text(word) for word in values["extraArgs"])]


def _parallel(values: Mapping[str, Any]) -> Iterator[str]:
    """Sizes that the arguments do not hold already."""
    given = {
        str(word).partition("=")[0].replace("_", "-") for word in (*values["engine"]["args"], *values["extraArgs"])
    }
    for kind, names in _PARALLEL[values["engine"]["name"]].items():
        size = int(values["parallelism"][kind])
        if size > 1 and not given & set(names):
            yield from (names[0], str(size))


def text(value: object) -> str:
    """A number as it was written."""
    return value if isinstance(value, str) else compact(value)


def _env(release: Release) -> list[Object]:
    values = release.values
    home, vendor = values["cache"]["mountPath"], values["accelerator"]["vendor"]
    own = {
        "HOME": home,
        "USER": "selfhost",
        "TORCHINDUCTOR_CACHE_DIR": f"{home}/.cache/torchinductor",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        **({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if vendor == "nvidia" else {}),
        **({"NVIDIA_VISIBLE_DEVICES": "void"} if vendor == "none" else {}),
        **release.ca_variables(),
    }
    found = {**own, **values["engine"]["env"], **mode_of(values).get("env", {})}
    named = {one["name"] for one in values["extraEnv"]}
    env = [{"name": name, "value": literal(found[name])} for name in sorted(found) if name not in named]
    if values["engine"]["name"] == "vllm":
        secret = {"name": release.key_secret, "key": values["apiKey"]["existingSecretKey"]}
        env.append({"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": secret}})
    return [*env, *values["extraEnv"]]


def _probes(probes: Mapping[str, Any]) -> Object:
    tries = math.ceil(probes["startupBudgetSeconds"] / 10)
    return {
        f"{name}Probe": probes[name]
        or {"failureThreshold": tries, **probe, "httpGet": {"path": probes["path"], "port": "http"}}
        for name, probe in _PROBES.items()
    }


def _resources(values: Mapping[str, Any]) -> Object:
    """Kubernetes wants cards as request and limit, equal and whole."""
    found, cards = over(values["resources"], {}), values["accelerator"]
    if cards["vendor"] == "none":
        return found
    if cards["mode"] == "devicePlugin":
        for kind in ("requests", "limits"):
            found[kind] = {**found.get(kind, {}), cards["resource"]: str(int(cards["count"]))}
        return found
    return {**found, "claims": [{"name": "gpus"}]}


def _mounts(release: Release) -> list[Object]:
    values = release.values
    cache = values["cache"]
    caches = (
        {"name": "weights", "mountPath": cache["mountPath"], "subPath": release.cache_folder}
        if cache["persistent"]
        else {"name": "cache", "mountPath": cache["mountPath"]}
    )
    return [
        release.weights_mount(values["model"]["path"], readOnly=values["weights"]["readOnly"]),
        caches,
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - inside the container
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
        *release.ca_mounts(),
        *values["extraVolumeMounts"],
    ]
