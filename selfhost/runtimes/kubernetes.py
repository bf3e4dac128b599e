"""Engines in a Kubernetes cluster: objects that its own controllers keep, looked at by its API."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.core.processes import ProcessRef
from selfhost.core.system import System
from selfhost.runtimes.base import ClusterLaunch, EngineState, Launchable, Log, RuntimeInfo, Seen, StopReceipt
from selfhost.runtimes.cluster import record as records
from selfhost.runtimes.cluster.answers import ApiError, NoAnswer, NotServed
from selfhost.runtimes.cluster.apply import Applied, delete
from selfhost.runtimes.cluster.client import Cluster
from selfhost.runtimes.cluster.forward import Forward
from selfhost.runtimes.cluster.launch import Launch
from selfhost.runtimes.cluster.pod_log import PodLog
from selfhost.runtimes.cluster.record import Record
from selfhost.runtimes.cluster.refusals import naming
from selfhost.runtimes.cluster.release import (
    Claim,
    claims_of,
    deployment_of,
    pods_left,
    pods_of,
    remove,
    replica_sets_of,
)
from selfhost.runtimes.cluster.removal import helm_uninstall, stays
from selfhost.runtimes.cluster.sight import engine_pod, pod_state, seen_of
from selfhost.runtimes.file_log import FileLog
from selfhost.runtimes.ports import Holder, port_holder

NAME = "kubernetes"
LEAVE_S = 30.0
"""Beyond a pod's own grace, for the kubelet to say that it is gone."""


