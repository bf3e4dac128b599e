"""Scripts of fixes: one a machine, harmless until read."""

import shutil
import subprocess

import pytest

from selfhost.doctor.fix_script import MARK, runs, scripts
from selfhost.shapes.finding import Finding, RunOn, Severity


def _finding(run_on: RunOn = RunOn.HERE, fix: str = "make the nodes:\nsudo nvidia-modprobe -u -c=0") -> Finding:
    return Finding(id="HX001", severity=Severity.ERROR, title="no $(node)", why="It's gone.", fix=(fix,), run_on=run_on)


def test_each_machine_has_its_own():
    assert list(scripts([_finding(where) for where in RunOn])) == [
        "fix-here.sh",
        "fix-container-host.sh",
        "fix-hypervisor.sh",
        "fix-windows.ps1",
        "fix-cluster.sh",
    ]


def test_nothing_to_do_is_no_script():
    assert scripts([]) == {}


def test_a_whole_command_runs_once_and_says_why():
    text = scripts([_finding(), _finding()])["fix-here.sh"]
    assert text.count("\nsudo nvidia-modprobe -u -c=0\n") == 1
    assert MARK in text
    assert "# error[HX001] no $(node)" in text


@pytest.mark.parametrize(
    "command",
    [
        "sudo reboot",
        "docker run --gpus all …",
        "sudo rmmod nouveau",
        "dev0: /dev/kfd,mode=0666",
        'sudo usermod -aG docker "$USER"',
    ],
)
def test_what_takes_away_or_is_not_whole_stays_a_comment(command):
    assert not runs(command)
    assert f"# {command}" in scripts([_finding(fix=f"do it:\n{command}")])["fix-here.sh"]


def test_the_shell_reads_it():
    text = scripts([_finding(), _finding(fix="a:\nprintf 'x\\n' | sudo tee /etc/x\nsudo reboot")])["fix-here.sh"]
    shell = shutil.which("sh")
    assert shell
    assert subprocess.run([shell, "-n"], input=text, text=True, check=False).returncode == 0
