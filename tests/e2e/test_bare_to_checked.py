"""The promise, on a real engine with a real model: bare machine → checked endpoint → gone without a trace."""

import json
import os
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.damage import damage
from tests.e2e.world import REASONER, settle

pytestmark = pytest.mark.vllm
NAME = "smollm2-135m"


def ask(endpoint: dict, question: str, **extra: object) -> dict:
    """A plain client that knows only what `up --json` printed."""
    key = Path(endpoint["key_file"]).read_text().strip()
    body = {"model": endpoint["model"], "messages": [{"role": "user", "content": question}], "temperature": 0, **extra}
    request = urllib.request.Request(
        endpoint["base_url"] + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["choices"][0]


def port_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.timeout(1500)
def test_up_checks_survives_its_engines_death_offline_and_leaves_nothing(real_world):
    world = real_world
    world.name = NAME
    done = world.run("up", NAME, "--device", "cpu", "--json", "--yes", timeout_s=1200)
    assert done.returncode == 0, done.stderr[-4000:]
    endpoint = json.loads(done.stdout)
    port = int(endpoint["base_url"].split(":")[2].split("/")[0])
    assert [check["id"] for check in endpoint["smoke"]["checks"] if check["state"] == "failed"] == []

    assert "Paris" in ask(endpoint, "What is the capital of France?", max_tokens=40)["message"]["content"]

    found = world.status()
    assert found["state"] == "ready"
    assert found["pid"] in world.engines()
    assert found["generated_tokens"] > 100

    key = Path(endpoint["key_file"]).read_text().strip()
    plan = json.loads(world.run("plan", NAME, "--device", "cpu", "--json").stdout)
    running = Path(f"/proc/{found['pid']}/cmdline").read_text().split("\0")[:-1]
    assert running[1:] == plan["argv"][1:]
    assert os.stat(endpoint["key_file"]).st_mode & 0o777 == 0o600
    for kept in [*world.folder.rglob("*.json*"), *world.folder.rglob("*.log"), *world.folder.rglob("serve.sh")]:
        assert key not in kept.read_text(errors="replace"), kept
    assert "Application startup complete" in world.run("logs", NAME).stdout

    again = world.run("up", NAME, "--device", "cpu", "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["fresh"] is False
    assert world.status()["pid"] == found["pid"]

    os.kill(found["pid"], signal.SIGKILL)
    assert settle(lambda: world.status()["state"] == "failed")
    offline = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*offline, "true"], capture_output=True).returncode != 0:
        offline = []  # a machine that refuses network namespaces: the rerun is still shown, with the hub switched off
    back = subprocess.run(
        [*offline, *world.argv("up", NAME, "--device", "cpu", "--json")],
        env=world.env,
        cwd=world.base,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert back.returncode == 0, back.stderr[-4000:]
    assert json.loads(back.stdout)["fresh"] is True
    log = world.run("logs", NAME).stdout
    assert "huggingface.co" not in log

    receipt = json.loads(world.run("down", NAME, "--json").stdout)
    assert receipt["port_free"] is True
    assert world.processes() == {}
    assert not port_open(port)
    assert not world.folder.exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["on", "off"])
def test_the_tiny_reasoner_thinks_where_it_should(real_world, mode):
    world = real_world
    world.name = f"reasoner-{mode}"
    done = world.run("up", str(REASONER), "--name", world.name, "--reasoning", mode, "--device", "cpu", "--json")
    assert done.returncode == 0, done.stderr[-4000:]
    endpoint = json.loads(done.stdout)
    assert {check["id"]: check["state"] for check in endpoint["smoke"]["checks"]}["SM300"] == "passed"
    choice = ask(endpoint, "Think 50 steps", max_tokens=60)
    if mode == "on":
        assert choice["finish_reason"] == "length"
        assert not choice["message"]["content"]
        assert "1 2 3" in choice["message"]["reasoning"]
    else:
        assert choice["message"]["content"].strip() == "done"
        assert not choice["message"].get("reasoning")
    assert world.down().returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_damaged_model_is_green_on_health_and_fails_as_garbage(real_world, tmp_path):
    world = real_world
    healthy = world.run("up", NAME, "--device", "cpu", "--json", timeout_s=1200)
    assert healthy.returncode == 0
    argv = json.loads(world.run("plan", NAME, "--device", "cpu", "--json").stdout)["argv"]
    folder = argv[argv.index("--model") + 1]
    world.run("down", NAME)
    assert damage(Path(folder), tmp_path / "damaged") == 10
    world.name = "damaged"
    done = world.run("up", str(tmp_path / "damaged"), "--device", "cpu", "--json", timeout_s=600)
    assert done.returncode == 1, done.stderr[-4000:]
    endpoint = json.loads(done.stdout)
    states = {check["id"]: check for check in endpoint["smoke"]["checks"]}
    assert states["SM110"]["state"] == "failed"
    assert any(check["state"] == "skipped" and "SM110" in check["reason"] for check in states.values())
    with urllib.request.urlopen(endpoint["base_url"].removesuffix("/v1") + "/health", timeout=5) as health:
        assert health.status == 200
    assert world.down().returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_compiled_mode_passes_and_the_users_flag_is_named_in_the_plan(real_world):
    world = real_world
    world.name = NAME
    done = world.run("up", NAME, "--device", "cpu", "--json", "--", "--no-enforce-eager", timeout_s=800)
    assert done.returncode == 0, done.stderr[-4000:]
    assert world.down().returncode == 0
