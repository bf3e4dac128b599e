"""selfhost.lock out of deployments on this machine: sums of real files, what was never started, what changed since."""

import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.paths import Paths
from selfhost.deploy.file_sums import files_of
from selfhost.deploy.lockfile import held_against, lock_of, read_lock, write_lock
from selfhost.deploy.state import State
from selfhost.plan.decide import decide
from selfhost.shapes.host import Known
from selfhost.stack.entry import LockedImage
from selfhost.stack.load import load
from tests.fakes.planning import a_card, a_host, smollm2

ROOT = Path(__file__).parents[2]
MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
YAML = f"version: 1\nservices:\n  chat: {{model: {MODEL}, runtime: process, devices: cpu, context: 4096, port: 8009}}\n"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Silent:
    def on(self, event):
        pass

    def close(self):
        pass


@pytest.fixture
def snapshot(tmp_path):
    """A hub cache: a large blob that is named by its sum, and small ones by git's."""
    repository = tmp_path / "models--org--it"
    folder = repository / "snapshots" / COMMIT
    (repository / "blobs").mkdir(parents=True)
    folder.mkdir(parents=True)
    for name, blob, text in (
        ("model.safetensors", "ab" * 32, "weights"), ("config.json", "cd" * 20, "{}"), ("README.md", "ef" * 20, "#"),
    ):  # fmt: skip
        (repository / "blobs" / blob).write_text(text)
        (folder / name).symlink_to(f"../../blobs/{blob}")
    return folder


def started(folder, *, versions, text=YAML, **more):
    """The state that an `up` of the service leaves."""
    (service,) = load(text, path="selfhost.yaml").services
    plan = decide(host=a_host(), model=smollm2(path=str(folder)), service=service, port=8009)
    state = State(Paths.of(os.environ), "chat", say=lambda _: None)
    state.write_wanted(service, plan)
    state.write_lock(versions=versions, **more)
    return plan


def run(*argv):
    env = {**os.environ, "NO_COLOR": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "120", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "selfhost", *argv], capture_output=True, text=True, timeout=60, env=env
    )


def test_blobs_of_the_hub_are_named_by_their_sum_and_others_are_read(snapshot, tmp_path):
    kept = tmp_path / "sums.json"
    found = {one.path: one for one in files_of(snapshot, kept=kept, sink=Silent())}
    assert set(found) == {"model.safetensors", "config.json"}  # what is not served is not locked
    assert (found["model.safetensors"].sha256, found["model.safetensors"].size) == ("ab" * 32, 7)
    assert found["config.json"].sha256 == hashlib.sha256(b"{}").hexdigest()


def test_a_sum_is_remembered_until_the_file_changes(snapshot, tmp_path):
    kept = tmp_path / "sums.json"
    files_of(snapshot, kept=kept, sink=Silent())
    (key,) = json.loads(kept.read_text())["sums"]
    kept.write_text(json.dumps({"schema": "selfhost.sums/1", "sums": {key: "remembered"}}))
    assert [one.sha256 for one in files_of(snapshot, kept=kept, sink=Silent()) if one.size == 2] == ["remembered"]
    changed = (snapshot / "config.json").resolve()
    changed.write_text("[]")
    os.utime(changed, ns=(1, 1))
    sums = [one.sha256 for one in files_of(snapshot, kept=kept, sink=Silent()) if one.size == 2]
    assert sums == [hashlib.sha256(b"[]").hexdigest()]
    kept.write_text("damaged")
    assert files_of(snapshot, kept=kept, sink=Silent())


def test_a_lock_is_written_whole_and_only_when_it_changes(tmp_path):
    path = tmp_path / "selfhost.lock"
    (service,) = load(YAML, path="f").services
    plan = decide(host=a_host(), model=smollm2(), service=service, port=8009)
    entry = lock_of(plan, a_host(), libraries={"torch": "2.9"})
    assert write_lock(path, {"chat": entry})
    assert not write_lock(path, {"chat": entry})
    assert read_lock(path) == {"chat": entry}
    assert (entry.revision, entry.context, entry.devices) == (COMMIT, 4096, 0)
    assert not any("8009" in word or "/models" in word for word in entry.flags)
    assert held_against(path, entry, name="chat") == ()
    with pytest.raises(InputError, match="there is no"):
        read_lock(tmp_path / "none")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is damaged"):
        read_lock(path)


def test_a_digest_that_moved_stops(tmp_path):
    path = tmp_path / "selfhost.lock"
    (service,) = load(YAML, path="f").services
    host = replace(a_host(accelerators=(a_card(),)), driver=Known("580.95.05", "test"))
    plan = decide(host=host, model=smollm2(), service=service, port=8009)
    image = LockedImage(reference="vllm/vllm-openai:v0.33.0", digest="sha256:1", platform="linux/amd64")
    write_lock(path, {"chat": lock_of(plan, host, image=image)})
    with pytest.raises(EnvironmentMissing, match="image digest: sha256:1 is locked, sha256:2 is here"):
        held_against(path, lock_of(plan, host, image=replace(image, digest="sha256:2")), name="chat")


def test_what_was_never_started_is_named_and_nothing_is_written():
    Path("selfhost.yaml").write_text(YAML)
    done = run("lock")
    assert done.returncode == 4, done.stderr
    assert "error[CF029]: `chat` was never started here: nothing was locked" in done.stderr
    assert "selfhost up --file selfhost.yaml chat" in done.stderr
    assert not Path("selfhost.lock").exists()


def test_lock_and_check_as_typed(snapshot):
    Path("selfhost.yaml").write_text(YAML)
    started(snapshot, versions={"torch": "2.9.0"})
    done = run("lock")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "selfhost.lock written"
    body = json.loads(Path("selfhost.lock").read_text())["services"]["chat"]
    assert (body["libraries"], body["revision"]) == ({"torch": "2.9.0"}, COMMIT)
    assert "chat was not checked with this plan" in done.stderr
    assert run("lock", "--check").returncode == 0
    before = Path("selfhost.lock").read_bytes()
    started(snapshot, versions={"torch": "2.9.1"})
    done = run("lock", "--check", "--json")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said["schema"] == "selfhost.locked/1"
    assert said["differs"]["chat"][0].startswith("library torch: 2.9.0 is locked, 2.9.1 is here")
    assert Path("selfhost.lock").read_bytes() == before


def test_a_file_that_changed_since_the_start_is_not_locked(snapshot):
    Path("selfhost.yaml").write_text(YAML.replace("4096", "2048"))
    started(snapshot, versions={})
    done = run("lock")
    assert done.returncode == 4
    assert "`chat` was started with another context" in done.stderr


def test_init_writes_a_file_that_loads_and_never_writes_over_one():
    done = run("init")
    assert done.returncode == 0, done.stderr
    text = Path("selfhost.yaml").read_text()
    (service,) = load(text, path="selfhost.yaml").services
    assert (service.name, service.port) == ("chat", 8000)
    keys = [line for line in text.splitlines() if re.match(r"    # [a-z_]+: ", line) and "share" not in line]
    assert len(keys) == 6
    load(text + "\n".join(line.replace("# ", "", 1) for line in keys), path="selfhost.yaml")
    done = run("init")
    assert done.returncode == 2
    assert "exists and is not overwritten" in done.stderr
    assert Path("selfhost.yaml").read_text() == text
    assert json.loads(run("init", "--schema").stdout)["title"] == "selfhost.yaml, version 1"
