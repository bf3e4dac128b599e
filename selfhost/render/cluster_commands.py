"""Commands about one release of a cluster, with its context and namespace in them."""

import shlex

from selfhost.render.manifests.chart import NAME
from selfhost.shapes.cluster import ClusterPlan

MANIFESTS = "manifests.yaml"
_SPARE_S = 1200
_TEST_S = 600
_OF_FETCH = ("fetching", "fetch_again", "fetch_first", "helm_fetch_first", "fetch_wait", "remove_weights")
"""Empty for weights that somebody else put there."""


def helm_command(cluster: ClusterPlan, *more: str) -> str:
    """With a time that is longer than a rollout may take: Helm must not give up on a model that is loading."""
    words = ["helm", "upgrade", "--install", cluster.release, f"./{NAME}", "-f", "values.yaml", *more]
    return shlex.join([*words, *_of_helm(cluster), "--cleanup-on-fail", "--wait", "--timeout", _rollout(cluster)])


def kubectl(cluster: ClusterPlan, *words: str) -> str:
    context = ["--context", cluster.context] if cluster.context else []
    return shlex.join(["kubectl", *context, *_namespace(cluster), *words])


def commands_of(cluster: ClusterPlan, *, full: str, claim: str, secret: str) -> dict[str, str]:
    """By what they do. `full`: the name of the objects; `secret`: empty where somebody else made it."""
    mine = f"app.kubernetes.io/instance={cluster.release}"
    fetch = f"{mine},app.kubernetes.io/component=fetch"
    return {
        "apply": kubectl(cluster, "apply", "--server-side", "-f", MANIFESTS),
        "wait": kubectl(cluster, "rollout", "status", f"deployment/{full}", "--timeout", _rollout(cluster)),
        "helm": helm_command(cluster),
        "helm_own": helm_command(cluster, "-f", "overrides/values.yaml"),
        "helm_taking": helm_command(cluster, "--take-ownership"),
        "helm_test": shlex.join(
            ["helm", "test", cluster.release, "--logs", "--timeout", f"{_TEST_S}s", *_of_helm(cluster)]
        ),
        "helm_remove": shlex.join(["helm", "uninstall", cluster.release, *_of_helm(cluster)]),
        "see": kubectl(cluster, "get", "pods,pvc,jobs", "-l", mine),
        "log": kubectl(cluster, "logs", "-f", f"deployment/{full}"),
        "remove": kubectl(cluster, "delete", "all,networkpolicy,serviceaccount,ingress,pdb", "-l", mine),
        "remove_secret": kubectl(cluster, "delete", "secret", secret) if secret else "",
        **(dict.fromkeys(_OF_FETCH, "") if cluster.weights_claim else _fetching(cluster, fetch, claim)),
    }


def _fetching(cluster: ClusterPlan, fetch: str, claim: str) -> dict[str, str]:
    one = ["helm", "template", cluster.release, f"./{NAME}", "-f", "values.yaml", "-s", "templates/fetch.yaml"]
    helm = shlex.join([*one, *_of_helm(cluster)])
    time = f"--timeout={cluster.fetch_budget_s + _SPARE_S}s"
    return {
        "fetching": kubectl(cluster, "logs", "-f", "-l", fetch),
        "fetch_again": kubectl(cluster, "delete", "job", "-l", fetch),
        "fetch_first": kubectl(cluster, "apply", "--server-side", "-f", MANIFESTS, "-l", fetch),
        "helm_fetch_first": f"{helm} | {kubectl(cluster, 'apply', '--server-side', '-f', '-')}",
        "fetch_wait": kubectl(cluster, "wait", "--for=condition=complete", time, "job", "-l", fetch),
        "remove_weights": kubectl(cluster, "delete", "pvc", claim),
    }


def _rollout(cluster: ClusterPlan) -> str:
    fetch = 0 if cluster.weights_claim else cluster.fetch_budget_s
    return f"{cluster.startup_budget_s + fetch + _SPARE_S}s"


def _of_helm(cluster: ClusterPlan) -> list[str]:
    return [*(["--kube-context", cluster.context] if cluster.context else []), *_namespace(cluster)]


def _namespace(cluster: ClusterPlan) -> list[str]:
    return ["--namespace", cluster.namespace] if cluster.namespace else []
