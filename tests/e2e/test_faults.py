"""What a person's machine does to `up`: taken ports, two at once, dying engines, damage, interrupts, no room."""

import fcntl
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
    assert "SIGKILL" in world.status()["health"]
    assert f"--name {world.name}" in world.status()["health"]
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


def test_an_interrupt_before_anything_was_touched_leaves_the_running_engine_alone(warm_world):
    world = warm_world()
    assert world.up().returncode == 0
    before = world.engines()
    turn = world.base / "state" / "selfhost" / "devices" / "cpu.lock"
    with turn.open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = world.start(*world.up_words("--context", "512"))
        assert settle(lambda: (world.folder / "bundle" / "serve.sh").read_text().count("512") > 0, timeout_s=60)
        time.sleep(1.0)
        os.kill(second.pid, signal.SIGINT)
        _, err = second.communicate(timeout=60)
    assert second.returncode == 130
    assert "goes on" in err
    assert world.engines() == before
    assert world.status()["state"] == "ready"


def test_a_plan_that_never_started_does_not_replace_what_status_and_down_know(warm_world):
    world = warm_world()
    assert world.up().returncode == 0
    url = world.status()["url"]
    refused = world.up("--context", "1024", "--", "--api-key", "k")
    assert refused.returncode == 2
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert world.up("--port", str(other.getsockname()[1])).returncode == 4
    found = world.status()
    assert (found["state"], found["url"]) == ("ready", url)
    assert not found["checked"].startswith("stale")
    assert json.loads(world.run("down", world.name, "--json").stdout)["port"] == port


def test_a_key_that_was_removed_or_changed_converges(warm_world):
    world = warm_world()
    assert world.up().returncode == 0
    (world.folder / "key").unlink()
    assert world.up().returncode == 0
    assert (world.folder / "key").stat().st_mode & 0o777 == 0o600
    (world.folder / "key").write_text("sk-another\n")
    assert world.up().returncode == 0
    assert world.status()["state"] == "ready"


def test_a_failed_check_is_not_kept_as_the_truth(warm_world):
    world = warm_world(FAKE_ENGINE_FAULT="garbage")
    assert world.up().returncode == 1
    again = world.up("--json")
    assert again.returncode == 1
    assert json.loads(again.stdout)["fresh"] is True


def test_the_same_folder_typed_in_two_ways_is_the_same_model_and_another_of_its_name_is_not(warm_world):
    world = warm_world()
    for parent in ("one", "two"):
        shutil.copytree(REASONER, world.base / parent / "m")
    assert world.run("up", "./one/m", "--device", "cpu").returncode == 0
    assert world.run("up", str(world.base / "one" / "m"), "--device", "cpu").returncode == 0
    assert len(world.engines()) == 1
    other = world.run("up", "./two/m", "--device", "cpu")
    assert other.returncode == 2
    assert "CF010" in other.stderr
    assert "--name m-2" in other.stderr
    world.name = "m"


def test_changed_weights_are_noticed_and_the_engine_is_started_again(warm_world):
    world = warm_world()
    shutil.copytree(REASONER, world.base / "m")
    words = ("up", str(world.base / "m"), "--name", world.name, "--device", "cpu", "--json")
    assert world.run(*words).returncode == 0
    before = world.engines()
    weights = world.base / "m" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    again = world.run(*words)
    assert json.loads(again.stdout)["fresh"] is True
    assert world.engines() != before


def test_up_with_only_a_name_goes_on_with_the_model_of_that_deployment(warm_world):
    world = warm_world()
    assert world.up().returncode == 0
    again = world.run("up", "--name", world.name, "--device", "cpu", "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["fresh"] is False


def test_a_state_folder_without_rights_or_room_is_no_bug_of_ours_and_down_still_works(warm_world, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(small)]).returncode != 0:
        pytest.skip("mounting a tmpfs needs root")
    world = warm_world(XDG_STATE_HOME=str(small / "state"))
    try:
        started = world.up()
        assert started.returncode == 0, started.stderr[-2000:]
        fill(small)
        refused = world.up("--context", "512")
        assert refused.returncode == 4, refused.stderr[-2000:]
        assert "is full" in refused.stderr
        assert "Traceback" not in refused.stderr
        done = world.down()
        assert done.returncode == 0, done.stderr[-2000:]
        assert world.processes() == {}
    finally:
        if world.processes():
            world.end()
        subprocess.run(["umount", "-l", str(small)], check=True)


def fill(folder: Path) -> None:
    """Until not one byte fits; unbuffered, so that nothing is left to be written at the end."""
    with (folder / "filler").open("wb", buffering=0) as stream:
        for size in (4096, 1):
            try:
                while stream.write(b"x" * size):
                    pass
            except OSError:
                continue


def test_folders_that_are_not_ours_and_files_that_are_no_text_harm_nobody(warm_world):
    world = warm_world()
    assert world.up().returncode == 0
    junk = world.folder.parent / "My Backup"
    junk.mkdir()
    (junk / "plan.json").write_text("{}")
    (world.folder / "plan.json").write_bytes(b"\xff\xfe\x00nonsense")
    assert world.status()["state"] in ("ready", "not answering")
    assert world.up().returncode == 0
    assert world.status()["state"] == "ready"
    assert world.down().returncode == 0
    assert (junk / "plan.json").exists()


def test_a_refused_up_leaves_no_deployment_behind(warm_world):
    world = warm_world()
    done = world.run("up", "qwen3-32b", "--device", "cpu", "--name", world.name)
    assert done.returncode in (1, 4)
    assert world.status() == {}
