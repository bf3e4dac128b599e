"""Variables of a container that the API refuses, or that its own service links overwrite."""

from collections.abc import Iterator
from typing import Final

from selfhost.core.redact import has_token
from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.objects import Container, Manifests, Pod, label
from selfhost.visibility.rule import Found, manifest_rule
from selfhost.visibility.rule import place as spot

ENV = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables"
PLAIN = "https://kubernetes.io/docs/concepts/configuration/secret/#using-secrets-as-environment-variables"
LINKS = "https://docs.vllm.ai/en/latest/configuration/env_vars/"
COSMETIC = "https://github.com/defilantech/LLMKube/issues/358"
TOKEN = "https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#opt-out-of-api-credential-automounting"  # noqa: S105 - a page
_READ: Final = {"vllm": "vllm", "sglang": "sglang"}
"""The Service's name whose links look like the engine's own variables."""


def entries(container: Container) -> Iterator[Tree]:
    listed = container.tree.at("env")
    yield from listed.elements() if listed is not None else ()


@manifest_rule("KX454", Severity.ERROR, source=ENV)
def value_from_two_places(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.containers:
        for entry in entries(container):
            value, other = entry.at("value"), entry.at("valueFrom")
            if value is None or other is None or other.is_null or not value.text:
                continue
            yield Found(
                title=f"{entry.said('name')} of {container.wrapped.label} has a value and a place to take it from",
                place=container.place(other),
                evidence=f"{entry.said('name')}: value and {', '.join(key for key, _ in other.items()) or 'valueFrom'}",
                why="The API server refuses the pod: `valueFrom: may not be specified when value is not empty`.",
                fix=("keep one of the two; a secret belongs into valueFrom",),
            )


@manifest_rule("KX464", Severity.WARNING, source=ENV)
def variable_said_twice(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.containers:
        seen: dict[str, Tree] = {}
        for entry in entries(container):
            name = entry.said("name")
            if name and name in seen and seen[name].data != entry.data:
                yield Found(
                    title=f"{container.wrapped.label} sets {name} twice, to different values",
                    place=container.place(entry),
                    evidence=f"{name}: line {seen[name].line} and line {entry.line}",
                    why="The last one counts. Server-side apply, which Helm 4 uses, refuses the object: "
                    "`duplicate entries for key`.",
                    fix=("remove one of them",),
                )
            seen[name] = entry


@manifest_rule("KX471", Severity.WARNING, source=PLAIN)
def secret_in_plain_sight(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    """The value itself is never repeated."""
    del host
    for _, container in manifests.containers:
        for entry in entries(container):
            value = entry.at("value")
            if value is not None and value.is_scalar and has_token(value.text):
                name = entry.said("name")
                yield Found(
                    title=f"{name} of {container.wrapped.label} holds a token in plain sight",
                    place=container.place(entry),
                    evidence=f"{name}: ***",
                    why="Everybody who may read pods reads it, and so does everybody who reads this file.",
                    fix=(
                        (
                            "take the token back where it was made, and put a new one into a Secret:\n"
                            f"- name: {name}\n  valueFrom:\n    secretKeyRef:\n      name: NAME\n      key: KEY"
                        ),
                    ),
                )


def _same_namespace(pod: Pod, service: Tree) -> bool:
    return pod.namespace == service.said("metadata", "namespace")


def _linked(manifests: Manifests) -> Iterator[tuple[Pod, Container, Tree, str]]:
    for pod, container in manifests.engines:
        links = pod.spec.at("enableServiceLinks")
        if links is not None and not links.yes():
            continue
        for service in manifests.kind("Service"):
            name = service.said("metadata", "name").lower()
            if (
                service.said("spec", "clusterIP") != "None"
                and _same_namespace(pod, service)
                and service.said("apiVersion") == "v1"
            ):
                yield pod, container, service, name


@manifest_rule("KX650", Severity.ERROR, source=LINKS)
def service_overwrites_a_variable(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container, service, name in _linked(manifests):
        if container.engine == "vllm" and name == "vllm" and "VLLM_PORT" not in container.workload.env:
            yield Found(
                title=f"the Service vllm sets VLLM_PORT in {container.wrapped.label} to what is no port",
                place=container.place(),
                evidence=f"{label(service)} · enableServiceLinks is not false in {label(pod.holder)}",
                why="Kubernetes puts variables for each Service of the namespace into each pod: "
                "VLLM_PORT=tcp://…. vLLM reads that name: `ValueError: VLLM_PORT 'tcp://…' appears to be a URI`.",
                fix=("switch the links off in the pod's spec:\nenableServiceLinks: false",),
            )
    for _, container in manifests.engines:
        value = container.workload.env.get("VLLM_PORT", "")
        if "://" in value:
            yield Found(
                title=f"VLLM_PORT of {container.wrapped.label} is an address, not a port",
                place=spot(container.wrapped, "env.VLLM_PORT"),
                evidence=f"VLLM_PORT={value}",
                why="vLLM reads it as a number, for its own use inside: `ValueError: VLLM_PORT … appears to be a URI`.",
                fix=("remove it; the port of the API is --port",),
            )


@manifest_rule("KX651", Severity.INFO, source=COSMETIC)
def service_looks_like_a_setting(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container, service, name in _linked(manifests):
        prefix = _READ.get(container.engine, "")
        if prefix and name.startswith(f"{prefix}-"):
            yield Found(
                title=f"{label(service)} fills the environment of {container.wrapped.label} with look-alikes",
                place=container.place(),
                evidence=f"{name.upper().replace('-', '_')}_SERVICE_HOST and others · enableServiceLinks is not "
                f"false in {label(pod.holder)}",
                why="Links of a Service look like the engine's own settings: `Unknown vLLM environment variable "
                "detected`. These are warnings only, not the cause of a failure.",
                fix=("switch the links off in the pod's spec:\nenableServiceLinks: false",),
            )
            return


@manifest_rule("KX463", Severity.INFO, source=TOKEN)
def token_that_nobody_needs(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        if not any(pod.engines) or not pod.whole or pod.kind in ("InferenceService", "ServingRuntime", "RayCluster"):
            continue
        account = manifests.named("ServiceAccount", pod.spec.said("serviceAccountName") or "default", pod.namespace)
        said = pod.spec.at("automountServiceAccountToken")
        if said is None and account is not None:
            said = account.at("automountServiceAccountToken")
        if said is None:
            yield Found(
                title=f"{label(pod.holder)} carries a token for the cluster's API that no engine needs",
                place=pod.place(),
                evidence="automountServiceAccountToken is not said, so it is mounted",
                why="Whoever gets into the engine, by a model's own code for one, finds a key to the cluster there.",
                fix=("leave it out, in the pod's spec:\nautomountServiceAccountToken: false",),
            )
