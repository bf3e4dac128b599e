"""The chart's three programs, taken out of what helm rendered and run: against a hub, a folder, an engine."""

import json
import os
import subprocess
import sys

import pytest

from tests.fakes.engine import FakeEngine, Options
from tests.fakes.hub import FakeHub
from tests.render.chart import env_of, merged, one, pods, rendered
from tests.render.chart_values import SETS, SGLANG

pytestmark = pytest.mark.e2e
KEY = "sk-right"
USELESS = 78
"""The status for which the job's podFailurePolicy gives up."""


def run(container, folder=None, **more):
    """The container's command here; `more` replaces variables, as the cluster would give them."""
    command, script = container["command"], container["args"][0]
    assert command == ["python3", "-c"]
    env = {key: value for key, value in env_of(container).items() if isinstance(value, str)}
    return subprocess.run(
        [sys.executable, "-c", script, *([str(folder)] if folder else [])],
        env={"PATH": os.environ["PATH"], **env, "HOME": os.environ["HOME"], **more},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_no_script_holds_what_kubernetes_would_replace():
    for _, pod in pods(rendered(SETS["everything"])):
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            if container["name"] != "engine":
                assert "$" not in container["args"][0]


@pytest.fixture
def hub(tmp_path):
    model = tmp_path / "hub" / "Qwen" / "Qwen3-4B"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"w" * 100_000)
    with FakeHub(tmp_path / "hub", gated=("Qwen/Qwen3-4B",), token="hf_right") as hub:
        yield hub


def fetch_and_wait(values=None):
    found = rendered(values)
    job = one(found, "Job")["spec"]["template"]["spec"]["containers"][0]
    return job, one(found, "Deployment")["spec"]["template"]["spec"]["initContainers"][0]


def test_what_was_fetched_lets_the_engine_start_and_is_fetched_once(hub, tmp_path):
    job, wait = fetch_and_wait()
    folder = tmp_path / "volume"
    folder.mkdir()
    early = run(wait, folder, SELFHOST_SECONDS="0")
    assert early.returncode == 1
    assert "after 0 s the volume holds no weights" in early.stderr
    done = run(job, folder, HF_ENDPOINT=hub.url, HF_TOKEN="hf_right")
    assert done.returncode == 0, done.stderr
    assert (folder / "model.safetensors").stat().st_size == 100_000
    late = run(wait, folder)
    assert (late.returncode, late.stderr) == (0, "")
    asked = len(hub.requests)
    again = run(job, folder, HF_ENDPOINT=hub.url)
    commit = hub.commit("Qwen/Qwen3-4B")
    assert (again.returncode, again.stdout) == (0, f"Qwen/Qwen3-4B at main is there already, commit {commit}\n")
    assert f"the weights are there, commit {commit}" in late.stdout
    assert len(hub.requests) == asked


def test_the_weights_of_another_revision_do_not_count(hub, tmp_path):
    job, _ = fetch_and_wait()
    assert run(job, tmp_path, HF_ENDPOINT=hub.url, HF_TOKEN="hf_right").returncode == 0
    _, wait = fetch_and_wait({"model": {"revision": "other"}})
    done = run(wait, tmp_path, SELFHOST_SECONDS="0")
    assert done.returncode == 1
    assert '"revision": "main"' in done.stderr


def test_only_the_files_that_were_named_are_fetched(hub, tmp_path):
    job, _ = fetch_and_wait({"fetch": {"include": ["*.json"]}})
    folder = tmp_path / "volume"
    folder.mkdir()
    assert run(job, folder, HF_ENDPOINT=hub.url, HF_TOKEN="hf_right").returncode == 0
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == ["config.json"]


@pytest.mark.parametrize(
    ("values", "token", "words"),
    [
        ({}, "", "is gated: accept its licence on the hub, and name a Secret with a token in fetch.existingSecret"),
        ({"model": {"revision": "nosuch"}}, "hf_right", "Qwen/Qwen3-4B has no revision nosuch: see model.revision"),
        ({"model": {"id": "Qwen/Other"}}, "hf_right", "the hub shows no Qwen/Other to us: see model.id"),
    ],
)
def test_a_hub_that_says_no_is_read_for_the_reader(values, token, words, hub, tmp_path):
    job, wait = fetch_and_wait(values)
    env = {"HF_TOKEN": token} if token else {}
    done = run(job, tmp_path, HF_ENDPOINT=hub.url, **env)
    assert done.returncode == USELESS
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert run(wait, tmp_path, SELFHOST_SECONDS="0").returncode == 1


