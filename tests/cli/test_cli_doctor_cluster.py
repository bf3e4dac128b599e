"""`selfhost doctor` of a cluster as it is typed: of a snapshot, and of an API server that answers."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from selfhost.core.paths import Paths
from selfhost.runtimes.cluster.record import Record, write
from tests.doctor.cluster_objects import container, event, node, pod, running, unschedulable, waiting

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases" / "cluster"
GPU = {"nvidia.com/gpu": "1"}


def _doctor(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    around = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTHONPATH": str(ROOT),
        **env,
    }
    argv = [sys.executable, "-m", "selfhost", "doctor", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=around, cwd=cwd, check=False)


def _snapshot(folder: Path, *objects: Mapping[str, Any]) -> str:
    file = folder / "snapshot.json"
    file.write_text(json.dumps({"schema": "selfhost.snapshot/1", "kubernetes": {"objects": objects}}))
    return str(file)


def test_a_snapshot_of_objects_is_a_cluster_and_no_machine(tmp_path):
    done = _doctor("--host", str(CASES / "K002.json"), cwd=tmp_path)
    assert done.returncode == 1
    assert "error[KX016]: deployment team/llama stands still: the old pod holds 2/2 nvidia.com/gpu" in " ".join(
        done.stdout.split()
    )
    assert "driver" not in done.stdout.splitlines()[0]


def test_json_has_the_known_form(tmp_path):
    done = _doctor("--host", str(CASES / "K034.json"), "pod/milvus-querynode-0", "--json", cwd=tmp_path)
    said = json.loads(done.stdout)
    assert (said["schema"], said["ok"], said["summary"]["error"]) == ("selfhost.findings/1", False, 1)
    found = said["findings"][0]
    assert (found["id"], found["run_on"], found["object"]) == ("KX001", "cluster admin", "pod team/milvus-querynode-0")
    assert [area["name"] for area in said["areas"]] == ["kubernetes"]


@pytest.mark.parametrize("word", ["pod/calm-0", "pod/team/calm-0", "calm-0"])
def test_a_pod_that_runs_is_said_to_be_well(word, tmp_path):
    well = running(pod("calm-0", node="gpu-1", containers=[container(limits=GPU)]))
    stuck = pod(
        "stuck-0",
        containers=[container(limits=GPU)],
        status=unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
    )
    done = _doctor("--host", _snapshot(tmp_path, node("gpu-1", cards=GPU), well, stuck), word, cwd=tmp_path)
    assert (done.returncode, "1 of 1 pod ready" in done.stdout, "stuck-0" in done.stdout) == (0, True, False)


def test_a_pod_of_which_nothing_is_known_is_undecided(tmp_path):
    done = _doctor("--host", _snapshot(tmp_path, node("gpu-1", cards=GPU), pod("qwen-0")), "pod/qwen-0", cwd=tmp_path)
    assert done.returncode == 3
    assert "events are kept for an hour" in " ".join(done.stdout.split())


def test_a_namespace_bounds_what_is_looked_at(tmp_path):
    stuck = [
        pod(
            "qwen-0",
            space,
            containers=[container(limits=GPU)],
            status=unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
        )
        for space in ("a", "b")
    ]
    file = _snapshot(tmp_path, node("cpu-1"), *stuck)
    done = _doctor("--host", file, "--namespace", "b", "--json", cwd=tmp_path)
    assert {one["object"] for one in json.loads(done.stdout)["findings"]} == {"pod b/qwen-0"}
    assert len(json.loads(_doctor("--host", file, "--json", cwd=tmp_path).stdout)["findings"]) == 2


def test_fixes_become_scripts(tmp_path):
    done = _doctor("--host", str(CASES / "K004.json"), "deployment/mm", "--fix-script", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert "kubectl -n team patch deployment mm" in (tmp_path / "out" / "fix-here.sh").read_text()


def test_what_takes_a_pod_away_is_shown_and_not_run(tmp_path):
    held = running(pod("other-0", "lab", node="gpu-1", containers=[container(limits=GPU)]))
    said = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    stuck = pod("qwen-0", containers=[container(limits=GPU)], status=unschedulable(said))
    file = _snapshot(tmp_path, node("gpu-1", cards=GPU), held, stuck)
    assert _doctor("--host", file, "--fix-script", "out", cwd=tmp_path).returncode == 1
    assert "\n# kubectl -n lab delete pod other-0\n" in (tmp_path / "out" / "fix-here.sh").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", str(CASES / "K002.json"), "pod/llama-5d8f9c7b66-hk2l"), "llama-5d8f9c7b66-hk2lp"),
        (
            ("--host", str(CASES / "K002.json"), "--kube-context", "x"),
            "--kube-context and --host both say where to look",
        ),
        (("--host", str(ROOT / "tests/snapshots/two-rtx.json"), "pod/x"), "holds no objects of a cluster"),
        (("pod/a", "pod/b"), "doctor takes no `pod/b` beside `pod/a`"),
        (("pod/a", "--prove"), "and a cluster at once"),
        (("somewhere",), "doctor takes no `somewhere`"),
    ],
)
def test_wrong_words_are_named(words, said, tmp_path):
    done = _doctor(*words, cwd=tmp_path)
    assert (done.returncode, said in " ".join(done.stderr.split())) == (2, True), done.stderr


def test_without_a_kubeconfig_there_is_no_cluster(tmp_path):
    done = _doctor("pod/qwen-0", cwd=tmp_path)
    assert (done.returncode, "RT130" in done.stderr) == (4, True)


STUCK = pod(
    "qwen-0",
    containers=[container(limits=GPU)],
    status=unschedulable("0/1 nodes are available: 1 node(s) had untolerated taint(s)."),
)
CRASHED = pod(
    "crash-0",
    node="gpu-1",
    phase="Running",
    status=waiting("CrashLoopBackOff", restarts=3, last={"exitCode": 127, "reason": "Error"}),
)
LISTS = {
    "/api/v1/nodes": [node("gpu-1", cards=GPU, taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])],
    "/api/v1/pods": [STUCK, CRASHED],
    "/api/v1/namespaces/team/events": [
        event("Pod", "qwen-0", "FailedScheduling", "0/1 nodes are available: 1 node(s) had untolerated taint(s).")
    ],
}
KINDS = {
    "nodes": ("Node", False),
    "pods": ("Pod", True),
    "events": ("Event", True),
    "persistentvolumeclaims": ("PersistentVolumeClaim", True),
    "secrets": ("Secret", True),
}


class _Api(BaseHTTPRequestHandler):
    """Two pages a list, one kind forbidden, no group but the first."""

    asked: list[str]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.asked.append(url.path)
        status, body = self._answer(url.path, parse_qs(url.query))
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, path: str, query: Mapping[str, list[str]]) -> tuple[int, Any]:
        if path == "/version":
            return 200, {"gitVersion": "v1.34.2"}
        if path == "/api/v1":
            listed = [
                {"name": name, "kind": kind, "namespaced": inside, "verbs": ["list"]}
                for name, (kind, inside) in KINDS.items()
            ]
            return 200, {"kind": "APIResourceList", "resources": listed}
        if path.endswith("persistentvolumeclaims"):
            return 403, {
                "kind": "Status",
                "code": 403,
                "reason": "Forbidden",
                "message": (
                    'persistentvolumeclaims is forbidden: User "ana" cannot list resource "persistentvolumeclaims"'
                ),
            }
        if path.endswith("/crash-0/log") and query["previous"] == ["true"]:
            return 200, "bash: line 1: ray: command not found"
        if path in LISTS:
            first = "continue" not in query
            return 200, {
                "kind": "PodList",
                "apiVersion": "v1",
                "metadata": {"continue": "2"} if first else {},
                "items": [] if first else LISTS[path],
            }
        return 404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"}

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    handler = type("Api", (_Api,), {"asked": asked})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}", asked
    http.shutdown()
    http.server_close()
    thread.join()


def _kubeconfig(folder: Path, url: str) -> str:
    file = folder / "kubeconfig"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "lab",
                "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    return str(file)


def test_a_cluster_that_answers(server, tmp_path):
    url, asked = server
    done = _doctor("pod/qwen-0", "--kube-context", "lab", cwd=tmp_path, KUBECONFIG=_kubeconfig(tmp_path, url))
    said = " ".join(done.stdout.split())
    assert done.returncode == 1, done.stderr
    assert "cluster lab, namespace team" in said
    assert "error[KX005]: pod team/qwen-0 does not tolerate the taint nvidia.com/gpu:NoSchedule of node gpu-1" in said
    assert "PersistentVolumeClaim" in said
    assert 'cannot list resource "persistentvolumeclaims"' in said
    assert not any("secrets" in path for path in asked)


def test_a_deployment_of_ours_is_known_by_its_name(server, tmp_path):
    url, _ = server
    kubeconfig = _kubeconfig(tmp_path, url)
    ours = Record(
        context="lab", namespace="team", release="qwen", deployment="qwen", port=8000, pod_port=8000, how="apply"
    )
    write(Paths.of({"HOME": str(tmp_path)}), "qwen", ours)
    done = _doctor("qwen", cwd=tmp_path, KUBECONFIG=kubeconfig)
    assert (done.returncode, "there is no deployment qwen in namespace team" in " ".join(done.stderr.split())) == (
        2,
        True,
    )


def test_the_end_of_a_silent_containers_log_is_its_last_words(server, tmp_path):
    url, _ = server
    done = _doctor("pod/crash-0", cwd=tmp_path, KUBECONFIG=_kubeconfig(tmp_path, url))
    assert "error[KX310]: pod team/crash-0 ends: the engine image lacks ray" in " ".join(done.stdout.split())


def test_a_cluster_that_does_not_answer(tmp_path):
    done = _doctor("--kube-context", "lab", cwd=tmp_path, KUBECONFIG=_kubeconfig(tmp_path, "http://127.0.0.1:9"))
    assert done.returncode == 4
    assert "error[RT" in done.stderr
