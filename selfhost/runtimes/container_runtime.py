"""Engines in containers, whichever container engine runs them."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace

from selfhost.core import processes
from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.core.processes import ProcessRef
from selfhost.core.system import System
from selfhost.runtimes import containers, ports, selinux
from selfhost.runtimes.base import (
    STOP_GRACE_S,
    EngineState,
    Launchable,
    LocalImage,
    PortTaken,
    RuntimeInfo,
    Seen,
    StopReceipt,
)
from selfhost.runtimes.container_client import CallFailed, Client, Object
from selfhost.runtimes.container_errors import foreign, foreign_network, is_port_taken, worded
from selfhost.runtimes.container_log import ContainerLog
from selfhost.runtimes.container_processes import main_process, processes_of
from selfhost.runtimes.images import local_image, pull
from selfhost.runtimes.memory import memory_bytes
from selfhost.shapes.event import Sink
from selfhost.shapes.workload import Workload

GONE_S = 5.0
POLL_S = 0.05


class ContainerRunner:
    """Satisfies runtimes.base.ContainerRuntime. Keeps nothing on disk: containers are found by name and label."""

    def __init__(self, info: RuntimeInfo, client: Client, paths: Paths, system: System) -> None:
        self._info = info
        self._client = client
        self._paths = paths
        self._system = system

    @property
    def info(self) -> RuntimeInfo:
        return self._info

    def log(self, name: str) -> ContainerLog:
        return ContainerLog(self._client, containers.container_name(name))

    def names(self) -> tuple[str, ...]:
        """Every deployment of this state folder that has a container here, even when its own folder is lost."""
        try:
            listed = self._client.containers(containers.NAME)
        except CallFailed as failed:
            raise worded(self._client, failed) from None
        labels = (containers.labels_of(one) for one in listed)
        folder = str(self._paths.deployments)
        return tuple(
            sorted(one[containers.NAME] for one in labels if one.get(containers.FOLDER, "").startswith(folder))
        )

    def inspect(self, name: str) -> Seen:
        """An engine that does not answer gives `unknown` with the reason."""
        try:
            found = self._client.container(containers.container_name(name))
        except CallFailed as failed:
            return Seen(state=EngineState.UNKNOWN, reason=worded(self._client, failed).what)
        except EnvironmentMissing as missing:
            return Seen(state=EngineState.UNKNOWN, reason=missing.what)
        if found is None:
            return Seen(state=EngineState.GONE, reason="there is no container of it")
        if not self._is_ours(containers.labels_of(found), name):
            return Seen(
                state=EngineState.GONE, reason=f"the container {containers.container_name(name)} is somebody else's"
            )
        return self._seen(found)

    def start(self, launch: Launchable) -> Seen:
        """Start the container and return it, or the one that runs already (compare `plan_digest`).

        Raises EnvironmentMissing, and PortTaken when somebody else has the port.
        """
        if launch.workload is None:
            raise ValueError("a container is started from a workload")
        try:
            return self._start(launch, self._complete(launch, launch.workload))
        except CallFailed as failed:
            raise worded(self._client, failed, subject=launch.workload.image) from None

    def stop(self, name: str, *, grace_s: float) -> StopReceipt:
        """End the engine, remove its container, and look that nothing of it is left."""
        try:
            return self._stop(name, grace_s=grace_s)
        except CallFailed as failed:
            raise worded(self._client, failed, subject=containers.container_name(name)) from None

    def remove(self, name: str) -> StopReceipt:
        receipt = self.stop(name, grace_s=STOP_GRACE_S)
        try:
            gone = [f"network {one}" for one in self._own_networks(name) if self._removed(one)]
        except CallFailed as failed:
            raise worded(self._client, failed, subject=containers.container_name(name)) from None
        return replace(receipt, removed=(*receipt.removed, *gone))

    def processes(self, name: str) -> tuple[ProcessRef, ...]:
        try:
            found = self._own(name)
        except CallFailed as failed:
            raise worded(self._client, failed) from None
        return processes_of(found) if found is not None and self._client.local else ()

    def memory_bytes(self, name: str) -> int | None:
        return memory_bytes(self.processes(name))

    def port_holder(self, name: str, port: int) -> ports.Holder | None:
        """The container engine's own listener for our published port is no stranger."""
        holder = ports.port_holder(port) if self._client.local else None
        if holder is None:
            return None
        seen = self.inspect(name)
        return None if seen.alive and seen.port == port else holder

    def keep(self, name: str, policy: str) -> bool:
        try:
            return self._client.restart_policy(containers.container_name(name), policy)
        except CallFailed as failed:
            raise worded(self._client, failed, subject=containers.container_name(name)) from None

    def image(self, reference: str) -> LocalImage | None:
        try:
            found = self._client.image(reference)
        except CallFailed as failed:
            raise worded(self._client, failed, subject=reference) from None
        return None if found is None else local_image(found, reference)

    def pull(self, reference: str, *, sink: Sink, step: str) -> LocalImage:
        return pull(self._client, reference, sink=sink, step=step)

    def remove_volume(self, volume: str) -> str:
        try:
            labels = self._client.volume(volume)
            if labels is None:
                return ""
            if containers.NAME not in labels:
                return "it has none of selfhost's labels"
            self._client.remove_volume(volume)
        except CallFailed as failed:
            if "in use" in failed.text or "being used" in failed.text:
                return "another container has it"
            raise worded(self._client, failed, subject=volume) from None
        return ""

    def _start(self, launch: Launchable, workload: Workload) -> Seen:
        found = self._client.container(workload.name)
        if found is not None:
            self._refuse_foreign(found, launch.name)
            seen = self._seen(found)
            if seen.alive:
                return seen
            self._client.remove(workload.name)
        selinux.check(self._system, self._client, workload)
        self._ensure_network(launch.name, workload)
        for mount in workload.mounts:
            if mount.kind == "volume" and mount.source and self._client.volume(mount.source) is None:
                self._client.create_volume(mount.source, _shared(workload.labels))
        made = self._client.create(workload)
        try:
            self._client.start(made)
        except CallFailed as failed:
            self._client.remove(made)
            if is_port_taken(failed):
                raise PortTaken(
                    f"127.0.0.1:{launch.port} is taken",
                    why=f"{self._client.kind} could not publish the port of {workload.name}.",
                    evidence=failed.text.strip()[-300:],
                    fix=("let another one be chosen:\nselfhost up",),
                    id="RT005",
                ) from None
            raise
        found = self._client.container(workload.name)
        if found is None:
            raise CallFailed(f"{workload.name} was removed while it was started")
        return self._seen(found)

    def _complete(self, launch: Launchable, workload: Workload) -> Workload:
        """With the name, network and labels by which it is found again."""
        labels = {**workload.labels, **containers.labels_for(launch, self._folder(launch.name))}
        name = containers.container_name(launch.name)
        return replace(workload, name=name, network=workload.network or name, labels=labels)

    def _ensure_network(self, name: str, workload: Workload) -> None:
        """The deployment's own one is made; another one that a file names is the user's, and must be there."""
        if workload.network != containers.container_name(name):
            return
        labels = self._client.network(workload.network)
        if labels is None:
            self._client.create_network(workload.network, _kept(workload.labels))
        elif not self._is_ours(labels, name):
            raise foreign_network(self._client.kind, name)

    def _refuse_foreign(self, found: Object, name: str) -> None:
        labels = containers.labels_of(found)
        if not self._is_ours(labels, name):
            raise foreign(self._client.kind, name, labels)

    def _stop(self, name: str, *, grace_s: float) -> StopReceipt:
        began = time.monotonic()
        container = containers.container_name(name)
        found = self._own(name)
        if found is None:
            return StopReceipt(ended=(), seconds=0.0, forced=False, listener_free=True)
        seen = self._seen(found)
        before = processes_of(found) if self._client.local else ()
        self._client.stop(container, grace_s=max(0, math.ceil(grace_s)))
        after = self._client.container(container)
        forced = seen.alive and after is not None and self._seen(after).signal == 9
        self._client.remove(container)
        left = _wait_gone(before)
        return StopReceipt(
            ended=tuple(one for one in before if one not in left),
            seconds=time.monotonic() - began,
            forced=forced,
            listener_free=not (seen.alive and seen.port and self._client.local and _listens(seen.port)),
            leftovers=left,
            removed=(f"container {container}",) if self._client.container(container) is None else (),
        )

    def _own(self, name: str) -> Object | None:
        found = self._client.container(containers.container_name(name))
        return found if found is not None and self._is_ours(containers.labels_of(found), name) else None

    def _own_networks(self, name: str) -> tuple[str, ...]:
        listed = self._client.networks(f"{containers.NAME}={name}")
        return tuple(one for one in listed if self._is_ours(self._client.network(one) or {}, name))

    def _removed(self, network: str) -> bool:
        """False where another container is attached to it: then it stays."""
        try:
            self._client.remove_network(network)
        except CallFailed as failed:
            if "active endpoints" in failed.text or "in use" in failed.text or "being used" in failed.text:
                return False
            raise
        return True

    def _is_ours(self, labels: Mapping[str, str], name: str) -> bool:
        return containers.is_ours(labels, name, self._folder(name))

    def _folder(self, name: str) -> str:
        return str(self._paths.deployment(name))

    def _seen(self, found: Object) -> Seen:
        main = main_process(found) if self._client.local else None
        return containers.seen_of(
            found, pid=main.pid if main is not None else 0, start_ticks=main.start_ticks if main is not None else 0
        )


def _kept(labels: Mapping[str, str]) -> dict[str, str]:
    """Without those of one start: a network outlives it."""
    return {name: value for name, value in labels.items() if name not in (containers.INSTANCE, containers.WORKLOAD)}


def _shared(labels: Mapping[str, str]) -> dict[str, str]:
    """A volume of caches serves every deployment of its image."""
    return {name: value for name, value in _kept(labels).items() if name != containers.FOLDER}


def _wait_gone(before: tuple[ProcessRef, ...]) -> tuple[ProcessRef, ...]:
    deadline = time.monotonic() + GONE_S
    while True:
        left = tuple(one for one in before if processes.runs(one.pid, one.start_ticks))
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(POLL_S)


def _listens(port: int) -> bool:
    """Looked at for a moment: an engine's helper may close its socket just after the container."""
    deadline = time.monotonic() + 1.0
    while ports.listening(port):
        if time.monotonic() > deadline:
            return True
        time.sleep(POLL_S)
    return False
