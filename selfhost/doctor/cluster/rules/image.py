"""Images that do not come: wrong name, no credentials, a limit, no space, no way to the registry."""

import re
from collections.abc import Iterator
from typing import Final

from selfhost.doctor.cluster.mend import patch, patch_container
from selfhost.doctor.cluster.pod import Container, containers, ended, going
from selfhost.doctor.cluster.rule import Said, Seen, cluster_rule
from selfhost.doctor.cluster.state import Cluster
from selfhost.doctor.cluster.tree import Object, cut, label, name, number, rows, text, words
from selfhost.shapes.finding import RunOn, Severity
from selfhost.shapes.units import format_bytes

IMAGES: Final = "https://kubernetes.io/docs/concepts/containers/images/"
_PULLS: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable",
                 "ImageInspectError", "SignatureValidationFailed")  # fmt: skip
_SAID_IN: Final = ("Failed", "FailedPull", "InspectFailed", "ErrImageNeverPull")
# The first that matches: a rate limit also says `unauthorized`, a full disk also names the image.
_KINDS: Final = (
    ("KX108", r"InvalidImageName|couldn't parse image|invalid reference format"),
    ("KX109", r"ErrImageNeverPull|is not present with pull policy of Never"),
    ("KX104", r"no space left on device|disk quota exceeded|FreeDiskSpaceFailed"),
    ("KX103", r"toomanyrequests|429 Too Many Requests|rate limit"),
    ("KX106", r"no match for platform|no matching manifest for|does not match the specified platform"),
    ("KX105", (r"no such host|i/o timeout|connection refused|connection reset|x509|TLS handshake|"
              r"context deadline exceeded|"
              r"server gave HTTP response|network is unreachable|proxyconnect|\bEOF\b|\b50[234] ")),
    ("KX101", (r"manifest unknown|manifest for \S+ not found|: not found|NotFound|name unknown|"
              r"repository name not known")),
    ("KX102", (r"[Uu]nauthorized|\b40[13]\b|denied|insufficient_scope|"
              r"no basic auth credentials|authentication required")),
)  # fmt: skip
_DENIED_OR_ABSENT: Final = re.compile(r"pull access denied|repository does not exist|insufficient_scope")


def pull_fault(cluster: Cluster, pod: Object) -> tuple[str, Container, str] | None:
    """Which kind, of which container, in whose words: the state's own, or an event's where it only says Back-off."""
    return cluster.once(("pull", label(pod)), lambda: _pull_fault(cluster, pod))


def _pull_fault(cluster: Cluster, pod: Object) -> tuple[str, Container, str] | None:
    if ended(pod) or going(pod):
        return None
    for one in containers(pod):
        if one.waiting not in _PULLS:
            continue
        said = f"{one.waiting}: {one.waits_for}"
        if kind := _kind(said):
            return kind, one, said
        for event in cluster.events(pod):
            mine = event.reason in _SAID_IN and one.image in event.message
            if mine and (kind := _kind(event.message)):
                return kind, one, event.message
        return "KX111", one, said
    return None


def _kind(said: str) -> str:
    return next((kind for kind, pattern in _KINDS if re.search(pattern, said)), "")


def pulls_of(cluster: Cluster, pod: Object, kind: str) -> Iterator[tuple[Container, str]]:
    found = pull_fault(cluster, pod)
    if found is not None and found[0] == kind:
        yield found[1], cut(found[2], 400)


def registry(image: str) -> str:
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"


