"""The contract of every runtime, for a cluster: a small API server, and a kubelet that starts the toy as a process."""

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.runtimes.base import ClusterLaunch, EngineState, Launchable
from selfhost.runtimes.kubernetes import KubernetesRuntime
from selfhost.runtimes.ports import free_port, listening
from tests.fakes.kube_api import KubeApi
from tests.fakes.kubelet import Kubelet
from tests.runtimes.conftest import until
from tests.runtimes.contract import RuntimeContract

HERE = Path(__file__).parent


@pytest.fixture
def api(tmp_path: Path) -> Iterator[KubeApi]:
    folder = tmp_path / "kubelet"
    folder.mkdir()
    with KubeApi() as api:

        def run(_: Any, container: Any) -> list[str]:
            args = container.get("args", [])
            if args[:1] == ["--http"]:
                return [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", args[1]]
            return [sys.executable, "-u", str(HERE / "toy_engine.py"), *args]

        with Kubelet(folder, server=api.url, run=run) as kubelet:
            api.kubelet = kubelet
            yield api


@pytest.fixture
def runtime(paths: Paths, api: KubeApi, tmp_path: Path) -> Iterator[KubernetesRuntime]:
    config = tmp_path / "kubeconfig"
    config.write_text(api.kubeconfig())
    made = KubernetesRuntime(paths, LocalSystem(env={"KUBECONFIG": str(config), "PATH": ""}))
    yield made
    made._close("toy")
    until(lambda: not [one for one in threading.enumerate() if "forward" in one.name])


def objects(name: str, args: tuple[str, ...], digest: str, grace_s: int = 30) -> list[dict[str, Any]]:
    mine = {"app.kubernetes.io/instance": name, "app.kubernetes.io/component": "engine"}
    meta = {
        "name": name,
        "namespace": "models",
        "labels": {**mine, "io.selfhost.name": name, "io.selfhost.digest": digest},
    }
    pod = {
        "terminationGracePeriodSeconds": grace_s,
        "containers": [{"name": "engine", "image": "toy:1", "args": list(args), "ports": [{"containerPort": 8000}]}],
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
            "spec": {
                "replicas": 1, "selector": {"matchLabels": mine},
                "template": {"metadata": {"labels": mine, "annotations": {"try": digest}}, "spec": pod},
            },
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {**meta, "name": f"{name}-weights"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "9Gi"}}},
        },
    ]  # fmt: skip


@pytest.fixture
def toy(tmp_path: Path) -> Callable[..., Launchable]:
    def make(*flags: str, name: str = "toy", **more: Any) -> Launchable:
        key = tmp_path / "key"
        key.write_text("sk-test-1234\n")
        digest = more.pop("plan_digest", "d" * 40)
        folder = tmp_path / f"bundle-{name}"
        folder.mkdir(exist_ok=True)
        given = objects(name, flags, digest, more.pop("grace_s", 30))
        (folder / "manifests.yaml").write_text("---\n".join(json.dumps(one) + "\n" for one in given))
        wish = ClusterLaunch(
            context="", namespace="", release=name, folder=str(folder), pod_port=8000, key_secret=f"{name}-api-key"
        )
        return Launchable(name=name, plan_digest=digest, key_file=str(key), cluster=wish, **more)

    return make


