"""Containers that cannot be made: a Secret or key that is missing, a user that is forbidden."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.mend import patch
from selfhost.doctor.cluster.pod import containers, going
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, cut, label, name, namespace, rows, text

_SECRET: Final = re.compile(
    r"(?P<kind>secret|configmap) \"(?P<name>[^\"]+)\" not found|"
    r"couldn't find key (?P<key>\S+) in (?P<where>Secret|ConfigMap) (?P<path>\S+)",
    re.IGNORECASE,
)


@cluster_rule("KX314", title="a Secret or ConfigMap that the pod needs is missing, or has not the key",
              source="https://kubernetes.io/docs/concepts/configuration/secret/")  # fmt: skip
def no_secret(cluster: Cluster, pod: Object) -> Iterator[Said]:
    said = [one.waits_for for one in containers(pod) if one.waiting == "CreateContainerConfigError"]
    started = any(one.running for one in containers(pod) if not one.init)
    said += [
        event.message for event in cluster.events(pod) if event.reason in ("FailedMount", "Failed") and not started
    ]
    match = next((found for one in said if (found := _SECRET.search(one))), None)
    if match is None or going(pod):
        return
    kind = (match["kind"] or match["where"]).lower()
    called = match["name"] or match["path"].rpartition("/")[2]
    key = match["key"] or ""
    at_hand = [name(one) for one in cluster.of("Secret" if kind == "secret" else "ConfigMap", namespace(pod))]
    shown = "Secret" if kind == "secret" else "ConfigMap"
    yield Seen(
        title=f"{label(pod)} needs the key {key} of {shown} {called}, which has no such key"
        if key
        else f"{label(pod)} needs the {shown} {called}, which is not in namespace {namespace(pod)}",
        evidence=cut(next(one for one in said if _SECRET.search(one)))
        + (f"; {shown}s here: {', '.join(at_hand)}" if at_hand else ""),
        why="Layer: kubelet. The API server takes a pod whatever it refers to; the kubelet starts no container "
        "without it." + (" Tokens are kept under HF_TOKEN here and under token elsewhere." if key else ""),
        fix=(
            (
                f"see which keys it has:\n{cluster.in_(pod)} describe {kind} {called}"
                if key
                else f"make it:\n{cluster.in_(pod)} create "
                + (
                    f"secret generic {called} --from-literal={_key(pod, called)}=VALUE"
                    if kind == "secret"
                    else f"configmap {called} --from-file=FILE"
                )
            ),
            "or let it be missing, where the model is public: optional: true",
        ),
    )


def _key(pod: Object, secret: str) -> str:
    for one in containers(pod):
        for variable in rows(one.spec, "env"):
            if text(variable, "valueFrom", "secretKeyRef", "name") == secret:
                return text(variable, "valueFrom", "secretKeyRef", "key")
    return "KEY"


@cluster_rule("KX315", title="the image would run as root, and the pod forbids it",
              source="https://kubernetes.io/docs/tasks/configure-pod-container/security-context/")  # fmt: skip
def as_root(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one in containers(pod):
        if re.search(r"runAsNonRoot and image|cannot verify user is non-root|will run as root", one.waits_for):
            yield Seen(
                title=f"{label(pod)}: {one.image} would run as root, and runAsNonRoot forbids it",
                evidence=f"{one.waiting}: {cut(one.waits_for)}",
                why="Layer: kubelet. The image names no user, or one by name, which cannot be told from root.",
                fix=(
                    patch(cluster, pod, "name a user by number that the image has (vllm/vllm-openai ships vllm=2000)",
                          {"securityContext": {"runAsUser": 2000, "runAsGroup": 2000, "fsGroup": 2000}}),
                ),
            )  # fmt: skip
            return
