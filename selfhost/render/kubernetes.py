"""Plain manifests of one plan: the chart's objects without Helm, what `kubectl apply` takes."""

from collections.abc import Mapping
from typing import Any

from selfhost.plan.cluster.remarks import UNSEEN
from selfhost.plan.cluster.values import values_of
from selfhost.render.cluster_commands import MANIFESTS, kubectl
from selfhost.render.cluster_words import facts, head, reasons_of
from selfhost.render.helm import README
from selfhost.render.manifests.objects import objects
from selfhost.render.templates import environment
from selfhost.render.yaml_tree import dump
from selfhost.shapes.bundle import Bundle
from selfhost.shapes.cluster import ClusterPlan
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan

FILE = MANIFESTS
_POD = ("spec", "template", "spec")
_ENGINE = (*_POD, "containers", "0")
_PLANNED: Mapping[tuple[str, tuple[str, ...]], str] = {
    ("Deployment", (*_POD, "runtimeClassName")): "runtimeClassName",
    ("Deployment", (*_POD, "securityContext")): "podSecurityContext",
    ("Deployment", (*_POD, "affinity")): "accelerator.nodeLabels",
    ("Deployment", (*_POD, "tolerations")): "accelerator.tolerations",
    ("Deployment", (*_POD, "nodeSelector")): "nodeSelector",
    ("Deployment", ("spec", "template", "metadata", "annotations")): "model",
    ("Deployment", (*_POD, "serviceAccountName")): UNSEEN,
    ("Deployment", (*_ENGINE, "args")): "precision",
    ("Deployment", (*_POD, "terminationGracePeriodSeconds")): "drain",
    ("Deployment", (*_ENGINE, "image")): "image",
    ("Deployment", (*_ENGINE, "startupProbe")): "probes.startupBudgetSeconds",
    ("Deployment", (*_ENGINE, "resources")): "resources",
    ("Deployment", (*_POD, "volumes")): "shm.size",
    ("PersistentVolumeClaim", ("spec", "accessModes")): "weights.accessModes",
    ("PersistentVolumeClaim", ("spec", "resources")): "weights.size",
    ("Job", (*_POD, "activeDeadlineSeconds")): "fetch.budgetSeconds",
    ("ResourceClaimTemplate", ("spec",)): "accelerator",
}  # fmt: skip
"""Places of objects whose reason stands in the plan under a path of the chart's values."""
_ALWAYS: Mapping[tuple[str, tuple[str, ...]], str] = {
    ("Deployment", ("spec", "strategy")): "no card is spare: the old pod goes first, or the new one waits for ever",
    ("Deployment", ("spec", "progressDeadlineSeconds")): "the pull, fetching, loading and a first compilation",
    ("Deployment", (*_POD, "automountServiceAccountToken")): "nothing in the pod asks the cluster's API",
    ("Deployment", (*_POD, "enableServiceLinks")): "variables made for Services, such as VLLM_PORT=tcp://…, stop vLLM",
    ("Deployment", (*_ENGINE, "env")): "no variable selects cards: the scheduler does, by the resource below",
    ("Deployment", (*_ENGINE, "livenessProbe")): "an engine under load answers late: two minutes, then it is restarted",
    ("Deployment", (*_ENGINE, "lifecycle")): "requests still come while the pod is being taken from the Service",
    ("Job", (*_POD, "affinity")): "a volume of one node: fetched where the engine's pod waits for it",
    ("Job", ("spec", "backoffLimit")): "retries over three quarters of an hour; what no retry mends ends it at once",
    ("NetworkPolicy", ("spec", "ingress")): "pods of this namespace; other paths than /v1 ask for no key",
    ("NetworkPolicy", ("spec", "egress")): "it asks nobody",
}
_OF_FETCH: Mapping[tuple[str, ...], str] = {
    ("spec", "egress"): "it asks the hub: names and the web, but for the addresses of a cloud's credentials",
}


def render(plan: Plan, cluster: ClusterPlan, place: Place, *, bare: bool = False) -> Bundle:
    """One file for `kubectl apply -f`; each object says why it is as it is."""
    values = values_of(plan, image_digest=place.image_digest)
    found = objects(values, release=cluster.release, namespace=cluster.namespace)
    reasons = {} if bare else reasons_of(plan, cluster)
    documents = [_document(one, reasons, bare=bare) for one in found]
    opened = head(plan, kubectl(cluster, "apply", "--server-side", "-f", FILE))
    readme = environment().get_template("kubernetes/README.txt.j2").render(facts(plan, cluster, values, place))
    return Bundle(files={FILE: opened + "---\n".join(documents), README: readme}, executable=frozenset())


def manifests(values: Mapping[str, Any], *, release: str, namespace: str = "") -> str:
    """The objects of any values of the chart, without reasons."""
    found = objects(values, release=release, namespace=namespace)
    return "---\n".join(_document(one, {}, bare=True) for one in found)


def _document(one: Mapping[str, Any], reasons: Mapping[str, str], *, bare: bool) -> str:
    kind = str(one["kind"])
    fetches = one["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "fetch"

    def why(path: tuple[str, ...]) -> str:
        if bare:
            return ""
        if kind == "NetworkPolicy" and fetches:
            return _OF_FETCH.get(path, "")
        return _ALWAYS.get((kind, path)) or reasons.get(_PLANNED.get((kind, path), ""), "")

    return dump(one, why)
