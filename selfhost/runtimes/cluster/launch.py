"""Start: Secrets first, then the objects, by Helm or by server-side apply; what refuses is named."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfhost.core.errors import Busy, EnvironmentMissing, InputError, SelfhostError
from selfhost.core.files import write_atomic
from selfhost.core.secret import read_key
from selfhost.core.system import System
from selfhost.core.yaml import documents
from selfhost.models.hub_token import from_variables
from selfhost.runtimes.base import ClusterLaunch, Launchable
from selfhost.runtimes.cluster import secrets
from selfhost.runtimes.cluster.answers import ApiError, NoAnswer, NotServed
from selfhost.runtimes.cluster.apply import Applied, Conflict, apply_object, in_order, prune
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.helm import Helm, HelmFailed, find
from selfhost.runtimes.cluster.owners import owner_of_replicas, shown
from selfhost.runtimes.cluster.record import Record
from selfhost.runtimes.cluster.refusals import naming, worded
from selfhost.runtimes.cluster.release import KINDS, deployment_of, served
from selfhost.runtimes.cluster.removal import chart_of

MANIFESTS = "manifests.yaml"
VALUES = ("values.yaml", "overrides/values.yaml")
_CONFLICT = re.compile(r'conflict with "(?P<who>[^"]+)"[^:]*: (?P<field>\.\S+)')
_PENDING_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One start. Satisfied by what the folder of the launch holds."""

    cluster: Cluster
    system: System
    record: Record

    def start(self, launch: Launchable) -> tuple[Applied, ...]:
        wish = launch.cluster
        if wish is None:
            raise ValueError("a launch without objects")
        with naming(self.cluster, "make a Secret"):
            self._secrets(launch, wish)
        if wish.how == "helm":
            self._helm(wish)
            return ()
        return self._apply(launch.name, wish)

    def _secrets(self, launch: Launchable, wish: ClusterLaunch) -> None:
        """The cluster's key counts: another person's `up` of this deployment may have made it."""
        if wish.key_secret and launch.key_file:
            mine = read_key(Path(launch.key_file))
            held = secrets.ensure(
                self.cluster, wish.key_secret, secrets.KEY_FIELD, mine, name=launch.name, release=wish.release
            )
            if held != mine:
                write_atomic(Path(launch.key_file), held + "\n")
        if wish.key_of and launch.key_file:
            write_atomic(Path(launch.key_file), secrets.held_key(self.cluster, wish.key_of) + "\n")
        token = from_variables(self.system.env)
        if wish.hub_secret and token is not None:
            secrets.ensure(
                self.cluster, wish.hub_secret, secrets.TOKEN_FIELD, token.value, name=launch.name, release=wish.release
            )

    def _apply(self, name: str, wish: ClusterLaunch) -> tuple[Applied, ...]:
        objects = objects_in(wish.folder)
        done: list[Applied] = []
        for one in in_order(objects):
            try:
                done.append(apply_object(self.cluster, one, force=wish.force))
            except Conflict as conflict:
                raise _owned(self.cluster, shown(one), conflict.fields, done) from None
            except (ApiError, NoAnswer, NotServed) as error:
                raise _refused(self.cluster, one, error, done) from None
        with naming(self.cluster, "remove what the former plan had"):
            for what in prune(self.cluster, name=name, kinds=served(self.cluster, KINDS), keep=objects):
                kind, _, called = what.partition(" ")
                done.append(Applied(kind=kind, name=called, state="removed"))
        return tuple(done)

    def _helm(self, wish: ClusterLaunch) -> None:
        helm = find(self.system, context=self.record.context, files=self.cluster.files, namespace=self.record.namespace)
        if isinstance(helm, str):
            raise EnvironmentMissing(helm, why="It was there a moment ago.", id="RT144")
        values = [file for part in VALUES if (file := Path(wish.folder) / part).is_file()]
        without = self._not_ours()
        for _ in range(2):
            try:
                self._clear(helm, wish.release)
                helm.upgrade(
                    wish.release, chart_of(wish.folder), values, without=without, timeout_s=wish.deadline_s + 60
                )
            except HelmFailed as failed:
                found = _CONFLICT.search(failed.said)
                if found is not None and found["field"] == ".spec.replicas" and not without:
                    without = ("replicaCount",)
                    continue
                raise _helm_failed(self.cluster, wish.release, failed) from None
            return

    def _not_ours(self) -> tuple[str, ...]:
        with naming(self.cluster, "look at the Deployment"):
            found = deployment_of(self.cluster, self.record)
        return ("replicaCount",) if found is not None and owner_of_replicas(found) else ()

    def _clear(self, helm: Helm, release: str) -> None:
        """A helm that was killed leaves its release `pending`, and every later one refuses to begin.

        One that is at work ends within seconds, since nothing is waited for.
        """
        deadline = time.monotonic() + _PENDING_S
        while True:
            found = helm.release(release)
            if found is None or not str(found.get("status") or "").startswith("pending"):
                return
            if time.monotonic() >= deadline:
                break
            time.sleep(1.0)
        secret = f"sh.helm.release.v1.{release}.v{found.get('revision')}"
        with naming(self.cluster, "clear what a killed helm left"):
            self.cluster.request("DELETE", f"/api/v1/namespaces/{self.cluster.namespace}/secrets/{secret}")


