"""Values that a field does not take: words that it does not know, numbers out of range, two of what may be one."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.drain import whole
from selfhost.visibility.manifests.fields import nearest
from selfhost.visibility.manifests.typed import Typed, typed
from selfhost.visibility.objects import Manifests, label, place
from selfhost.visibility.rule import Found, manifest_rule

REFERENCE = "https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/"
PORTS = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#ports"
RESTART = "https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-template"
SECRET = "https://kubernetes.io/docs/concepts/configuration/secret/#creating-a-secret"  # noqa: S105 - a page
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
WORDS: Final = {
    ("core.v1.Container", "imagePullPolicy"): ("Always", "IfNotPresent", "Never"),
    ("core.v1.Container", "terminationMessagePolicy"): ("File", "FallbackToLogsOnError"),
    ("core.v1.PodSpec", "restartPolicy"): ("Always", "OnFailure", "Never"),
    ("core.v1.PodSpec", "dnsPolicy"): ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    ("core.v1.PodSpec", "preemptionPolicy"): ("Never", "PreemptLowerPriority"),
    ("core.v1.SeccompProfile", "type"): ("RuntimeDefault", "Unconfined", "Localhost"),
    ("core.v1.PodSecurityContext", "fsGroupChangePolicy"): ("OnRootMismatch", "Always"),
    ("core.v1.VolumeMount", "mountPropagation"): ("None", "HostToContainer", "Bidirectional"),
    ("core.v1.EmptyDirVolumeSource", "medium"): ("", "Memory", "HugePages", "HugePages-2Mi", "HugePages-1Gi"),
    ("core.v1.TopologySpreadConstraint", "whenUnsatisfiable"): ("DoNotSchedule", "ScheduleAnyway"),
    ("core.v1.PersistentVolumeClaimSpec", "volumeMode"): ("Filesystem", "Block"),
    ("core.v1.ServiceSpec", "type"): ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
    ("core.v1.ServiceSpec", "sessionAffinity"): ("None", "ClientIP"),
    ("core.v1.ServicePort", "protocol"): _PROTOCOLS,
    ("core.v1.ContainerPort", "protocol"): _PROTOCOLS,
    ("core.v1.HTTPGetAction", "scheme"): ("HTTP", "HTTPS"),
    ("apps.v1.DeploymentStrategy", "type"): ("RollingUpdate", "Recreate"),
    ("apps.v1.StatefulSetUpdateStrategy", "type"): ("RollingUpdate", "OnDelete"),
    ("apps.v1.DaemonSetUpdateStrategy", "type"): ("RollingUpdate", "OnDelete"),
    ("apps.v1.StatefulSetSpec", "podManagementPolicy"): ("OrderedReady", "Parallel"),
    ("batch.v1.CronJobSpec", "concurrencyPolicy"): ("Allow", "Forbid", "Replace"),
    ("policy.v1.PodDisruptionBudgetSpec", "unhealthyPodEvictionPolicy"): ("IfHealthyBudget", "AlwaysAllow"),
    ("networking.v1.HTTPIngressPath", "pathType"): ("Exact", "Prefix", "ImplementationSpecific"),
    ("resource.v1.ExactDeviceRequest", "allocationMode"): ("ExactCount", "All"),
    ("resource.v1beta2.ExactDeviceRequest", "allocationMode"): ("ExactCount", "All"),
    ("resource.v1.DeviceSubRequest", "allocationMode"): ("ExactCount", "All"),
}
LISTED: Final = {
    ("core.v1.PersistentVolumeClaimSpec", "accessModes"): (
        "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod",
    ),
    ("networking.v1.NetworkPolicySpec", "policyTypes"): ("Ingress", "Egress"),
}  # fmt: skip
_COUNTS: Final = (
    "replicas", "minReadySeconds", "progressDeadlineSeconds", "revisionHistoryLimit", "terminationGracePeriodSeconds",
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold", "activeDeadlineSeconds",
    "backoffLimit", "parallelism", "completions", "ttlSecondsAfterFinished",
)  # fmt: skip
_PORT_FIELDS: Final = ("containerPort", "port", "hostPort", "targetPort", "nodePort")
_ONE_OF: Final = {
    "core.v1.Probe": ("exec", "httpGet", "tcpSocket", "grpc"),
    "core.v1.LifecycleHandler": ("exec", "httpGet", "tcpSocket", "sleep"),
    "core.v1.EnvVarSource": ("configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef"),
}
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9](?:[a-z0-9]|-(?!-))*[a-z0-9]\Z|[a-z]\Z")
_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")
_HELD: Final = ("$", "{{", "<", "__")
_FOR_EVER: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def _open(text: str) -> bool:
    return any(held in text for held in _HELD)


def _all(manifests: Manifests) -> Iterator[tuple[Tree, Typed]]:
    for thing in manifests.objects:
        for one in typed(thing):
            yield thing, one


@manifest_rule("KX465", Severity.ERROR, source=REFERENCE)
def word_that_is_not_taken(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing, one in _all(manifests):
        for key, value in one.tree.items():
            known = WORDS.get((one.type, key)) or LISTED.get((one.type, key))
            if known is None:
                continue
            for tree in value.elements() if value.list is not None else (value,):
                if not tree.is_scalar or tree.is_null or tree.text in known or _open(tree.text):
                    continue
                near = nearest(tree.text, known)
                yield Found(
                    title=f"{key} of {label(thing)} does not take {tree.text}"
                    + (f": did you mean {near}?" if near else ""),
                    place=place(thing, tree),
                    evidence=f"{one.path}.{key}: {tree.text}",
                    why="The API server refuses it: `Unsupported value`. It takes "
                    f"{', '.join(filter(None, known))}, in these very letters.",
                    fix=(f"write one of them:\n{key}: {near or next(filter(None, known))}",),
                )


@manifest_rule("KX466", Severity.ERROR, source=REFERENCE)
def number_out_of_range(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing, one in _all(manifests):
        for key, value in one.tree.items():
            number = whole(value)
            if number is None:
                continue
            is_port = key in _PORT_FIELDS and one.type.startswith(("core.v1.", "networking.v1."))
            if key in _COUNTS and number < 0:
                said = "must be greater than or equal to 0"
            elif is_port and not (1 <= number <= 65535 or (number == 0 and key in ("hostPort", "nodePort"))):
                said = "must be between 1 and 65535"
            else:
                continue
            yield Found(
                title=f"{key} of {label(thing)} may not be {number}",
                place=place(thing, value),
                evidence=f"{one.path}.{key}: {number}",
                why=f"The API server refuses it: `{said}`.",
                fix=(f"write a number in range:\n{key}: {8000 if is_port else 1}",),
            )
    for scaler in manifests.kind("HorizontalPodAutoscaler", "ScaledObject"):
        pairs = (("minReplicas", "maxReplicas"), ("minReplicaCount", "maxReplicaCount"))
        for least, most in pairs:
            low, high = whole(scaler.at("spec", least)), whole(scaler.at("spec", most))
            if low is not None and high is not None and low > high:
                yield Found(
                    title=f"{label(scaler)} has a larger minimum than maximum",
                    place=place(scaler, scaler.at("spec", least)),
                    evidence=f"{least} {low} · {most} {high}",
                    why="The API server, or the operator, refuses it: `must be greater than or equal to minReplicas`.",
                    fix=(f"raise {most}, or lower {least}",),
                )


@manifest_rule("KX467", Severity.ERROR, source=RESTART)
def restart_policy_of_another_kind(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        value, text = pod.spec.at("restartPolicy"), pod.spec.said("restartPolicy")
        job = pod.kind in ("Job", "CronJob")
        patch = pod.spec.at("containers") is None or not pod.whole
        if _open(text) or patch or not (job or pod.kind in _FOR_EVER):
            continue
        if (job and text in ("OnFailure", "Never")) or (not job and text in ("", "Always")):
            continue
        known = "OnFailure, Never" if job else "Always"
        yield Found(
            title=f"{label(pod.holder)} may not restart its containers by {text or 'Always, the default'}",
            place=pod.place(value),
            evidence=f"restartPolicy: {text or 'not said'}",
            why=f"The API server refuses it: `restartPolicy: Unsupported value … supported values: {known}`.",
            fix=(f"write:\nrestartPolicy: {'Never' if job else 'Always'}",),
        )


@manifest_rule("KX468", Severity.ERROR, source=REFERENCE)
def one_of_several(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing, one in _all(manifests):
        names = _ONE_OF.get(one.type)
        said = [key for key, value in one.tree.items() if not value.is_null and (names is None or key in names)]
        if one.type == "core.v1.Volume":
            said = [key for key in said if key != "name"]
        elif names is None:
            continue
        if len(said) == 1 or (not said and one.type == "core.v1.Volume"):
            continue  # a volume without a source is an emptyDir
        if not said and (not one.tree.map or one.type == "core.v1.EnvVarSource"):
            continue
        yield Found(
            title=f"{one.path} of {label(thing)} says "
            f"{'nothing of what it needs' if not said else 'two things of which it takes one'}",
            place=place(thing, one.tree),
            evidence=f"{one.path}: {', '.join(said) or 'none of ' + ', '.join(names or ())}",
            why="The API server refuses it: "
            + ("`may not specify more than one`." if said else "`must specify a handler type`."),
            fix=(f"keep one of {', '.join(said)}" if said else f"add one of {', '.join((names or ())[:3])}",),
        )


@manifest_rule("KX469", Severity.ERROR, source=PORTS)
def name_of_a_part(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing, one in _all(manifests):
        name = one.tree.at("name")
        if one.type == "core.v1.ServiceSpec":
            listed = one.tree.at("ports")
            unnamed = [port for port in (listed.elements() if listed is not None else ()) if not port.said("name")]
            if unnamed and listed is not None and len(listed.list or ()) > 1:
                yield _unnamed(thing, unnamed[0])
            continue
        if name is None or not name.text or _open(name.text):
            continue
        if one.type == "core.v1.ContainerPort" and not (_PORT_NAME.match(name.text) and len(name.text) <= 15):
            said, most = "a port's name has at most 15 letters of a-z, 0-9 and -, and a letter among them", 15
        elif one.type in ("core.v1.Container", "core.v1.Volume") and not _DNS_LABEL.match(name.text):
            said, most = "it has at most 63 letters of a-z, 0-9 and -", 63
        else:
            continue
        better = re.sub(r"[^a-z0-9]+", "-", name.text.lower())[:most].strip("-") or "http"
        yield Found(
            title=f"{one.type.rpartition('.')[2]} {name.text} of {label(thing)} has a name that is not allowed",
            place=place(thing, name),
            evidence=f"{one.path}.name: {name.text}",
            why=f"The API server refuses it: {said}.",
            fix=(
                (
                    "name it otherwise, wherever it is referred to as well:\nname: "
                    f"{better if not better.isdigit() else 'http'}"
                ),
            ),
        )


def _unnamed(thing: Tree, port: Tree) -> Found:
    return Found(
        title=f"{label(thing)} has several ports, and one without a name",
        place=place(thing, port),
        evidence=f"port {port.said('port')} has no name",
        why="The API server refuses it: `ports[…].name: Required value`.",
        fix=("name each of them:\n- name: http\n  port: 8000",),
    )


@manifest_rule("KX470", Severity.ERROR, source=SECRET)
def secret_is_not_encoded(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for thing in manifests.kind("Secret"):
        data = thing.at("data")
        for key, value in data.items() if data is not None else ():
            if not value.is_scalar or _open(value.text) or _is_base64(value.text):
                continue
            yield Found(
                title=f"{key} of {label(thing)} is not in base64",
                place=place(thing, value),
                evidence=f"data.{key} (its value is not shown)",
                why="What stands below data is decoded: the API server answers `illegal base64 data`.",
                fix=(
                    f"write it as it is below stringData, and keep it out of version control:\nstringData:\n  {key}: …",
                ),
            )


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
