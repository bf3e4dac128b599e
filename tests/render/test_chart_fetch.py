"""The fetch job over time: commits that change under a branch, roll-backs, volumes that cannot be written, signals."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.fakes.hub import FakeHub
from tests.render.chart import env_of, rendered
from tests.render.test_chart_scripts import USELESS, fetch_and_wait, run

pytestmark = pytest.mark.e2e
ID = "Qwen/Qwen3-4B"


@pytest.fixture
def model(tmp_path):
    model = tmp_path / "hub" / "Qwen" / "Qwen3-4B"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "old.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"a" * 100_000)
    return model


@pytest.fixture
def volume(tmp_path):
    volume = tmp_path / "volume"
    volume.mkdir()
    return volume


def served(model):
    return FakeHub(model.parents[1])


def only_answers_about_the_model(job):
    """As a hub that falls silent after the first answer: the library returns what lies in the folder, as the whole."""
    script = job["args"][0].replace(
        "from huggingface_hub import HfApi, snapshot_download\n",
        "from huggingface_hub import HfApi\n\n\ndef snapshot_download(*_, local_dir, **__):\n    return local_dir\n\n",
    )
    return {**job, "args": [script]}


def test_files_of_the_same_size_from_another_commit_are_not_taken_for_the_new_ones(model, volume):
    job, wait = fetch_and_wait({"model": {"revision": "main"}})
    with served(model) as hub:
        assert run(job, volume, HF_ENDPOINT=hub.url).returncode == 0
    (volume / ".selfhost-complete").unlink()
    (model / "model.safetensors").write_bytes(b"b" * 100_000)
    with served(model) as hub:
        silent = run(only_answers_about_the_model(job), volume, HF_ENDPOINT=hub.url)
        assert silent.returncode == 1, silent.stdout
        assert "3 of 3 files are not complete" in silent.stderr
        assert run(wait, volume, SELFHOST_SECONDS="0").returncode == 1
        assert run(job, volume, HF_ENDPOINT=hub.url).returncode == 0
        assert (volume / "model.safetensors").read_bytes() == b"b" * 100_000
        assert hub.commit(ID) in run(wait, volume).stdout


def test_what_another_commit_left_is_not_loaded_beside_the_new_files(model, volume):
    job, _ = fetch_and_wait()
    with served(model) as hub:
        assert run(job, volume, HF_ENDPOINT=hub.url).returncode == 0
    (volume / ".selfhost-complete").unlink()
    (volume / "own.json").write_text("{}")
    (model / "old.json").unlink()
    with served(model) as hub:
        assert run(job, volume, HF_ENDPOINT=hub.url).returncode == 0
    there = {path.name for path in volume.iterdir() if not path.name.startswith(".")}
    assert there == {"config.json", "model.safetensors", "own.json"}  # what nobody fetched is nobody's to remove


def test_a_roll_back_finds_the_weights_of_the_old_choice(model, volume):
    before, old = fetch_and_wait({"fetch": {"include": ["*.json"]}})
    after, new = fetch_and_wait({"fetch": {"include": ["*.json", "*.safetensors"]}})
    with served(model) as hub:
        assert run(before, volume, HF_ENDPOINT=hub.url).returncode == 0
        assert run(new, volume, SELFHOST_SECONDS="0").returncode == 1
        assert run(after, volume, HF_ENDPOINT=hub.url).returncode == 0
    assert run(new, volume).returncode == 0
    assert run(old, volume).returncode == 0


def test_a_choice_of_another_commit_in_the_same_folder_is_forgotten_before_it_is_written_over(model, volume):
    before, old = fetch_and_wait({"fetch": {"include": ["*.json"]}})
    after, _ = fetch_and_wait()
    with served(model) as hub:
        assert run(before, volume, HF_ENDPOINT=hub.url).returncode == 0
    (model / "config.json").write_text("[]")
    with served(model) as hub:
        assert run(only_answers_about_the_model(after), volume, HF_ENDPOINT=hub.url).returncode == 1
    assert run(old, volume, SELFHOST_SECONDS="0").returncode == 1


def test_each_revision_has_a_folder_of_its_own():
    def folder(values):
        (job, _) = fetch_and_wait(values)
        return next(one.get("subPath") for one in job["volumeMounts"] if one["name"] == "weights")

    assert folder({}) == "models/qwen--qwen3-4b/main"
    assert folder({"model": {"revision": "refs/pr/7"}}) == "models/qwen--qwen3-4b/refs-pr-7"
    assert folder({"model": {"id": "Org/My Model.v2", "revision": "A"}}) == "models/org--my-model.v2/a"
    assert folder({"weights": {"subPath": "own"}}) == "own"
    assert folder({"weights": {"subPath": ""}}) is None


def test_a_cache_belongs_to_the_image_that_compiled_it():
    def folder(values):
        pod = next(one for one in rendered(values) if one["kind"] == "Deployment")["spec"]["template"]["spec"]
        return next(one["subPath"] for one in pod["containers"][0]["volumeMounts"] if one["mountPath"] == "/var/tmp")

    assert folder({}) == "cache/vllm-openai-v0.33.0-sm_89"
    assert folder({"image": {"tag": "v0.34.0"}}) == "cache/vllm-openai-v0.34.0-sm_89"
    assert folder({"cache": {"arch": "gfx942"}}) == "cache/vllm-openai-v0.33.0-gfx942"
    assert folder({"cache": {"subPath": "own"}}) == "own"


def test_a_volume_that_cannot_be_written_is_said_in_words(model, volume):
    job, _ = fetch_and_wait()
    job["args"][0] = job["args"][0].replace(
        "partial.write_text(", "raise PermissionError(13, 'Permission denied', str(partial)); partial.write_text("
    )
    with served(model) as hub:
        done = run(job, volume, HF_ENDPOINT=hub.url)
    assert done.returncode == USELESS
    assert f"uid {os.getuid()} cannot write to the volume" in done.stderr
    assert "see podSecurityContext.fsGroup, or the export" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_volume_that_fills_up_is_no_trouble_of_the_hub(model, volume):
    job, _ = fetch_and_wait()
    job["args"][0] = job["args"][0].replace(
        "    snapshot_download(model", "    raise OSError(28, 'No space left on device')\n    snapshot_download(model"
    )
    with served(model) as hub:
        done = run(job, volume, HF_ENDPOINT=hub.url)
    assert done.returncode == USELESS
    assert "the volume is full: raise weights.size" in done.stderr


def test_what_was_begun_counts_as_room(model, volume):
    """A try after a broken download needs only what is still missing."""
    begun = volume / ".cache" / "huggingface" / "download" / "x.incomplete"
    begun.parent.mkdir(parents=True)
    begun.write_bytes(b"a" * 99_990)
    job, _ = fetch_and_wait()
    job["args"][0] = job["args"][0].replace("shutil.disk_usage(folder).free", "1000")
    with served(model) as hub:
        assert run(job, volume, HF_ENDPOINT=hub.url).returncode == 0


def ended(container, folder, ready, **env):
    """How long a container that is told to end goes on, and its status."""
    own = {key: value for key, value in env_of(container).items() if isinstance(value, str)}
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", container["args"][0], str(folder)],
        env={"PATH": os.environ["PATH"], **own, "HOME": os.environ["HOME"], **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            assert ready in process.stdout.readline()
            start = time.monotonic()
            process.send_signal(signal.SIGTERM)
            return process.wait(20), time.monotonic() - start
        finally:
            process.kill()


def test_both_end_at_once_when_they_are_told_to(model, volume):
    """The first process of a container gets no default action for SIGTERM: without a handler it would be ignored."""
    (model / "model.safetensors").write_bytes(b"a" * 5_000_000)
    job, wait = fetch_and_wait()
    status, took = ended(wait, volume, "waiting for the fetch job")
    assert (status, took < 5) == (143, True)
    with FakeHub(model.parents[1], chunk_delay_s=5) as hub:
        status, took = ended(job, volume, "GB to fetch", HF_ENDPOINT=hub.url)
    assert (status, took < 5) == (143, True)
