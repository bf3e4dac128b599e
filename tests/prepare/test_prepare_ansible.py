"""Without the extra: what to install, into the interpreter that runs."""

import subprocess
import sys

import pytest

NAMES = ("ansible", "ansible_runner")
CODE = """
import sys
sys.path.insert(0, {folder!r})
sys.modules.update(dict.fromkeys({without!r}))
from selfhost.runtimes.ansible import missing
error = missing()
print("nothing" if error is None else f"{{error.id}} {{error.why}} {{' '.join(error.fix)}}")
"""


@pytest.fixture
def said(tmp_path):
    """What is said where both packages are installed, but for those named."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()

    def run(*without):
        code = CODE.format(folder=str(tmp_path), without=without)
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    return run


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_installed_is_named_with_the_command_for_it(said, name):
    words = said(name)
    assert words.startswith("RT090 ")
    assert f"; {name} is not beside" in words
    assert f"{sys.executable} -m pip install 'selfhost-kit[prepare]'" in words


def test_both_are_named_where_none_is_installed(said):
    assert "; ansible and ansible_runner are not beside" in said(*NAMES)


def test_nothing_is_missing_where_both_are(said):
    assert said().strip() == "nothing"
