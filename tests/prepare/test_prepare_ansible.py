"""Without the extra: what to install, into the interpreter that runs."""

import subprocess
import sys

import pytest

CODE = """
import sys
sys.modules[{name!r}] = None
from selfhost.runtimes.ansible import missing
error = missing()
print(error.id, error.why, *error.fix)
"""


@pytest.mark.parametrize("name", ["ansible", "ansible_runner"])
def test_what_is_not_installed_is_named_with_the_command_for_it(name):
    done = subprocess.run([sys.executable, "-c", CODE.format(name=name)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("RT090 ")
    assert f"; {name} is not beside" in done.stdout
    assert f"{sys.executable} -m pip install 'selfhost-kit[prepare]'" in done.stdout


def test_nothing_is_missing_where_both_are():
    from selfhost.runtimes.ansible import missing

    assert missing() is None