class KubernetesRuntime:
    """Satisfies base.Runtime. A deployment without a record here is none: no cluster is asked unbidden."""

    def __init__(self, paths: Paths, system: System) -> None:
        self._paths = paths
        self._system = system
        self._forwards: dict[str, Forward] = {}
        self.applied: tuple[Applied, ...] = ()
        """What the last `start` did, object by object; empty where Helm did it."""

    @property
    def info(self) -> RuntimeInfo:
        return RuntimeInfo(
            name=NAME, isolates=True, restarts=True, survives_reboot=True, sees_processes=False, cluster=True
        )

    def start(self, launch: Launchable) -> Seen:
        if launch.cluster is None:
            raise ValueError("a launch without objects")
        record = self._record_of(launch, launch.cluster)
        records.write(self._paths, launch.name, record)
        cluster = self._cluster(record)
        made = Launch(cluster=cluster, system=self._system, record=record)
        self.applied = made.start(launch)
        return self.inspect(launch.name)

    def inspect(self, name: str) -> Seen:
        record = records.read(self._paths, name)
        if record is None:
            return Seen(state=EngineState.GONE, reason="nothing of it was ever applied from here")
        try:
            cluster = self._cluster(record)
            deployment = deployment_of(cluster, record)
            if deployment is None:
                return seen_of(None, (), (), port=record.port)
            pods = pods_of(cluster, record)
            sets = replica_sets_of(cluster, record)
        except (ApiError, NoAnswer, NotServed) as error:
            return Seen(state=EngineState.UNKNOWN, reason=_why(record, error), port=record.port)
        except EnvironmentMissing as error:
            return Seen(state=EngineState.UNKNOWN, reason=error.what, port=record.port)
        return seen_of(deployment, pods, sets, port=record.port)

    def log(self, name: str) -> Log:
        record = records.read(self._paths, name)
        if record is None:
            return FileLog(self._paths.deployment(name) / "logs" / "engine.log")
        cluster = self._cluster(record)
        return PodLog(cluster=cluster, release=record.deployment, pod=lambda: self._pod(cluster, record, running=False))

    def stop(self, name: str, *, grace_s: float) -> StopReceipt:
        """Remove the Deployment alone: everything else stays for the next start."""
        record = records.read(self._paths, name)
        began = time.monotonic()
        self._close(name)
        if record is None:
            return StopReceipt(ended=(), seconds=0.0, forced=False, listener_free=True)
        cluster = self._cluster(record)
        with naming(cluster, f"stop {name}"):
            found = deployment_of(cluster, record)
            removed: tuple[str, ...] = ()
            if found is not None and delete(cluster, found):
                removed = (f"Deployment {record.deployment}",)
                self._proved(cluster, record, within_s=grace_s + _grace(found) + LEAVE_S)
        return self._receipt(record, began, removed)

    def remove(self, name: str) -> StopReceipt:
        """Everything but volumes, by the way it came; then prove that no pod is left."""
        record = records.read(self._paths, name)
        began = time.monotonic()
        self._close(name)
        if record is None:
            return StopReceipt(ended=(), seconds=0.0, forced=False, listener_free=True)
        cluster = self._cluster(record)
        with naming(cluster, f"remove {name}"):
            found = deployment_of(cluster, record)
            removed = helm_uninstall(cluster, self._system, record) if record.how == "helm" else ()
            removed = (*removed, *remove(cluster, name))
            self._proved(cluster, record, within_s=(_grace(found) if found is not None else 0.0) + LEAVE_S)
        return self._receipt(record, began, removed)

    def processes(self, name: str) -> tuple[ProcessRef, ...]:  # noqa: ARG002
        return ()

    def memory_bytes(self, name: str) -> int | None:  # noqa: ARG002
        return None

    def port_holder(self, name: str, port: int) -> Holder | None:
        mine = self._forwards.get(name)
        return None if mine is not None and mine.port == port else port_holder(port)

    def keep(self, name: str, policy: str) -> bool:  # noqa: ARG002
        """A Deployment always is."""
        return True

    def forward(self, name: str, *, port: int = 0) -> Forward:
        """A port of this machine that leads to the engine, for as long as this object lives. Raises OSError."""
        if name in self._forwards:
            return self._forwards[name]
        record = self.record(name)
        cluster = self._cluster(record)
        self._forwards[name] = made = Forward(
            cluster, pod=lambda: self._pod(cluster, record, running=True), pod_port=record.pod_port, port=port
        )
        return made

    def move(self, name: str, port: int) -> None:
        """From now on the forward is at this port."""
        records.write(self._paths, name, replace(self.record(name), port=port))

    def record(self, name: str) -> Record:
        """Raises EnvironmentMissing where nothing was applied from here."""
        record = records.read(self._paths, name)
        if record is None:
            raise EnvironmentMissing(f"nothing of {name} was applied from here", id="RT006")
        return record

    def cluster(self, name: str) -> Cluster:
        return self._cluster(self.record(name))

    def volumes(self, name: str) -> tuple[Claim, ...]:
        """The volumes with weights that this deployment made."""
        record = records.read(self._paths, name)
        if record is None:
            return ()
        cluster = self._cluster(record)
        with naming(cluster, "list volumes"):
            return claims_of(cluster, name, release=record.release)

    def remove_claim(self, name: str, claim: Claim) -> str:
        """Remove it; returns why it stays, or nothing when it is gone."""
        return stays(self.cluster(name), claim)

    def _cluster(self, record: Record) -> Cluster:
        env = {**self._system.env, **({"KUBECONFIG": record.files} if record.files else {})}
        key = (record.context, record.namespace, record.files)
        if key not in _KNOWN:
            context = record.context if record.files else ""
            _KNOWN[key] = Cluster.connect(context, record.namespace, env=env)
        return _KNOWN[key]

    def _record_of(self, launch: Launchable, wish: ClusterLaunch) -> Record:
        cluster = Cluster.connect(wish.context, wish.namespace, env=self._system.env)
        return Record(
            context=cluster.context,
            namespace=cluster.namespace,
            release=wish.release,
            deployment=wish.release,
            port=launch.port or 0,
            pod_port=wish.pod_port,
            how=wish.how,
            files=_whole(cluster.files),
        )

    def _pod(self, cluster: Cluster, record: Record, *, running: bool) -> str:
        pod = engine_pod(pods_of(cluster, record), replica_sets_of(cluster, record))
        if pod is None:
            return ""
        state = pod_state(pod)
        return state.name if state.runs or not running else ""

    def _proved(self, cluster: Cluster, record: Record, *, within_s: float) -> None:
        left = pods_left(cluster, record, within_s=within_s)
        if left:
            names = [str(one["metadata"]["name"]) for one in left]
            raise EnvironmentMissing(
                f"{len(left)} pod{'s' if len(left) > 1 else ''} of {record.release} did not go: {', '.join(names[:3])}",
                why="Their node does not say that they ended: it may be down, or a process hangs in its driver.",
                evidence=_where(left),
                fix=(
                    f"see why:\n{cluster.kubectl} describe pod {names[0]} --namespace {cluster.namespace}",
                    (
                        "do not force it while its node lives: the kubelet would miscount cards. Then again:\n"
                        f"selfhost down {record.release}"
                    ),
                ),
                id="RT150",
            )

    def _receipt(self, record: Record, began: float, removed: tuple[str, ...]) -> StopReceipt:
        return StopReceipt(
            ended=(),
            seconds=time.monotonic() - began,
            forced=False,
            listener_free=not record.port or port_holder(record.port) is None,
            removed=tuple(f"{what} in {record.namespace}" for what in removed),
        )

    def _close(self, name: str) -> None:
        held = self._forwards.pop(name, None)
        if held is not None:
            held.close()


_KNOWN: dict[tuple[str, str, str], Cluster] = {}
"""Connections of this process: making one runs the credential plugin."""


def _why(record: Record, error: ApiError | NoAnswer | NotServed) -> str:
    said = error.why if isinstance(error, NoAnswer) else str(error)
    return f"the cluster of `{record.context}` gives no answer ({said})"


def _grace(deployment: Mapping[str, Any]) -> float:
    pod = (((deployment.get("spec") or {}).get("template") or {}).get("spec")) or {}
    return float(pod.get("terminationGracePeriodSeconds") or 30)


def _where(pods: tuple[dict[str, Any], ...]) -> str:
    return "\n".join(f"{one['metadata']['name']} on {(one.get('spec') or {}).get('nodeName') or '?'}" for one in pods)


def _whole(files: str) -> str:
    """A later command may run in another folder."""
    return ":".join(str(Path(path).absolute()) for path in files.split(":") if path)
