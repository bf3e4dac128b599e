"""A plan as values of the chart templates/helm/selfhost-model: what was decided, in the order of its values.yaml."""

from collections.abc import Mapping
from typing import Any

import selfhost
from selfhost.plan.cluster.arch import node_selector_of
from selfhost.plan.cluster.names import parts_of, revision_of
from selfhost.plan.digest import digest_of
from selfhost.plan.media import FLAG, NOWHERE
from selfhost.shapes.cluster import ClusterDevices, ClusterPlan, Form, Forms
from selfhost.shapes.plan import Plan
from selfhost.shapes.units import GIB, MIB
from selfhost.shapes.workload import Toleration

Values = dict[str, Any]
DIGEST_DIGITS = 40
"""A label takes 63 letters, a whole digest has 64."""
_DEFAULT_MODES = ("on", "off")
_DEFAULT_WEIGHTS = ("bf16", "fp8")
_DEFAULT_KV = ("auto", "fp8")
"""Forms that the chart's own values hold. Helm merges maps, so those that were not planned are taken out by null."""
_TOKEN_S = 20
_ROOT = {"runAsNonRoot": False, "runAsUser": 0, "runAsGroup": 0, "fsGroup": 0}


def values_of(plan: Plan, *, image_digest: str = "") -> Values:
    """Only what was planned; everything else is as the chart has it. The same plan gives the same values."""
    cluster = plan.cluster
    if cluster is None or cluster.forms is None:
        raise ValueError("a plan for another runtime has no values")
    values: Values = {
        "fullnameOverride": cluster.release,
        "model": _model(plan),
        "image": _image(cluster, image_digest),
        "imagePullSecrets": list(cluster.ask.image_pull_secrets),
        "engine": _engine(plan, cluster.forms),
        "extraArgs": [literal(word) for word in cluster.forms.extra],
        "reasoning": _reasoning(plan, cluster.forms),
        "precision": _precision(cluster.forms),
        "parallelism": {
            "tensor": plan.parallel.tensor, "pipeline": plan.parallel.pipeline, "data": plan.parallel.data,
        },
        "accelerator": _accelerator(cluster.devices),
        "runtimeClassName": _runtime_class(cluster),
        "resources": _resources(plan, cluster),
        "shm": {"size": amount(cluster.shm)},
        "replicaCount": cluster.replicas,
        "drain": {"preStopSeconds": cluster.prestop_s, "engineSeconds": cluster.drain_s},
        "probes": _probes(plan, cluster),
        "weights": _weights(cluster),
        "cache": _cache(cluster),
        "fetch": _fetch(cluster),
        "apiKey": {"existingSecret": cluster.ask.key_secret} if cluster.ask.key_secret else {},
        "ca": {"existingConfigMap": cluster.ask.ca_config_map} if cluster.ask.ca_config_map else {},
        "podSecurityContext": _pod_security(cluster),
        "securityContext": {"capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]}} if cluster.unconfined else {},
        "nodeSelector": dict(node_selector_of(plan, cluster)),
        "tolerations": [_toleration(one) for one in _beside(cluster)],
        "ingress": _ingress(cluster),
        "networkPolicy": {"egress": True} if _asks_outside(plan) else {},
        "selfhost": {
            "name": plan.name,
            "digest": digest_of(plan)[:DIGEST_DIGITS],
            "version": selfhost.__version__.replace("+", "_"),
        },
    }  # fmt: skip
    empty: tuple[object, ...] = ({}, [])
    return {key: value for key, value in values.items() if value not in empty}


def amount(count: int) -> str:
    """As Kubernetes writes bytes."""
    return f"{count // GIB}Gi" if count % GIB == 0 else f"{-(-count // MIB)}Mi"


def literal(word: str) -> str:
    """Kubernetes replaces `$(NAME)` and halves `$$`; the chart passes extraArgs on as they are."""
    return word.replace("$", "$$")


def _model(plan: Plan) -> Values:
    return {
        "id": plan.model.id,
        "revision": revision_of(plan.model),
        "servedName": plan.model.served_name,
    }


def _image(cluster: ClusterPlan, digest: str) -> Values:
    registry, repository, tag, own = parts_of(cluster.image)
    return {"registry": registry, "repository": repository, "tag": tag, "digest": digest or own}


def _engine(plan: Plan, forms: Forms) -> Values:
    command = plan.image.command if plan.image is not None else ()
    return {
        "name": plan.build.engine,
        "version": plan.build.version,
        "backend": plan.build.backend,
        "command": list(command or ("vllm", "serve")),
        "args": list(forms.args),
        "env": dict(sorted(forms.env.items())),
    }


def _reasoning(plan: Plan, forms: Forms) -> Values:
    found = {form.name: _mode(form) for form in forms.modes}
    return {
        "mode": plan.reasoning.mode.value,
        "budget_tokens": plan.reasoning.budget_tokens,
        "effort": plan.reasoning.effort,
        "field": plan.reasoning.response_field,
        "modes": {**found, **_taken_out(_DEFAULT_MODES, found)},
    }


def _mode(form: Form) -> Values:
    return {
        "args": list(form.args),
        **({"env": dict(form.env)} if form.env else {}),
        **({"request": dict(form.request)} if form.request else {}),
        "thinks": form.thinks,
    }


def _precision(forms: Forms) -> Values:
    weights = {form.name: list(form.args) for form in forms.weights}
    kv = {form.name: list(form.args) for form in forms.kv}
    return {
        "weights": forms.weights[0].name,
        "kv": forms.kv[0].name,
        "forms": {
            "weights": {**weights, **_taken_out(_DEFAULT_WEIGHTS, weights)},
            "kv": {**kv, **_taken_out(_DEFAULT_KV, kv)},
        },
    }


def _taken_out(defaults: tuple[str, ...], found: Mapping[str, object]) -> dict[str, None]:
    return {name: None for name in defaults if name not in found}


def _accelerator(devices: ClusterDevices) -> Values:
    values: Values = {
        "vendor": devices.vendor,
        "mode": devices.mode,
        "resource": devices.resource,
        "count": devices.count,
        "nodeLabels": [
            {"key": one.key, "operator": one.operator, "values": list(one.values)} for one in devices.labels
        ],
        "tolerations": [_toleration(one) for one in devices.tolerations],
    }
    claim = devices.claim
    if claim is not None:
        values["dra"] = {
            "apiVersion": claim.api_version,
            "deviceClassName": claim.device_class,
            "selectors": list(claim.selectors),
            "constraints": [dict(one) for one in claim.constraints],
        }
    return values


def _toleration(one: Toleration) -> Values:
    said = {"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect}
    return {key: value for key, value in said.items() if value}


def _beside(cluster: ClusterPlan) -> tuple[Toleration, ...]:
    """Those asked for that the accelerator's own list has not."""
    return tuple(one for one in cluster.ask.tolerations if one not in cluster.devices.tolerations)


def _runtime_class(cluster: ClusterPlan) -> str:
    return cluster.runtime_class or "none"


def _resources(plan: Plan, cluster: ClusterPlan) -> Values:
    memory = amount(cluster.memory)
    requests = {
        "cpu": cluster.cpu,
        "memory": memory,
        "ephemeral-storage": amount(cluster.ephemeral_request),
    }
    # threads are started for so many cores: more would not be used, and less would let them wait for each other
    cpu = {"cpu": cluster.cpu} if plan.build.backend == "cpu" else {}
    return {
        "requests": requests,
        "limits": {**cpu, "memory": memory, "ephemeral-storage": amount(cluster.ephemeral_limit)},
    }


def _probes(plan: Plan, cluster: ClusterPlan) -> Values:
    """SGLang generates a token for each answer to /health, and waits up to 20 s for it (0.5.23: http_server.py)."""
    found: Values = {"startupBudgetSeconds": cluster.startup_budget_s}
    if plan.build.engine != "sglang":
        return found
    asked = {"httpGet": {"path": "/health", "port": "http"}, "timeoutSeconds": _TOKEN_S}
    return {
        **found,
        "startup": {**asked, "periodSeconds": 10, "failureThreshold": -(-cluster.startup_budget_s // 10)},
        "readiness": {**asked, "periodSeconds": 10, "failureThreshold": 3},
        "liveness": {**asked, "periodSeconds": 20, "failureThreshold": 6},
    }


def _weights(cluster: ClusterPlan) -> Values:
    """The chart derives the folder of what it fetches, so that another revision gets another one."""
    modes = ["ReadWriteMany"] if cluster.replicas > 1 else ["ReadWriteOnce"]
    if cluster.weights_claim:
        return {"existingClaim": cluster.weights_claim, "subPath": cluster.weights_sub_path, "accessModes": modes}
    return {
        "size": amount(cluster.weights_size),
        "storageClassName": cluster.storage_class,
        "accessModes": modes,
    }


def _cache(cluster: ClusterPlan) -> Values:
    """Nothing of ours is written into a claim that somebody else filled."""
    return {"persistent": False} if cluster.weights_claim else {"arch": cluster.cache_arch}


def _fetch(cluster: ClusterPlan) -> Values:
    if cluster.weights_claim:
        return {"enabled": False}
    secret = cluster.ask.hub_token_secret
    return {**({"existingSecret": secret} if secret else {}), "budgetSeconds": cluster.fetch_budget_s}


def _pod_security(cluster: ClusterPlan) -> Values:
    uid, _, gid = cluster.user.partition(":")
    found: Values = dict(_ROOT) if not cluster.user else {"runAsUser": int(uid), "runAsGroup": int(gid or uid)}
    return {**found, **({"seccompProfile": {"type": "Unconfined"}} if cluster.unconfined else {})}


def _ingress(cluster: ClusterPlan) -> Values:
    ask = cluster.ask
    if not ask.host:
        return {}
    name = ask.ingress_class
    controller = next((known for known in ("nginx", "traefik") if known in name), "nginx" if not name else "none")
    return {
        "enabled": True, "className": name, "controller": controller, "host": ask.host, "tlsSecret": ask.tls_secret,
    }  # fmt: skip


def _asks_outside(plan: Plan) -> bool:
    return FLAG in plan.argv and _domains(plan) not in ((), (NOWHERE,))


def _domains(plan: Plan) -> tuple[str, ...]:
    begin = plan.argv.index(FLAG) + 1
    found = []
    for word in plan.argv[begin:]:
        if word.startswith("--"):
            break
        found.append(word)
    return tuple(found)
