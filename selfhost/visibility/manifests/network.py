"""From a request to the engine: Service, pool, port, the address that it listens on."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility.manifests.claims import elements
from selfhost.visibility.manifests.groups import is_worker
from selfhost.visibility.manifests.probes import engine_port, ports, probes
from selfhost.visibility.manifests.selectors import labels_in
from selfhost.visibility.objects import Manifests, Pod, label, place
from selfhost.visibility.rule import Found, manifest_rule

SERVICE = "https://kubernetes.io/docs/concepts/services-networking/service/"
POOL = "https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/2562"
NIC = "https://github.com/aws-samples/aws-do-eks/pull/49"
LISTEN = "https://docs.sglang.io/advanced_features/server_arguments.html"
HOST_NETWORK = "https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline"
PREFIX = "https://github.com/vllm-project/production-stack/issues/957"
_LOCAL: Final = ("127.0.0.1", "localhost", "::1")
_HOSTNAME = re.compile(r"\bhostname\s+-[iI]\b|gethostbyname\(\s*(?:socket\.)?gethostname")


_BY_CONTROLLERS: Final = (
    "leaderworkerset.sigs.k8s.io/", "statefulset.kubernetes.io/", "apps.kubernetes.io/", "batch.kubernetes.io/",
    "serving.", "ray.io/", "job-name", "controller-uid",
)  # fmt: skip
_LWS: Final = "leaderworkerset.sigs.k8s.io/"


def _added(pod: Pod) -> dict[str, str]:
    """Labels that the controller puts on the pods that clients are to reach."""
    worker = pod.holder.at("spec", "leaderWorkerTemplate", "workerTemplate", "spec")
    led = pod.holder.at("spec", "leaderWorkerTemplate", "leaderTemplate", "spec") is not None
    if pod.kind != "LeaderWorkerSet" or (led and pod.spec is worker):
        return {}
    return {f"{_LWS}name": pod.name, f"{_LWS}worker-index": "0"}


def selected(manifests: Manifests, wanted: dict[str, str], namespace: str) -> list[Pod]:
    found = []
    for pod in manifests.pods:
        own = {**pod.labels(), **_added(pod)}
        same = namespace == pod.namespace or not namespace or not pod.namespace
        if wanted and same and all(own.get(key) == value for key, value in wanted.items()):
            found.append(pod)
    return found


def _services(manifests: Manifests) -> Iterator[tuple[Tree, dict[str, str]]]:
    for service in manifests.kind("Service"):
        if service.said("apiVersion") == "v1":
            yield service, labels_in(service.at("spec", "selector"))


@manifest_rule("KX652", Severity.WARNING, source=SERVICE)
def service_misses_the_port(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for service, wanted in _services(manifests):
        found = [pod for pod in selected(manifests, wanted, service.said("metadata", "namespace")) if pod.whole]
        own = [pair for pod in found for each in pod.containers for pair in ports(each.tree)]
        engines = {engine_port(each) for pod in found for each in pod.engines} - {""}
        for port in elements(service, "spec", "ports"):
            target = port.at("targetPort") or port.at("port")
            text = target.text if target is not None else ""
            if target is None or not found or "$" in text or "{{" in text:
                continue
            names, numbers = {name for name, _ in own}, {number for _, number in own}
            if not text.isdecimal() and text not in names:
                said, sure = f"no container port is called {text}", True
            elif text.isdecimal() and engines and text not in engines | numbers and len(found[0].containers) == 1:
                said, sure = f"the engine listens on {', '.join(sorted(engines))}", False
            else:
                continue
            right = next(iter(sorted(engines)), "") or next(iter(numbers), "8000")
            yield Found(
                title=f"{label(service)} sends to port {text}, where nothing listens",
                place=place(service, target),
                evidence=f"targetPort {text} · {said} in {label(found[0].holder)}",
                why="The Service has no endpoint for it, or one that refuses: `connection refused` for every client."
                if sure
                else "Nothing listens there: `connection refused` for every client.",
                fix=(f"send it where the engine listens:\ntargetPort: {right}",),
            )


@manifest_rule("KX653", Severity.WARNING, source=SERVICE)
def service_selects_nothing(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    """Only where a pod among the texts is nearly selected: the pods may well stand elsewhere."""
    del host
    for service, wanted in _services(manifests):
        namespace = service.said("metadata", "namespace")
        if not wanted or selected(manifests, wanted, namespace):
            continue
        for pod in manifests.pods:
            own = pod.labels()
            wrong = [key for key, value in wanted.items() if own.get(key) != value]
            near = len(wrong) == 1 and (len(wanted) > 1 or _alike(wanted[wrong[0]], own.get(wrong[0], "")))
            if not near or wrong[0].startswith(_BY_CONTROLLERS) or pod.namespace not in ("", namespace):
                continue
            yield Found(
                title=f"{label(service)} selects no pod",
                place=place(service, service.at("spec", "selector")),
                evidence=f"{wrong[0]}: {wanted[wrong[0]]} · {label(pod.holder)} has "
                f"{own.get(wrong[0]) or 'no such label'}",
                why="A Service without endpoints answers nobody: `connection refused`, or 503 at the gateway.",
                fix=(
                    "select by the labels of the pod:\nselector:\n"
                    + "\n".join(f"  {key}: {own.get(key, value)}" for key, value in wanted.items()),
                ),
            )
            break


def _alike(one: str, other: str) -> bool:
    return bool(other) and (one in other or other in one or one.lower() == other.lower())


@manifest_rule("KX654", Severity.WARNING, source=POOL)
def pool_misses_the_port(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pool in manifests.kind("InferencePool"):
        chosen = pool.at("spec", "selector", "matchLabels") or pool.at("spec", "selector")
        found = [pod for pod in selected(manifests, labels_in(chosen), pool.said("metadata", "namespace")) if pod.whole]
        targets = [one.at("number") or one for one in elements(pool, "spec", "targetPorts")]
        single = pool.at("spec", "targetPortNumber")
        targets += [single] if single is not None else []
        numbers = [tree.text for tree in targets if tree.is_scalar]
        for pod in found:
            own = sorted({number for each in pod.containers for _, number in ports(each.tree) if number})
            listens = sorted({engine_port(each) for each in pod.engines} - {""})
            if not numbers or set(numbers) & set(own) or (not own and set(numbers) & set(listens)):
                continue
            if not own and not listens:
                continue
            yield Found(
                title=f"{label(pool)} sends to a port that {label(pod.holder)} does not have",
                place=place(pool, targets[0]),
                evidence=f"pool port not among containerPorts: {', '.join(numbers)} · "
                + (f"containerPorts {', '.join(own)}" if own else f"the engine listens on {', '.join(listens)}"),
                why="The endpoint picker drops endpoints with other ports without a word: the pod is Running and "
                "Ready, and never gets a request.",
                fix=(f"let both name one port:\ntargetPorts:\n  - number: {(own or listens)[0]}",),
            )


@manifest_rule("KX656", Severity.WARNING, source=NIC)
def address_of_the_wrong_card(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod, container in manifests.containers:
        words = " ".join(container.wrapped.argv)
        found = _HOSTNAME.search(words)
        if found is None or not pod.spec.yes("hostNetwork"):
            continue
        yield Found(
            title=f"{container.wrapped.label} takes its address from the host's name, on the host's network",
            place=container.place(container.tree.at("command") or container.tree.at("args")),
            evidence=f"hostNetwork: true · {found[0]}",
            why="On the host's network this is empty, or the address of another network card: the worker's "
            "address is not in the leader's network, and the leader waits for ever (`nodes seen: 1`).",
            fix=(
                (
                    "take the pod's own address:\nenv:\n  - name: VLLM_HOST_IP\n    valueFrom:\n      fieldRef:\n"
                    "        fieldPath: status.podIP"
                ),
                "and do without hostNetwork where no fabric asks for it",
            ),
        )


@manifest_rule("KX657", Severity.INFO, source=HOST_NETWORK)
def host_namespaces_for_an_engine(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for pod in manifests.pods:
        said = [key for key in ("hostNetwork", "hostIPC", "hostPID") if pod.spec.yes(key)]
        if not said or not any(pod.engines):
            continue
        yield Found(
            title=f"{label(pod.holder)} shares {' and '.join(said)} with its node",
            place=pod.place(pod.spec.at(said[0])),
            evidence=", ".join(f"{key}: true" for key in said),
            why="Copied from samples, it clashes with ports of the node and is refused by every namespace that "
            "enforces `baseline` or `restricted`. Ranks exchange data through /dev/shm, which an emptyDir gives too.",
            fix=(("remove it, and mount shared memory:\nvolumes:\n  - name: shm\n    emptyDir:\n      medium: Memory\n"
                 "      sizeLimit: 8Gi"),),
        )  # fmt: skip


@manifest_rule("KX659", Severity.ERROR, source=LISTEN)
def listens_to_itself_only(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    """Unless told otherwise vLLM listens on all addresses, SGLang on its loopback."""
    del host
    for pod, container in manifests.engines:
        named = container.flag("--host")
        unsaid = container.engine == "sglang" and named is None and container.whole and bool(container.workload.argv)
        if (
            is_worker(pod, container)
            or container.flag("--config")
            or not (unsaid or named in _LOCAL)
            or pod.spec.yes("hostNetwork")
        ):
            continue
        asked = [
            key
            for key, probe in probes(container)
            if probe.at("httpGet") is not None and probe.said("httpGet", "host") not in _LOCAL
        ]
        served = [
            label(service)
            for service, wanted in _services(manifests)
            if pod in selected(manifests, wanted, service.said("metadata", "namespace"))
        ]
        if not asked and (not served or len(pod.containers) > 1):
            continue
        yield Found(
            title=f"{container.wrapped.label} listens on its own loopback only",
            place=container.place(container.tree.at("args") or container.tree.at("command")),
            evidence=f"--host {named or 'is not said, and sglang takes 127.0.0.1'} · asked by "
            f"{', '.join((*asked, *served))}",
            why="Probes and Services come to the pod's address, where nothing listens: `connection refused`.",
            fix=("listen on all of the pod's addresses:\n--host=0.0.0.0",),
        )


@manifest_rule("KX660", Severity.INFO, source=PREFIX)
def one_replica_gets_everything(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    del host
    for _, container in manifests.containers:
        if container.flag("--routing-logic") == "prefixaware":
            yield Found(
                title=f"{container.wrapped.label} routes by prefix, without a look at the load",
                place=container.place(container.tree.at("args") or container.tree.at("command")),
                evidence="--routing-logic prefixaware",
                why="Where users share one long system prompt, one replica gets everything. When everything fits "
                "in every replica affinity is useless: each has the prefix after its first request.",
                fix=("spread by load:\n--routing-logic=roundrobin",),
            )