@pytest.mark.parametrize("left", [(), ("config.json", "model.safetensors.incomplete")])
def test_a_hub_that_cannot_be_reached_completes_nothing(left, tmp_path):
    """Where something lies in the folder already, the library itself takes it for the whole."""
    for name in left:
        (tmp_path / name).write_text("{}")
    job, wait = fetch_and_wait()
    assert run(wait, tmp_path, SELFHOST_SECONDS="0").returncode == 1
    done = run(job, tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "Qwen/Qwen3-4B at main could not be fetched" in done.stderr
    assert "Traceback" not in done.stderr
    assert run(wait, tmp_path, SELFHOST_SECONDS="0").returncode == 1


def test_a_hub_that_breaks_off_is_gone_on_with(tmp_path):
    model = tmp_path / "hub" / "Qwen" / "Qwen3-4B"
    model.mkdir(parents=True)
    (model / "model.safetensors").write_bytes(os.urandom(3_000_000))
    job, wait = fetch_and_wait()
    folder = tmp_path / "volume"
    folder.mkdir()
    with FakeHub(tmp_path / "hub", break_after=1_000_000, breaks=1000) as broken:
        done = run(job, folder, HF_ENDPOINT=broken.url)
    assert done.returncode == 1, done.stdout
    assert run(wait, folder, SELFHOST_SECONDS="0").returncode == 1
    with FakeHub(tmp_path / "hub") as whole:
        assert run(job, folder, HF_ENDPOINT=whole.url).returncode == 0
    assert (folder / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    assert run(wait, folder).returncode == 0


def test_a_volume_without_room_is_said_before_anything_is_fetched(hub, tmp_path):
    job, _ = fetch_and_wait()
    job["args"][0] = job["args"][0].replace("shutil.disk_usage(folder).free", "10")
    done = run(job, tmp_path, HF_ENDPOINT=hub.url, HF_TOKEN="hf_right")
    assert done.returncode == USELESS
    assert "the volume has no room for Qwen/Qwen3-4B at main: raise weights.size" in done.stderr


def test_what_no_retry_mends_ends_the_job_and_a_drained_node_uses_none_up():
    found = one(rendered(), "Job")["spec"]
    drained, useless = found["podFailurePolicy"]["rules"]
    assert drained == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert useless["action"] == "FailJob"
    assert useless["onExitCodes"] == {"containerName": "fetch", "operator": "In", "values": [USELESS]}
    assert found["template"]["spec"]["restartPolicy"] == "Never"  # the policy is refused with another one
    assert found["backoffLimit"] == 12


def ask(values, **options):
    """What `helm test` says of an engine."""
    (pod,) = [pod for owner, pod in pods(rendered(values)) if owner["kind"] == "Pod"]
    with FakeEngine(Options(served_name="qwen3-4b", **options)) as engine:
        key = {"SELFHOST_KEY": KEY} if options.get("key") else {}
        done = run(pod["containers"][0], SELFHOST_URL=engine.url.removesuffix("/v1"), **key)
    assert "Traceback" not in done.stderr
    return done


def thinking(value):
    return {"parser": "qwen3", "template_defaults": {"enable_thinking": value}, "key": KEY}


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ({}, thinking(True)),
        ({"reasoning": {"mode": "off"}}, thinking(False)),
        (
            merged(SGLANG, {"reasoning": {"field": "reasoning_content"}}),
            {**thinking(True), "key": "", "face": "sglang"},
        ),
        (SETS["no-reasoning"], {"key": KEY}),
    ],
)
def test_a_right_server_passes(values, options):
    done = ask(values, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ({}, {**thinking(False)}, "FAILED thoughts are in message.reasoning"),
        ({"reasoning": {"mode": "off"}}, {**thinking(True)}, "FAILED no thoughts come back"),
        ({}, {**thinking(True), "faults": frozenset({"wrong-name"})}, "FAILED /v1/models names qwen3-4b"),
        ({}, {**thinking(True), "faults": frozenset({"generate-500"})}, "FAILED a completion comes back: 500"),
        ({"reasoning": {"mode": "off"}}, {**thinking(False), "faults": frozenset({"empty-answer"})}, "has text"),
        ({}, {**thinking(True), "faults": frozenset({"no-key"})}, "FAILED without the key it answers 401: 200"),
    ],
)
def test_a_wrong_server_fails_and_the_check_is_named(values, options, words):
    done = ask(values, **options)
    assert done.returncode == 1
    assert words in done.stdout


def test_a_server_that_is_not_there_ends_the_test():
    (pod,) = [pod for owner, pod in pods(rendered()) if owner["kind"] == "Pod"]
    done = run(pod["containers"][0], SELFHOST_URL="http://127.0.0.1:9", SELFHOST_KEY=KEY)
    assert done.returncode == 1
    assert "FAILED /health answers 200: no answer" in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_fields_of_a_mode_without_a_server_default_are_sent():
    (pod,) = [pod for owner, pod in pods(rendered(SETS["budget"])) if owner["kind"] == "Pod"]
    assert json.loads(env_of(pod["containers"][0])["SELFHOST_REQUEST"]) == {"thinking_token_budget": 512}