class TestKubernetes(RuntimeContract):
    @pytest.fixture(autouse=True)
    def started_at_once(self, runtime: KubernetesRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
        """A cluster takes its time where the contract expects an engine: each start is waited for."""
        start = KubernetesRuntime.start

        def start_and_wait(self: KubernetesRuntime, launch: Launchable) -> Any:
            start(self, launch)
            return until(lambda: (seen := self.inspect(launch.name)).state is not EngineState.STARTING and seen)

        monkeypatch.setattr(KubernetesRuntime, "start", start_and_wait)
        monkeypatch.setattr("selfhost.runtimes.cluster.pod_log.LEAST_S", 0.0)
        assert runtime.info.cluster

    def test_its_own_port_has_no_stranger_and_one_of_somebody_else_has(self, runtime, toy) -> None:
        """The port of this machine is that of the forward, and so is its own."""
        port = free_port(18100)
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))
            other.listen()
            assert runtime.port_holder("toy", port) is not None
        runtime.start(toy(port=port))
        runtime.forward("toy", port=port)
        assert listening(port)
        assert runtime.port_holder("toy", port) is None
        assert runtime.port_holder("another", port) is not None

    def test_stop_proves_that_nothing_is_left(self, runtime, toy, api: KubeApi) -> None:
        runtime.start(toy())
        until(lambda: "serves" in runtime.log("toy").last(None))
        receipt = runtime.stop("toy", grace_s=5.0)
        assert receipt.removed == ("Deployment toy in models",)
        assert api.of("Pod") == []
        assert [one["metadata"]["name"] for one in api.of("PersistentVolumeClaim")] == ["toy-weights"]
        assert runtime.inspect("toy").state is EngineState.GONE

    def test_what_does_not_listen_to_a_request_to_end_is_killed(self, runtime, toy, api: KubeApi) -> None:
        """By the kubelet, after the pod's own grace."""
        runtime.start(toy("--deaf", grace_s=1))
        until(lambda: "serves" in runtime.log("toy").last(None))
        runtime.stop("toy", grace_s=0.3)
        assert api.of("Pod") == []

    def test_remove_keeps_the_volume_and_takes_the_key(self, runtime, toy, api: KubeApi) -> None:
        runtime.start(toy())
        assert [one["metadata"]["name"] for one in api.of("Secret")] == ["toy-api-key"]
        gone = runtime.remove("toy").removed
        assert "Secret toy-api-key in models" in gone
        assert {one["kind"] for one in api.objects.values() if one["metadata"].get("namespace") == "models"} == {
            "PersistentVolumeClaim"
        }
        (claim,) = runtime.volumes("toy")
        assert (claim.name, claim.size) == ("toy-weights", "9Gi")
        assert runtime.remove_claim("toy", claim) == ""
        assert api.of("PersistentVolumeClaim") == []

    def test_what_is_asked_by_the_forward_reaches_the_engine(self, runtime, toy, api: KubeApi) -> None:
        port = free_port(18200)
        assert api.kubelet is not None
        api.kubelet.engine_port = port
        runtime.start(toy("--http", str(port)))
        until(lambda: listening(port))
        near = runtime.forward("toy").port
        with socket.create_connection(("127.0.0.1", near), timeout=10) as asked:
            asked.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert asked.recv(100)

    def test_a_forward_outlives_the_pod_that_it_led_to(self, runtime, toy, api: KubeApi) -> None:
        port = free_port(18300)
        assert api.kubelet is not None
        api.kubelet.engine_port = port
        runtime.start(toy("--http", str(port)))
        until(lambda: listening(port))
        near = runtime.forward("toy").port
        first = runtime.inspect("toy").container
        api.remove(f"/api/v1/namespaces/models/pods/{first}", {})
        until(lambda: runtime.inspect("toy").container not in ("", first) and listening(port))

        def answered() -> bytes:
            with socket.create_connection(("127.0.0.1", near), timeout=10) as asked:
                asked.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return asked.recv(100)

        assert until(answered)

    def test_a_cluster_that_does_not_answer_is_unknown_and_not_gone(self, runtime, toy, api: KubeApi) -> None:
        runtime.start(toy())
        api.close()
        seen = runtime.inspect("toy")
        assert seen.state is EngineState.UNKNOWN
        assert "gives no answer" in seen.reason

    def test_after_a_crash_the_log_holds_what_was_said_before_it(self, runtime, toy) -> None:
        runtime.start(toy("--exit", "3"))
        until(lambda: runtime.inspect("toy").restarts)
        assert runtime.log("toy").last(None).count("toy engine starts") == 2

    def test_the_cluster_s_key_wins_over_the_one_here(self, runtime, toy, tmp_path: Path) -> None:
        runtime.start(toy())
        (tmp_path / "key").write_text("sk-another\n")
        launch = toy()
        (tmp_path / "key").write_text("sk-another\n")
        runtime.start(launch)
        assert (tmp_path / "key").read_text() == "sk-test-1234\n"
