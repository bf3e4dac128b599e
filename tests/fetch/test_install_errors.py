"""What an installation that did not succeed is told as."""

import sys
from pathlib import Path

import pytest

from selfhost.core.system import Completed
from selfhost.fetch.install_errors import InstallErrors

FOLDER = Path("/cache/engines/vllm-0.32.0-cpu-py3.11")
ERRORS = InstallErrors("vllm 0.32.0", import_name="vllm", folder=FOLDER, log=Path("/cache/engines/x.install.log"))
READ = "read all that pip said:\nless /cache/engines/x.install.log"


def ended(said: str, *, rc: int = 1, timed_out: bool = False) -> Completed:
    return Completed(argv=("pip",), rc=rc, stdout=said, timed_out=timed_out)


def test_a_known_cause_is_told_with_names_and_the_log() -> None:
    error = ERRORS.not_installed(ended("ERROR: Could not install packages due to an OSError: [Errno 28] No space left"))
    assert error.id == "RT011"
    assert error.what == "the disk of /cache/engines became full while vllm 0.32.0 was installed"
    assert READ in error.fix


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (ended("", rc=2), "pip ended with code 2"),
        (ended("", rc=-9), "pip ended with code -9"),
        (ended("", rc=124, timed_out=True), "pip took too long and was ended"),
    ],
)
def test_an_unknown_end_of_pip_is_told_as_it_was(done: Completed, words: str) -> None:
    error = ERRORS.not_installed(done)
    assert (error.id, words in error.what, error.fix[0]) == ("RT039", True, READ)


def test_an_environment_that_cannot_be_made_is_not_a_failure_of_pip() -> None:
    assert ERRORS.no_venv(ended("Error: the moon is in the wrong house")).id == "RT047"
    assert ERRORS.no_venv(ended("Error: [Errno 28] No space left on device")).id == "RT011"
    assert ERRORS.no_venv(ended("Error: [Errno 13] Permission denied: '/cache'")).id == "RT042"
    assert ERRORS.no_venv(ended("/usr/bin/python3: No module named venv")).id == "RT037"


def test_debians_python_without_its_venv_package_gets_the_package_named() -> None:
    # What Debian 12's python3 says: github.com/python/cpython has the same words without the hint at apt.
    said = (
        "The virtual environment was not created successfully because ensurepip is not\n"
        "available.  On Debian/Ubuntu systems, you need to install the python3-venv\n"
        "package using the following command.\n\n    apt install python3.11-venv\n\n"
        "You may need to use sudo with that command.  After installing the python3-venv\n"
        "package, recreate your virtual environment.\n"
    )
    error = ERRORS.no_venv(ended(said))
    assert error.id == "RT037"
    assert f"\nsudo apt install python3.{sys.version_info.minor}-venv" in error.fix[0]


def test_an_import_that_does_not_work_says_what_is_missing() -> None:
    said = "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory"
    assert "install the system library libnuma.so.1" in ERRORS.not_importable(ended(said)).fix[0]
    assert "lacks an instruction" in ERRORS.not_importable(ended("", rc=-4)).why


def test_the_login_of_an_index_is_not_shown() -> None:
    said = "ERROR: HTTP error 500 while getting https://ana:hunter2@index/x.whl"
    for error in (ERRORS.not_installed(ended(said)), ERRORS.no_venv(ended(said)), ERRORS.not_importable(ended(said))):
        assert "hunter2" not in repr(vars(error))
        assert "@index/x.whl" in error.evidence
