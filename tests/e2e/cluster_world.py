"""A cluster of one node on loopback: a small API server, a kubelet that runs the toy engine, and a hub."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfhost.runtimes.ports import free_port
from tests.e2e.world import REASONER, ROOT, World
from tests.fakes.hub import FakeHub
from tests.fakes.kube_api import KubeApi
from tests.fakes.kubelet import Kubelet, Run

REPO = "acme/tiny-reasoner"
Object = dict[str, Any]


@dataclass
class ClusterWorld:
    """`behave` may be replaced: it says what a container becomes."""

    world: World
    api: KubeApi
    kubelet: Kubelet
    hub: FakeHub
    port: int
    behave: Callable[[Object, Object], Run] | None = None

    def engine(self, container: Object, *more: str) -> list[str]:
        """The toy engine with the arguments of the container, where the kubelet looks for it."""
        words = list(container.get("args") or ())
        for flag, value in (("--port", str(self.port)), ("--host", "127.0.0.1")):
            words[words.index(flag) + 1] = value
        return [sys.executable, str(ROOT / "tests" / "fakes" / "engine.py"), *words, *more]

    def run_of(self, pod: Object, container: Object) -> Run:
        if self.behave is not None:
            return self.behave(pod, container)
        return self.engine(container) if container["name"] == "engine" else None

    def words(self, *more: str) -> tuple[str, ...]:
        return (
            "up", REPO, "--name", self.world.name, "--runtime", "kubernetes", "--device", "cpu", "--yes",
            "--progress", "plain", *more,
        )  # fmt: skip

    def up(self, *more: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return self.world.run(*self.words(*more), timeout_s=timeout_s)


@contextmanager
def cluster_world(folder: Path) -> Iterator[ClusterWorld]:
    shutil.copytree(REASONER, folder / "hub" / REPO)
    (folder / "kubelet").mkdir()
    (folder / "home").mkdir()
    config = folder / "kubeconfig"
    with FakeHub(folder / "hub") as hub, KubeApi() as api:
        config.write_text(api.kubeconfig())
        world = World(
            base=folder / "home",
            wheels=None,
            extra_env={
                "KUBECONFIG": str(config), "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1",
                "PATH": "/usr/bin:/bin",
            },
        )  # fmt: skip
        port = free_port(19000 + os.getpid() % 900 * 10)  # two workers of a test run choose at once
        with Kubelet(folder / "kubelet", server=api.url, engine_port=port) as kubelet:
            made = ClusterWorld(world=world, api=api, kubelet=kubelet, hub=hub, port=port)
            kubelet.run = made.run_of
            api.kubelet = kubelet
            yield made
