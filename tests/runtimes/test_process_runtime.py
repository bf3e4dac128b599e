import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from selfhost.core import processes
from selfhost.core.errors import EnvironmentMissing
from selfhost.core.system import LocalSystem
from selfhost.runtimes import members
from selfhost.runtimes.base import EngineState, Runtime
from selfhost.runtimes.process import ProcessRuntime
from tests.runtimes.conftest import HERE, until
from tests.runtimes.contract import RuntimeContract


class TestProcessContract(RuntimeContract):
    """The process runtime keeps the contract of all runtimes."""


def serves(runtime: ProcessRuntime) -> bool:
    """It serves, and its keeper, which waits for the disk meanwhile, has written down who it is."""
    log = runtime.log("toy").path
    return runtime.folder("toy").engine.exists() and log.exists() and "toy engine serves" in log.read_text()


def keeper(runtime: ProcessRuntime) -> processes.ProcessRef:
    (found,) = members.keepers(runtime.folder("toy").deployment)
    return found


def test_it_is_a_runtime(runtime: ProcessRuntime) -> None:
    as_protocol: Runtime = runtime
    assert as_protocol.info.name == "process"


def test_the_engine_gets_its_key_and_marks_but_no_token_of_the_user(toy, runtime, paths, tmp_path) -> None:
    user = {
        **os.environ,
        "HF_TOKEN": "hf_secret",
        "HUGGING_FACE_HUB_TOKEN": "hf_secret2",
        "OPENAI_API_KEY": "sk-other",
        "VLLM_API_KEY": "of-the-shell",
        "PYTHONHOME_": "stays",
        "https_proxy": "http://user:pw@proxy",
        "VIRTUAL_ENV": "/venv",
        "TOKENIZERS_PARALLELISM": "true",
    }
    assert not runtime.inspect("toy").alive
    made = ProcessRuntime(paths, LocalSystem(user))
    dump = tmp_path / "environment"
    made.start(toy("--dump", str(dump), env={"HF_HUB_OFFLINE": "1"}, plan_digest="abc"))
    until(lambda: serves(made))
    env = dict(line.partition("=")[::2] for line in dump.read_text().splitlines())
    assert env["VLLM_API_KEY"] == "sk-test-1234"
    assert env["HF_HUB_OFFLINE"] == "1"
    assert env["TOKENIZERS_PARALLELISM"] == "true"
    assert (env["SELFHOST_DEPLOYMENT"], env["SELFHOST_PLAN"]) == ("toy", "abc")
    gone = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "https_proxy", "VIRTUAL_ENV", "SELFHOST_KEEPER")
    assert not [key for key in gone if key in env]
    kept = Path(f"/proc/{keeper(made).pid}/environ").read_bytes()
    assert b"hf_secret" not in kept
    assert b"sk-test-1234" not in kept


def test_the_engine_outlives_the_command_that_started_it(runtime, paths) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom selfhost.core.paths import Paths\n"
        "from selfhost.core.system import LocalSystem\nfrom selfhost.runtimes.base import Launchable\n"
        "from selfhost.runtimes.process import ProcessRuntime\n"
        f"paths = Paths(state=Path({str(paths.state)!r}), cache=Path({str(paths.cache)!r}))\n"
        "launch = Launchable(name='toy', python=sys.executable, module='toy_engine', argv=(),\n"
        f"                    env={{'PYTHONPATH': {str(HERE)!r}}})\n"
        "print(ProcessRuntime(paths, LocalSystem()).start(launch).pid)\n"
    )
    root = str(HERE.parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        start_new_session=True,
    )
    seen = runtime.inspect("toy")
    assert seen.state is EngineState.RUNNING
    assert seen.pid == int(done.stdout)
    assert seen.reason == ""