@cluster_rule("KX101", title="the registry has no such image or tag", source=IMAGES)
def no_image(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, said in pulls_of(cluster, pod, "KX101"):
        yield Seen(
            title=f"{label(pod)}: {registry(one.image)} has no image {one.image}",
            evidence=said,
            why="Layer: registry. It was asked and has no such tag or digest, or not for this kind of processor.",
            fix=(
                f"see which tags there are; without any cluster:\ndocker manifest inspect {one.image}",
                patch_container(
                    cluster, pod, one.name, "then name one that is there", {"image": f"{_bare(one.image)}:TAG"}
                ),
            ),
        )


def _bare(image: str) -> str:
    whole = image.partition("@")[0]
    path, colon, tag = whole.rpartition(":")
    return path if colon and "/" not in tag else whole


@cluster_rule(
    "KX102", title="the registry does not take the credentials, or none were given", source=IMAGES, after=("KX112",)
)
def not_let_in(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, said in pulls_of(cluster, pod, "KX102"):
        secrets = [text(each, "name") for each in rows(pod, "spec", "imagePullSecrets")]
        either = _DENIED_OR_ABSENT.search(said) is not None
        host = registry(one.image)
        yield Seen(
            title=f"{label(pod)}: {host} does not give {one.image} to this pod"
            + (" (private, or it does not exist)" if either else ""),
            evidence=f"{said}; imagePullSecrets: {', '.join(secrets) or 'none'}",
            why="Layer: registry. "
            + ("It answers the same for a private image and for one that does not exist. " if either else "")
            + (
                f"The Secret {', '.join(secrets)} is for another registry, expired, or without the right to pull."
                if secrets
                else "The pod brings no credentials: a login on the node or on your machine does not count."
            ),
            fix=(
                (
                    "make a pull secret with an account that may read it:\n"
                    f"{cluster.in_(pod)} create secret docker-registry regcred --docker-server={host} "
                    "--docker-username=USER --docker-password=TOKEN"
                ),
                patch(cluster, pod, "and name it in the pod", {"imagePullSecrets": [{"name": "regcred"}]}),
            ),
        )


@cluster_rule("KX112", title="a pull secret that the pod names is not there", source=IMAGES)
def no_secret(cluster: Cluster, pod: Object) -> Iterator[Said]:
    found = pull_fault(cluster, pod)
    for event in cluster.events(pod):
        if event.reason == "FailedToRetrieveImagePullSecret" and found is not None:
            match = re.search(r"\(([^)]*)\)", event.message)
            names = match[1] if match else "it names"
            yield Seen(
                title=f"{label(pod)} names the pull secret {names}, which is not in its namespace",
                evidence=f"{cut(event.message, 200)}; {cut(found[2], 200)}",
                why="Layer: kubelet. It pulls without credentials then, and the registry refuses. Secrets are per "
                "namespace.",
                fix=(
                    (
                        "make it there:\n"
                        f"{cluster.in_(pod)} create secret docker-registry {names.split(', ')[0]} "
                        f"--docker-server={registry(found[1].image)} --docker-username=USER --docker-password=TOKEN"
                    ),
                ),
            )
            return


@cluster_rule(
    "KX103", title="the registry's rate limit is reached", source="https://docs.docker.com/docker-hub/usage/pulls/"
)
def limited(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, said in pulls_of(cluster, pod, "KX103"):
        yield Seen(
            title=f"{label(pod)}: {registry(one.image)} gives no more images to this address for now",
            evidence=said,
            why="Layer: registry. Pulls without an account are counted by address, and a cluster behind one address "
            "shares it.",
            fix=(
                (
                    "wait, it is tried again by itself; or pull with an account:\n"
                    f"{cluster.in_(pod)} create secret docker-registry regcred "
                    "--docker-server=https://index.docker.io/v1/ --docker-username=USER --docker-password=TOKEN"
                ),
                patch(cluster, pod, "and name it in the pod", {"imagePullSecrets": [{"name": "regcred"}]}),
                "or name a mirror of your own in the image",
            ),
        )


@cluster_rule(
    "KX104", title="the node has no space for the image", source="https://github.com/akash-network/support/issues/138"
)
def no_space(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, said in pulls_of(cluster, pod, "KX104"):
        node = cluster.node_of(pod)
        sizes = [
            number(each, "sizeBytes") for each in rows(node, "status", "images") if one.image in words(each, "names")
        ]
        disk = text(node, "status", "allocatable", "ephemeral-storage") if node is not None else ""
        size = f"; the image is {format_bytes(sizes[0])} unpacked" if sizes else ""
        yield Seen(
            title=f"{label(pod)}: node {text(pod, 'spec', 'nodeName')} has no space for {one.image}",
            evidence=f"{said}{size}{f'; allocatable ephemeral-storage {disk}' if disk else ''}",
            why="Layer: node. An image is unpacked beside what was pulled: it needs about twice its size free (image "
            "bytes x2 > imagefs free). Engine images are 8 to 10 GB packed and over 20 GB unpacked.",
            fix=(
                "on the node, remove images that nothing uses:\nsudo crictl rmi --prune",
                "or give the disk of the images more room, or take a smaller image",
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )


@cluster_rule("KX105", title="the node does not reach the registry", source=IMAGES)
def not_reached(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, said in pulls_of(cluster, pod, "KX105"):
        tls = "x509" in said or "HTTP response to HTTPS" in said
        yield Seen(
            title=f"{label(pod)}: node {text(pod, 'spec', 'nodeName')} does not reach {registry(one.image)}"
            + (", whose certificate it does not trust" if "x509" in said else ""),
            evidence=said,
            why="Layer: node's network. The pull is the kubelet's and its container engine's: proxies and "
            "certificates of the pod or of your machine do not count.",
            fix=(
                (
                    "give the node's container engine the registry's CA: "
                    f"/etc/containerd/certs.d/{registry(one.image)}/hosts.toml\nsudo systemctl restart containerd"
                    if tls
                    else f"on the node, try it:\ncurl -sS -o /dev/null -w '%{{http_code}}\\n' "
                    f"https://{registry(one.image)}/v2/"
                ),
                "or name a registry that the node reaches in the image",
            ),
            run_on=RunOn.CLUSTER_ADMIN,
        )


@cluster_rule("KX111", title="the image cannot be pulled", source=IMAGES)
def other(cluster: Cluster, pod: Object) -> Iterator[Said]:
    for one, said in pulls_of(cluster, pod, "KX111"):
        said_why = "Back-off" not in said
        yield Seen(
            title=f"{label(pod)}: {one.image} cannot be pulled",
            evidence=said,
            why="Layer: kubelet. "
            + (
                "These words are in no table of ours."
                if said_why
                else "The reason stood in an event, and events are kept for an hour: it is unknown now."
            ),
            fix=(
                (
                    f"it is tried every few minutes; see the reason of the next try:\n{cluster.in_(pod)} describe pod "
                    f"{name(pod)}"
                ),
            ),
        )


@cluster_rule("KX107", title="the image is being pulled", source=IMAGES, severity=Severity.INFO)
def pulling(cluster: Cluster, pod: Object) -> Iterator[Said]:
    """Normal, and for engines it takes long."""
    if ended(pod) or pull_fault(cluster, pod) is not None:
        return
    for one in containers(pod):
        if one.waiting not in ("ContainerCreating", "PodInitializing"):
            continue
        mine = [event for event in cluster.events(pod) if event.reason in ("Pulling", "Pulled")]
        mine = [event for event in mine if one.image in event.message or event.container == one.name]
        if mine and mine[0].reason == "Pulling":
            yield Seen(
                title=f"{label(pod)} still pulls {one.image}",
                evidence=f"Pulling, at {mine[0].when or 'an unknown time'}; no Pulled since",
                why="Normal: engine images are 8 to 10 GB, which takes 10 to 20 minutes on a slow link. Probes wait "
                "for it; progressDeadlineSeconds and `helm --wait` do not.",
                fix=(
                    (
                        f"watch it:\n{cluster.in_(pod)} get events --watch --field-selector "
                        f"involvedObject.name={name(pod)}"
                    ),
                ),
            )
            return
