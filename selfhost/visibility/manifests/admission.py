"""Pod Security: what a namespace that enforces `baseline` or `restricted` turns away, each field by its name."""

from collections.abc import Iterator, Mapping
from typing import Final

from selfhost.core.tree import Tree
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host
from selfhost.visibility import cluster
from selfhost.visibility.manifests.selectors import labels_in
from selfhost.visibility.objects import Manifests, Pod, label
from selfhost.visibility.rule import Found, manifest_rule

STANDARDS = "https://kubernetes.io/docs/concepts/security/pod-security-standards/"
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_BASELINE_CAPABILITIES: Final = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
_VOLUMES: Final = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
    "image",
)
_RESTRICTED_FIX: Final = (
    "securityContext:            # of the pod\n  runAsNonRoot: true\n  runAsUser: 2000\n  seccompProfile: {type: "
    "RuntimeDefault}\n"
    "# and of each container:\nsecurityContext:\n  allowPrivilegeEscalation: false\n  capabilities: {drop: [ALL]}"
)


def _level(manifests: Manifests, host: Host | None, pod: Pod) -> tuple[str, str]:
    """(level, namespace) that is enforced where the pod goes; empty where that is not known."""
    spaces: dict[str, Mapping[str, str]] = {
        str(cluster.at(one, "metadata", "name")): cluster.texts(cluster.at(one, "metadata", "labels"))
        for one in cluster.objects(host, "Namespace")
    }
    in_text = {
        one.said("metadata", "name"): labels_in(one.at("metadata", "labels")) for one in manifests.kind("Namespace")
    }
    spaces |= in_text
    name = pod.namespace
    if not name and len(in_text) == 1:
        name = next(iter(in_text))
    return spaces.get(name, {}).get(ENFORCE, ""), name


def _pairs(tree: Tree, *keys: str) -> Tree | None:
    found = tree.at("securityContext", *keys)
    return found if found is not None and not found.is_null else None


def _containers(pod: Pod) -> Iterator[Tree]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        listed = pod.spec.at(key)
        yield from listed.elements() if listed is not None else ()


def baseline(pod: Pod) -> Iterator[str]:
    """What `baseline` refuses, as its own words name it."""
    spec, containers = pod.spec, list(_containers(pod))
    shared = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.yes(key)]
    privileged = [one.said("name") for one in containers if one.yes("securityContext", "privileged")]
    added = [each for one in containers for each in _capabilities(one, "add") if each not in _BASELINE_CAPABILITIES]
    opened = [port.said("hostPort") for one in containers for port in _listed(one, "ports")]
    ports = [] if spec.yes("hostNetwork") else [port for port in opened if port not in ("", "0")]
    procs = [one.said("name") for one in containers if _said(one, "procMount") not in ("", "Default")]
    paths = [each.said("name") for each in _listed(spec, "volumes") if each.at("hostPath") is not None]
    unconfined = any(_said(tree, "seccompProfile", "type") == "Unconfined" for tree in (spec, *containers))
    for what, found in (
        ("host namespaces", shared),
        ("privileged (securityContext.privileged=true)", privileged),
        ("non-default capabilities", added),
        ("hostPort", ports),
        ("procMount", procs),
        ("hostPath volumes", paths),
        ("seccompProfile", ["type Unconfined"] if unconfined else []),
    ):
        if found:
            yield f"{what} ({', '.join(dict.fromkeys(found))})"


def restricted(pod: Pod) -> Iterator[str]:
    """What `restricted` asks for besides."""
    containers = list(_containers(pod))
    lacking = [
        one.said("name")
        for one in containers
        if _pairs(one, "allowPrivilegeEscalation") is None or one.yes("securityContext", "allowPrivilegeEscalation")
    ]
    if lacking:
        yield f"allowPrivilegeEscalation != false ({', '.join(lacking)})"
    undropped = [one.said("name") for one in containers if "ALL" not in _capabilities(one, "drop")]
    if undropped:
        yield f'unrestricted capabilities (capabilities.drop lacks "ALL": {", ".join(undropped)})'
    extra = sorted(
        {
            each
            for one in containers
            for each in _capabilities(one, "add")
            if each != "NET_BIND_SERVICE" and each in _BASELINE_CAPABILITIES
        }
    )
    if extra:
        yield f"unrestricted capabilities (added: {', '.join(extra)})"
    kinds = [
        each.said("name")
        for each in _listed(pod.spec, "volumes")
        if not any(each.at(kind) is not None for kind in _VOLUMES)
        and each.at("hostPath") is None
        and len(each.map or {}) > 1
    ]
    if kinds:
        yield f"restricted volume types ({', '.join(kinds)})"
    rooted = [one.said("name") for one in containers if not _non_root(pod.spec, one)]
    if rooted:
        yield f"runAsNonRoot != true ({', '.join(rooted)})"
    zero = [tree.said("name") or "pod" for tree in (pod.spec, *containers) if _said(tree, "runAsUser") == "0"]
    if zero:
        yield f"runAsUser=0 ({', '.join(zero)})"
    profile = _said(pod.spec, "seccompProfile", "type")
    without = [one.said("name") for one in containers if not (_said(one, "seccompProfile", "type") or profile)]
    if without:
        yield f"seccompProfile (type is not RuntimeDefault or Localhost: {', '.join(without)})"


def _listed(tree: Tree, key: str) -> Iterator[Tree]:
    found = tree.at(key)
    yield from found.elements() if found is not None else ()


def _said(tree: Tree, *keys: str) -> str:
    found = _pairs(tree, *keys)
    return found.text if found is not None else ""


def _plain(name: str) -> str:
    return name.upper().removeprefix("CAP_")


def _capabilities(container: Tree, key: str) -> list[str]:
    listed = container.at("securityContext", "capabilities", key)
    return [_plain(each.text) for each in listed.elements()] if listed is not None else []


def _non_root(spec: Tree, container: Tree) -> bool:
    own = _pairs(container, "runAsNonRoot")
    return own.yes() if own is not None else spec.yes("securityContext", "runAsNonRoot")


@manifest_rule("KX458", Severity.ERROR, source=STANDARDS)
def namespace_refuses_the_pod(manifests: Manifests, host: Host | None) -> Iterator[Found]:
    for pod in manifests.pods:
        level, namespace = _level(manifests, host, pod)
        if level not in ("baseline", "restricted") or not pod.whole:
            continue
        faults = [*baseline(pod), *(restricted(pod) if level == "restricted" else ())]
        if not faults:
            continue
        sure = bool(pod.namespace)
        basic = bool(list(baseline(pod)))
        yield Found(
            title=f'{label(pod.holder)} violates Pod Security "{level}" of namespace {namespace}',
            place=pod.place(pod.spec.at("securityContext")),
            evidence=f"{len(faults)} violation{'s' if len(faults) > 1 else ''}: {'; '.join(faults)}",
            why="The pod is never created. Of a Deployment only the ReplicaSet says so, by the event "
            "FailedCreate; apply prints a warning at most.",
            fix=(
                *((("give /dev/shm by an emptyDir of medium Memory instead of hostIPC; drop hostNetwork, hostPath and "
                   "privileged, which an engine with a device plugin does not need"),) if basic else ()),
                *((f"say what the namespace asks for:\n{_RESTRICTED_FIX}",) if level == "restricted" else ()),
                *((("ranks of several AMD cards that need SYS_PTRACE and an unconfined profile run in a namespace that "
                   "enforces privileged only"),) if any("SYS_PTRACE" in fault for fault in faults) else ()),
            ),
            severity=None if sure else Severity.WARNING,
        )  # fmt: skip
