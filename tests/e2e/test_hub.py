"""A model from a hub, through the whole command; the hub is a small one on loopback that speaks the real API."""

import json
import os
import shutil
import signal

import pytest

from tests.e2e.world import REASONER, settle
from tests.fakes.hub import FakeHub

REPO = "acme/tiny-reasoner"


@pytest.fixture
def hub(tmp_path):
    shutil.copytree(REASONER, tmp_path / "hub" / REPO)
    with FakeHub(tmp_path / "hub") as running:
        yield running


def hub_world(make_world, url: str, **extra: str):
    return make_world(HF_ENDPOINT=url, HF_HUB_OFFLINE="0", HF_HUB_DISABLE_XET="1", **extra)


def up_words(world, *words: str) -> tuple[str, ...]:
    return ("up", REPO, "--name", world.name, "--device", "cpu", "--progress", "json", *words)


def test_a_model_from_the_hub_comes_back_after_the_network_is_cut_with_no_request(make_world, hub):
    world = hub_world(make_world, hub.url)
    done = world.run(*up_words(world, "--json"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert any("model.safetensors" in path for path in hub.paths())
    lock = json.loads((world.folder / "lock.json").read_text())
    assert lock["revision"] == hub.commit(REPO)

    asked = len(hub.requests)
    again = world.run(*up_words(world, "--json"))
    assert again.returncode == 0
    assert json.loads(again.stdout)["fresh"] is False
    assert len(hub.requests) == asked

    (pid,) = world.engines()
    os.kill(pid, signal.SIGKILL)
    assert settle(lambda: not world.engines())
    world.extra_env["HF_ENDPOINT"] = "http://127.0.0.1:9"
    back = world.run(*up_words(world, "--json"))
    assert back.returncode == 0, back.stderr[-3000:]
    assert json.loads(back.stdout)["fresh"] is True
    assert len(hub.requests) == asked


def test_the_engine_gets_no_hub_token_and_works_offline(make_world, hub):
    world = hub_world(make_world, hub.url, HF_TOKEN="hf_canaryCanaryCanaryCanaryCanaryCana")
    assert world.run(*up_words(world)).returncode == 0
    (pid,) = world.engines()
    with open(f"/proc/{pid}/environ", "rb") as environ:
        variables = environ.read()
    assert b"hf_canary" not in variables
    assert b"HF_HUB_OFFLINE=1" in variables
    for file in world.folder.rglob("*"):
        assert not file.is_file() or b"hf_canary" not in file.read_bytes(), file


def test_a_gated_model_names_its_page_and_how_to_log_in(make_world, tmp_path):
    shutil.copytree(REASONER, tmp_path / "hub" / REPO)
    with FakeHub(tmp_path / "hub", gated=(REPO,)) as hub:
        world = hub_world(make_world, hub.url)
        done = world.run(*up_words(world))
    assert done.returncode == 4
    assert "MD007" in done.stderr
    assert "hf auth login" in done.stderr
    assert f"{hub.url}/{REPO}" in done.stderr
    assert not world.folder.exists() or not (world.folder / "service.json").exists()


def test_no_network_and_nothing_here_says_so_and_changes_nothing(make_world):
    world = hub_world(make_world, "http://127.0.0.1:9")
    done = world.run(*up_words(world))
    assert done.returncode == 4
    assert "MD010" in done.stderr
    assert "127.0.0.1:9" in done.stderr
    assert world.processes() == {}