def test_an_engine_killed_by_signal_9_is_told_from_one_that_ended_and_its_children_are_ended(runtime, toy) -> None:
    started = runtime.start(toy("--children", "2"))
    until(lambda: serves(runtime))
    os.kill(started.pid, signal.SIGKILL)
    seen = until(lambda: (look := runtime.inspect("toy")).state is EngineState.EXITED and look)
    assert (seen.exit_code, seen.signal, seen.out_of_memory) == (None, 9, False)
    until(lambda: not runtime.processes("toy"))
    until(lambda: not members.keepers(runtime.folder("toy").deployment))


def test_children_without_marks_in_sessions_of_their_own_are_found_and_ended(runtime, toy) -> None:
    started = runtime.start(toy("--children", "2", "--own-session"))
    until(lambda: serves(runtime))
    assert len(runtime.processes("toy")) == 3
    children = [one for one in runtime.processes("toy") if one.pid != started.pid]
    receipt = runtime.stop("toy", grace_s=3.0)
    assert {one.pid for one in children} < {one.pid for one in receipt.ended}
    assert not [one for one in children if processes.runs(one.pid, one.start_ticks)]


def test_an_engine_whose_keeper_was_killed_goes_on_is_seen_and_can_be_stopped(runtime, toy) -> None:
    started = runtime.start(toy("--children", "1"))
    until(lambda: serves(runtime))
    os.kill(keeper(runtime).pid, signal.SIGKILL)
    seen = until(lambda: (look := runtime.inspect("toy")).reason and look)
    assert seen.reason.startswith("the engine runs, but its keeper was killed: ")
    assert (seen.state, seen.pid) == (EngineState.RUNNING, started.pid)
    assert runtime.start(toy()).pid == started.pid
    receipt = runtime.stop("toy", grace_s=3.0)
    assert len(receipt.ended) == 2
    assert receipt.leftovers == ()


@pytest.mark.parametrize("flags", [(), ("--bare",)], ids=["found by tag", "found by session"])
def test_an_engine_and_a_keeper_that_were_both_killed_are_gone_and_children_are_named(runtime, toy, flags) -> None:
    started = runtime.start(toy("--children", "1", *flags))
    until(lambda: serves(runtime))
    os.kill(keeper(runtime).pid, signal.SIGKILL)
    os.kill(started.pid, signal.SIGKILL)
    seen = until(lambda: not (look := runtime.inspect("toy")).alive and look)
    assert seen.state is EngineState.GONE
    assert len(seen.leftovers) == 1
    again = runtime.start(toy())
    assert again.instance != started.instance
    assert not processes.runs(seen.leftovers[0].pid, seen.leftovers[0].start_ticks)