def objects_in(folder: str) -> list[dict[str, Any]]:
    """The manifests of a bundle."""
    file = Path(folder) / MANIFESTS
    found = documents(file.read_text(encoding="utf-8"), path=str(file))
    return [dict(one.data) for one in found if isinstance(one.data, dict)]


def _so_far(done: list[Applied]) -> str:
    changed = [f"{one.kind} {one.name} {one.state}" for one in done if one.state != "unchanged"]
    return f" Until then: {', '.join(changed)}; the same command continues." if changed else " Nothing was changed."


def _owned(cluster: Cluster, what: str, fields: tuple[tuple[str, str], ...], done: list[Applied]) -> SelfhostError:
    listed = ", ".join(f"{field} by `{who}`" for field, who in fields[:4])
    return Busy(
        f"somebody else set fields of {what}: {listed}",
        why=f"Layer: field ownership of server-side apply.{_so_far(done)}",
        fix=(
            (
                "see what was set:\n"
                f"{cluster.kubectl} get {what.partition(' ')[0].lower()} {what.partition(' ')[2]} --namespace "
                f"{cluster.namespace} -o yaml --show-managed-fields"
            ),
            "take the fields over:\nselfhost up MODEL --runtime kubernetes --overwrite",
        ),
        id="RT140",
    )


def _refused(
    cluster: Cluster, one: dict[str, Any], error: ApiError | NoAnswer | NotServed, done: list[Applied]
) -> SelfhostError:
    what = shown(one)
    if isinstance(error, ApiError) and error.status == 422 and _is_immutable(error.message):
        return _immutable(cluster, what, [cause.field for cause in error.causes] or ["spec"], error.message, done)
    found = worded(error, cluster, doing=f"apply {what}")
    found.why = f"{found.why}{_so_far(done)}".strip()
    return found


def _is_immutable(message: str) -> bool:
    return "immutable" in message or "may not be specified when strategy type is 'Recreate'" in message


def _immutable(cluster: Cluster, what: str, fields: list[str], message: str, done: list[Applied]) -> SelfhostError:
    kind, _, name = what.partition(" ")
    listed = ", ".join(dict.fromkeys(fields))
    if kind == "PersistentVolumeClaim":
        fix = (
            (
                "keep the volume as it is: take its own class and size into selfhost.yaml; see them:\n"
                f"{cluster.kubectl} get pvc {name} --namespace {cluster.namespace}"
            ),
            (
                "or give it up with the weights in it, and fetch them anew:\n"
                f"{cluster.kubectl} delete pvc {name} --namespace {cluster.namespace}"
            ),
        )
    else:
        fix = (
            (
                f"remove that object; the next `up` makes it anew, and nothing is lost with it:\n"
                f"{cluster.kubectl} delete {kind.lower()} {name} --namespace {cluster.namespace}"
            ),
            "or take another name:\nselfhost up MODEL --runtime kubernetes --name OTHER",
        )
    return InputError(
        f"{what} can't be changed in place: {listed}",
        why=f"Layer: the API server; these fields are fixed when the object is made.{_so_far(done)}",
        evidence=message,
        fix=fix,
        id="RT141",
    )


def _helm_failed(cluster: Cluster, release: str, failed: HelmFailed) -> SelfhostError:
    said = failed.said[-2000:]
    owned = [(found["field"], found["who"]) for found in _CONFLICT.finditer(said)]
    if owned:
        return _owned(cluster, f"Deployment {release}", tuple(owned), [])
    if _is_immutable(said):
        kind = re.search(
            r'cannot patch "(?P<name>[^"]+)" with kind (?P<kind>\w+)|(?P<k>\w+)\.[\w.]* "(?P<n>[^"]+)" is invalid', said
        )
        what = f"{kind['kind'] or kind['k']} {kind['name'] or kind['n']}" if kind else f"Deployment {release}"
        return _immutable(cluster, what, re.findall(r"(spec\.[\w.\[\]]+): ", said)[:3] or ["spec"], said, [])
    if "invalid ownership metadata" in said or "cannot be imported into the current release" in said:
        return EnvironmentMissing(
            f"objects of the name `{release}` are in {cluster.namespace} already, and not of this Helm release",
            why="Layer: helm. It takes over nothing that it did not install.",
            evidence=said,
            fix=("take another name:\nselfhost up MODEL --runtime kubernetes --name OTHER",),
            id="RT139",
        )
    return EnvironmentMissing(
        f"helm could not install {release}",
        why="Layer: helm. What it said stands below; the release before it, if there is one, still serves.",
        evidence=said,
        fix=(
            f"see the release:\nhelm status {release} --namespace {cluster.namespace} --kube-context {cluster.context}",
            "then run the same command again",
        ),
        id="RT144",
    )
