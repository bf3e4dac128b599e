"""Eyes through a shell that is kept open: what they see through `sh` on this machine is what is seen directly."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from selfhost.core.far_shell import FarShell
from selfhost.core.remote import RemoteSystem
from selfhost.core.system import LocalSystem
from selfhost.hosts.detect import detect

SHELLS = [["sh"], ["bash", "--posix"]]


def through(argv: list[str], **env: str) -> RemoteSystem:
    return RemoteSystem(lambda: FarShell(argv, env={**os.environ, **env}, timeout_s=10))


@pytest.fixture(params=SHELLS, ids=lambda argv: argv[0])
def far(request: pytest.FixtureRequest) -> Iterator[RemoteSystem]:
    system = through(request.param, HF_TOKEN="hf_notarealtokenatall", CUDA_VISIBLE_DEVICES="1")
    yield system
    system.close()


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[RemoteSystem]:
    """A place that has `sh` and `cat` and nothing else."""
    for tool in ("sh", "cat"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    system = through(["sh"], PATH=str(tmp_path))
    yield system
    system.close()


def test_the_machine_looks_the_same_through_a_shell(far: RemoteSystem) -> None:
    here, there = detect(LocalSystem()), detect(far)
    assert (there.os, there.kernel) == (here.os, here.kernel)
    assert there.cpu == here.cpu
    assert there.nesting == here.nesting
    assert there.accelerators == here.accelerators
    assert there.memory.total == here.memory.total


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "/etc", "/etc/passwd", "/proc/self/mem"])
def test_nodes_folders_and_files_are_told_apart(far: RemoteSystem, path: str) -> None:
    there, here = far.stat(path), LocalSystem().stat(path)
    assert (there.kind, there.major, there.minor, there.mode) == (here.kind, here.major, here.minor, here.mode)


def test_opening_says_why_not_and_makes_nothing(far: RemoteSystem, tmp_path: Path) -> None:
    assert far.try_open("/dev/null") == "ok"
    assert far.try_open(str(tmp_path / "gone")) == "ENOENT"
    assert not (tmp_path / "gone").exists()
    assert far.try_open(str(tmp_path)) == LocalSystem().try_open(str(tmp_path))


def test_odd_names_and_texts_come_over_whole(far: RemoteSystem, tmp_path: Path) -> None:
    odd = tmp_path / "a 'b' $(c) \\ d"
    odd.write_text("line\n'quoted' $x `y` \\ end\n\n", encoding="utf-8")
    assert far.read(str(odd)) == odd.read_text(encoding="utf-8")
    assert odd.name in far.listdir(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        far.read(str(tmp_path / "gone"))


def test_commands_run_with_their_own_words_input_and_environment(far: RemoteSystem) -> None:
    done = far.run(
        ["sh", "-c", 'cat; echo "$A" "$0"; echo err >&2; exit 3', "it's"], timeout_s=5, stdin="in\n", env={"A": "b c"}
    )
    assert (done.rc, done.stdout, done.stderr) == (3, "in\nb c it's\n", "err\n")
    assert far.run(["no-such-program-here"], timeout_s=5).missing


def test_a_command_that_hangs_is_ended_and_the_next_one_answers(far: RemoteSystem) -> None:
    assert far.run(["sleep", "60"], timeout_s=0.5).timed_out
    assert far.run(["echo", "still here"], timeout_s=5).stdout == "still here\n"


def test_only_variables_about_devices_come_over(far: RemoteSystem) -> None:
    assert far.env.get("CUDA_VISIBLE_DEVICES") == "1"
    assert "HF_TOKEN" not in far.env
    assert "hf_notarealtokenatall" not in str(dict(far.env))


def test_sh_and_cat_alone_are_enough(bare: RemoteSystem) -> None:
    here, there = detect(LocalSystem()), detect(bare)
    assert there.kernel == here.kernel
    assert there.cpu.model == here.cpu.model
    assert there.memory.total == here.memory.total
    assert bare.try_open("/dev/null") == "ok"
    assert "passwd" in bare.listdir("/etc")


def test_nothing_is_left_running(tmp_path: Path) -> None:
    system = through(["sh"])
    system.read("/proc/version")
    (tmp_path / "pid").write_text(system.run(["sh", "-c", "echo $PPID"], timeout_s=5).stdout)
    system.close()
    pid = (tmp_path / "pid").read_text().strip()
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout.strip()
    assert state[:1] in ("", "Z")
