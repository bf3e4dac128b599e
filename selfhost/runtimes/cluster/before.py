"""Before anything is applied: is it allowed, is the namespace there, and is what is there already ours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selfhost.core.errors import EnvironmentMissing, SelfhostError
from selfhost.core.system import System
from selfhost.runtimes.cluster.access import missing, needs_of
from selfhost.runtimes.cluster.answers import ApiError
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.helm import Helm, HelmFailed, find
from selfhost.runtimes.cluster.owners import NAME_LABEL, gitops, helm_release, is_ours, owner_of_replicas, shown
from selfhost.runtimes.cluster.refusals import forbidden, namespace_missing, namespace_terminating, naming

Object = dict[str, Any]
CHART = "selfhost-model"
_KEPT = "PersistentVolumeClaim"
"""What a release that is gone has left: it binds nobody to Helm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """How it will be applied, and what is to be said of it."""

    how: str
    """`helm` or `apply`."""
    why: str
    notes: tuple[str, ...] = ()
    replicas_of: str = ""
    """Who owns the number of replicas; empty for nobody but us."""
    existed: bool = False


def look(
    cluster: Cluster, system: System, *, name: str, release: str, objects: Sequence[Object], overwrite: bool = False
) -> Before:
    """Raises SelfhostError for all that would stop in the middle: permissions, the namespace, objects of others."""
    with naming(cluster, "look at what is there"):
        _namespace(cluster)
        lacking = missing(cluster, needs_of([str(one.get("kind")) for one in objects]))
        if lacking:
            raise forbidden(cluster, lacking)
        present = tuple(_present(cluster, objects))
        notes = [*_foreign(cluster, present, name=name, overwrite=overwrite)]
        helm = find(system, context=cluster.context, files=cluster.files, namespace=cluster.namespace)
        by_helm = next((found for one in present if one["kind"] != _KEPT and (found := helm_release(one))), "")
        how, why = _way(cluster, helm, by_helm, plain=any(not helm_release(one) for one in present), release=release)
    deployment = next((one for one in present if one.get("kind") == "Deployment"), None)
    owner = owner_of_replicas(deployment) if deployment is not None else ""
    if owner:
        notes.append(f"the number of replicas is set by `{owner}` and stays as it is")
    return Before(how=how, why=why, notes=tuple(notes), replicas_of=owner, existed=bool(present))


def _namespace(cluster: Cluster) -> None:
    try:
        found = cluster.get(f"/api/v1/namespaces/{cluster.namespace}")
    except ApiError as error:
        if error.status == 404:
            raise namespace_missing(cluster) from None
        if error.status == 403:  # then applying tells
            return
        raise
    if (found.get("status") or {}).get("phase") == "Terminating":
        raise namespace_terminating(cluster)


def _present(cluster: Cluster, objects: Sequence[Object]) -> Iterator[Object]:
    for one in objects:
        found = cluster.find(cluster.path_of(one))
        if found is not None:
            yield {**found, "apiVersion": one["apiVersion"], "kind": one["kind"]}


def _foreign(cluster: Cluster, present: Sequence[Object], *, name: str, overwrite: bool) -> Iterator[str]:
    """Notes on objects that a repository keeps. Raises for those of others."""
    for one in present:
        if not is_ours(one, name):
            raise _not_ours(cluster, one, name)
    kept = [(one, *gitops(one)) for one in present if gitops(one)[0]]
    if not kept:
        return
    one, who, mark = kept[0]
    if not overwrite:
        raise _by_repository(cluster, one, who, mark)
    yield f"{who} keeps {len(kept)} of these objects ({mark}) and will change them back to what its repository says"


def _not_ours(cluster: Cluster, one: Mapping[str, Any], name: str) -> SelfhostError:
    release = helm_release(one)
    of = f"of the Helm release `{release}`" if release else "of somebody else"
    kind, _, what = shown(one).partition(" ")
    return EnvironmentMissing(
        f"{kind} `{what}` in {cluster.namespace} is {of}; nothing was applied",
        why=f"It does not carry the label {NAME_LABEL}={name}, which everything of this deployment has.",
        fix=(
            f"take another name:\nselfhost up MODEL --runtime kubernetes --name {name}-2",
            f"or see what it is:\n{cluster.kubectl} get {kind.lower()} {what} --namespace {cluster.namespace} -o yaml",
        ),
        id="RT139",
    )


def _by_repository(cluster: Cluster, one: Mapping[str, Any], who: str, mark: str) -> SelfhostError:
    return EnvironmentMissing(
        f"{shown(one)} in {cluster.namespace} is kept by {who}; nothing was applied",
        why=f"It carries {mark}. What is changed here, {who} changes back within minutes.",
        fix=(
            (
                "write the files, and commit them to the repository that it reads:\n"
                "selfhost render kubernetes MODEL -o FOLDER"
            ),
            (
                "or change the cluster all the same, until it is changed back:\n"
                "selfhost up MODEL --runtime kubernetes --overwrite"
            ),
        ),
        id="RT145",
    )


def _way(cluster: Cluster, helm: Helm | str, by_helm: str, *, plain: bool, release: str) -> tuple[str, str]:
    """As it was applied before; else by Helm where it is. `plain`: something is there that Helm did not install."""
    if isinstance(helm, str):
        if by_helm:
            raise _needs_helm(helm, by_helm)
        return "apply", f"server-side apply: {helm}"
    version = ".".join(str(part) for part in helm.version)
    try:
        found = helm.release(release)
    except HelmFailed as failed:
        raise _helm_says(cluster, failed) from None
    if found is None:
        return ("apply", "server-side apply, as before") if plain else ("helm", f"helm {version}")
    if not str(found.get("chart") or "").startswith(f"{CHART}-"):
        raise EnvironmentMissing(
            f"the Helm release `{release}` in {cluster.namespace} is of another chart ({found.get('chart')})",
            why="An upgrade would put this model in its place. Nothing was applied.",
            fix=(f"take another name:\nselfhost up MODEL --runtime kubernetes --name {release}-2",),
            id="RT139",
        )
    return "helm", f"helm {version}"


def _needs_helm(why: str, release: str) -> SelfhostError:
    return EnvironmentMissing(
        f"{release} was installed by Helm, and {why}",
        why="Applied in another way, Helm's own record of the release would be false from then on.",
        fix=("install helm 3.14 or newer (https://helm.sh/docs/intro/install/), then look:\nhelm version --short",),
        id="RT144",
    )


def _helm_says(cluster: Cluster, failed: HelmFailed) -> SelfhostError:
    return EnvironmentMissing(
        "helm can't read its releases",
        why="Layer: helm. It keeps them in Secrets of the namespace.",
        evidence=failed.said[-1000:],
        fix=(f"see what it says:\nhelm list --namespace {cluster.namespace} --kube-context {cluster.context}",),
        id="RT144",
    )
