"""What a person's machine does to `up`: taken ports, two at once, dying engines, damage, interrupts, no room."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.world import REASONER, World, settle


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory, fake_wheels):
    world = World(base=tmp_path_factory.mktemp("warm"), wheels=fake_wheels)
    done = world.up()
    assert done.returncode == 0, done.stderr[-3000:]
    world.end()
    return str(world.base / "cache")


@pytest.fixture
def warm_world(make_world, warm_cache):
    return lambda **extra: make_world(XDG_CACHE_HOME=warm_cache, **extra)


def test_an_explicit_port_that_is_taken_is_refused_with_its_holder(warm_world):
    world = warm_world()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = world.up("--port", str(port))
    assert done.returncode == 4
    assert f"127.0.0.1:{port} is taken by" in done.stderr
    assert f"pid {os.getpid()}" in done.stderr
    assert "RT004" in done.stderr
    assert world.processes() == {}


def test_the_second_up_of_two_at_once_says_who_is_at_work_and_one_engine_runs(warm_world):
    world = warm_world(FAKE_ENGINE_START_S="2")
    first = world.start(*world.up_words())
    assert settle(lambda: (world.folder / ".lock").exists() and world.engines(), timeout_s=60)
    second = world.up()
    assert second.returncode == 4
    assert "RT009" in second.stderr
    assert f"pid {first.pid}" in second.stderr
    third = world.up("--wait")
    assert first.wait(timeout=120) == 0
    assert third.returncode == 0
    assert len(world.engines()) == 1
    for stream in (first.stdout, first.stderr):
        stream.close()


def test_an_engine_that_dies_while_loading_ends_up_at_once_with_the_root_cause(warm_world):
    world = warm_world(FAKE_ENGINE_FAULT="die-load")
    began = time.monotonic()
    done = world.up()
    assert done.returncode == 5
    assert "EF0" in done.stderr
    assert str(world.folder / "logs") in done.stderr
    assert time.monotonic() - began < 60
    assert world.processes() == {}
    assert world.status()["state"] == "failed"


def test_an_engine_killed_while_serving_is_reported_and_started_again(warm_world):
    world = warm_world()
    assert world.up().returncode == 0
    (pid,) = world.engines()
    os.kill(pid, signal.SIGKILL)
    assert settle(lambda: world.status()["state"] == "failed")
    assert "signal 9" in world.status()["health"]
    assert world.up().returncode == 0
    assert world.engines() not in ([], [pid])


def test_a_failed_smoke_leaves_the_engine_running_and_exits_1(warm_world):
    world = warm_world(FAKE_ENGINE_FAULT="garbage")
    done = world.up("--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False
    assert len(world.engines()) == 1
    again = world.up()
    assert again.returncode == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_while_the_engine_loads_leaves_nothing_running_and_says_so(warm_world, number, code):
    world = warm_world(FAKE_ENGINE_START_S="30")
    process = world.start(*world.up_words())
    assert settle(world.engines, timeout_s=60)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err[-2000:]
    assert "nothing is running" in err
    assert settle(lambda: world.processes() == {})


def test_damaged_state_files_are_set_aside_and_up_goes_on(warm_world):
    world = warm_world()
    assert world.up().returncode == 0
    for name in ("plan.json", "service.json", "checks.json", "lock.json"):
        (world.folder / name).write_text('{"schema": "selfhost.')
    (world.folder / "journal.jsonl").write_text("\x00\x01 nonsense\n")
    done = world.up()
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(list(world.folder.glob("*.damaged-*"))) == 5
    assert len(world.engines()) == 1


def test_state_of_a_newer_selfhost_is_refused_and_left_alone(warm_world):
    world = warm_world()
    assert world.up().returncode == 0
    plan = world.folder / "plan.json"
    newer = json.dumps({**json.loads(plan.read_text()), "schema": "selfhost.plan/9"})
    plan.write_text(newer)
    done = world.up()
    assert done.returncode == 4
    assert "newer selfhost" in done.stderr
    assert plan.read_text() == newer
    plan.write_text(newer.replace("selfhost.plan/9", "selfhost.plan/1"))


def test_a_recycled_pid_is_never_ended(warm_world):
    world = warm_world()
    assert world.up().returncode == 0
    record = world.folder / "run" / "engine.json"
    kept = json.loads(record.read_text())
    bystander = subprocess.Popen(["sleep", "60"])
    (pid,) = world.engines()
    os.kill(pid, signal.SIGKILL)
    assert settle(lambda: not world.engines())
    record.write_text(json.dumps({**kept, "pid": bystander.pid}))
    assert world.down().returncode == 0
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_truncated_weight_file_is_named_with_both_sizes(warm_world, tmp_path):
    world = warm_world()
    broken = tmp_path / "broken"
    shutil.copytree(REASONER, broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000000])
    done = world.run("up", str(broken), "--name", world.name, "--device", "cpu")
    assert done.returncode == 2
    assert "MD014" in done.stderr
    assert "model.safetensors" in done.stderr
    assert world.processes() == {}


def test_what_is_no_model_is_refused_in_words_and_leaves_no_deployment(warm_world, tmp_path):
    world = warm_world()
    (tmp_path / "empty").mkdir()
    for asked, code in ((str(tmp_path / "empty"), "MD003"), ("qwen3-4bb", "MD001"), ("./not-there", "MD002")):
        done = world.run("up", asked, "--device", "cpu")
        assert done.returncode == 2, (asked, done.stderr)
        assert code in done.stderr
        assert "Traceback" not in done.stderr
    assert world.run("status", "--json").stdout.strip() == (
        '{"schema": "selfhost.status/1", "ok": true, "deployments": []}'
    )


def test_down_proves_that_nothing_is_left_and_keeps_what_was_there_before(warm_world, warm_cache):
    world = warm_world()
    assert world.up().returncode == 0
    receipt = json.loads(world.run("down", world.name, "--json").stdout)
    assert receipt["port_free"] is True
    assert world.processes() == {}
    assert not world.folder.exists()
    assert any(os.path.isdir(kept["path"]) and kept["path"].startswith(warm_cache) for kept in receipt["kept"])
    again = world.down()
    assert again.returncode == 2
    assert "RT001" in again.stderr


def test_no_key_is_in_any_command_line_or_file_but_its_own(warm_world):
    world = warm_world()
    done = world.up()
    assert done.returncode == 0
    key = (world.folder / "key").read_text().strip()
    for pid in world.processes():
        assert key not in Path(f"/proc/{pid}/cmdline").read_text()
    holders = {file.name for file in world.base.rglob("*") if file.is_file() and key.encode() in file.read_bytes()}
    assert holders == {"key", "key.header"}
    assert key not in done.stdout + done.stderr


def test_a_disk_without_room_is_refused_before_anything_is_downloaded(make_world, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(small)]).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    try:
        world = make_world(XDG_CACHE_HOME=str(small))
        done = world.up()
        assert done.returncode == 4
        assert "RT011" in done.stderr
        assert "64.0 MiB" in done.stderr
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_two_deployments_started_at_once_in_two_homes_do_not_take_each_other_for_their_own(warm_world):
    worlds = [warm_world(FAKE_ENGINE_START_S="1") for _ in range(3)]
    commands = [world.start(*world.up_words("--json")) for world in worlds]
    ends = [command.communicate(timeout=120) for command in commands]
    assert [command.returncode for command in commands] == [0, 0, 0], [err[-800:] for _, err in ends]
    addresses = {json.loads(out)["base_url"] for out, _ in ends}
    assert len(addresses) == 3