def test_a_second_keeper_starts_no_second_engine_even_when_the_first_keeper_was_killed(runtime, toy) -> None:
    runtime.start(toy())
    until(lambda: serves(runtime))
    os.kill(keeper(runtime).pid, signal.SIGKILL)
    folder = runtime.folder("toy").deployment
    root = str(HERE.parent.parent)
    done = subprocess.run(
        [sys.executable, "-m", "selfhost.runtimes.keeper", "--run", str(folder)],
        env={**os.environ, "PYTHONPATH": root},
        check=False,
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == 75
    assert len(runtime.processes("toy")) == 1


def test_a_damaged_record_is_set_aside_and_the_engine_found_without_it(runtime, toy) -> None:
    started = runtime.start(toy(port=18999, plan_digest="abc"))
    until(lambda: serves(runtime))
    record = runtime.folder("toy").engine
    record.write_text('{"schema": "selfhost.eng')
    seen = runtime.inspect("toy")
    assert (seen.state, seen.pid, seen.instance) == (EngineState.RUNNING, started.pid, started.instance)
    assert (seen.port, seen.plan_digest) == (18999, "abc")
    assert [finding.id for finding in seen.findings] == ["RT051"]
    assert list(record.parent.glob("engine.json.damaged-*"))
    assert runtime.inspect("toy").findings == ()
    assert len(runtime.stop("toy", grace_s=3.0).ended) == 1


def test_a_record_of_another_boot_or_a_recycled_number_is_never_taken_for_the_engine(runtime, toy) -> None:
    runtime.start(toy())
    until(lambda: serves(runtime))
    record = runtime.folder("toy").engine
    raw = json.loads(record.read_text())
    runtime.stop("toy", grace_s=3.0)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        start = processes.stat(stranger.pid)
        for changed in ({"start_ticks": start.start_ticks - 1}, {"start_ticks": start.start_ticks, "boot_id": "other"}):
            record.write_text(json.dumps({**raw, "pid": stranger.pid, **changed}))
            assert runtime.inspect("toy").state is EngineState.GONE
            assert runtime.processes("toy") == ()
            assert runtime.stop("toy", grace_s=0.2).ended == ()
            assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_missing_interpreter_and_a_missing_key_file_are_said_by_name(runtime, toy) -> None:
    launch = toy()
    with pytest.raises(EnvironmentMissing) as caught:
        runtime.start(type(launch)(name="toy", python="/nowhere/python", module="m", argv=()))
    assert caught.value.id == "RT050"
    assert "/nowhere/python" in caught.value.evidence
    with pytest.raises(EnvironmentMissing) as caught:
        runtime.start(
            type(launch)(
                name="toy", python=sys.executable, module="m", argv=(), key_variable="K", key_file="/nowhere/key"
            )
        )
    assert "/nowhere/key" in caught.value.evidence


def test_a_log_above_its_limit_is_shortened_and_the_engine_writes_on(runtime, toy) -> None:
    runtime.start(toy("--say-bytes", "200000", log_limit_bytes=65536, log_keep=3))
    until(lambda: serves(runtime))
    log = runtime.log("toy").path
    parts = sorted(log.parent.glob("engine.log.*"), reverse=True)
    assert parts
    text = "".join(path.read_text() for path in (*parts, log))
    numbers = [int(line[:-1]) for line in text.splitlines() if line.endswith("#") and len(line) == 63]
    assert numbers[-1] == 3124  # 200,000 bytes in lines of 64, the last one numbered 3,124
    assert numbers == sorted(numbers)
    assert len(numbers) >= 3125 - 5
    assert log.stat().st_size < 65536 * 3


def test_the_log_of_the_run_before_is_kept(runtime, toy) -> None:
    runtime.start(toy("--exit", "1"))
    until(lambda: runtime.inspect("toy").state is EngineState.EXITED)
    runtime.start(toy())
    assert "toy engine ends" in runtime.log("toy").path.with_name("engine-1.log").read_text()


def test_the_memory_of_a_running_engine_is_that_of_all_its_processes(runtime, toy) -> None:
    assert runtime.memory_bytes("toy") is None
    runtime.start(toy("--children", "2"))
    until(lambda: serves(runtime) and len(runtime.processes("toy")) == 3)
    size = runtime.memory_bytes("toy")
    assert 3 * 2 * 1024**2 < size < 3 * 200 * 1024**2  # an idle interpreter has 5 to 15 MiB of its own


def test_two_deployments_of_one_name_in_two_state_folders_do_not_see_each_other(runtime, toy, tmp_path) -> None:
    from selfhost.core.paths import Paths

    other = ProcessRuntime(Paths(state=tmp_path / "other", cache=tmp_path / "cache"), LocalSystem())
    runtime.start(toy())
    assert other.inspect("toy").state is EngineState.GONE
    assert other.processes("toy") == ()
    assert other.stop("toy", grace_s=0.2).ended == ()
    assert runtime.inspect("toy").alive


def test_starts_at_the_same_moment_end_in_one_engine(runtime, toy, paths) -> None:
    import threading

    seen: list[int] = []
    threads = [
        threading.Thread(target=lambda: seen.append(ProcessRuntime(paths, LocalSystem()).start(toy()).pid))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    until(lambda: serves(runtime))
    time.sleep(0.3)
    assert len(runtime.processes("toy")) == 1
    assert set(seen) == {runtime.inspect("toy").pid}
