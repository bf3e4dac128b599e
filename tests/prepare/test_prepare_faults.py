"""What package managers and sudo print, as errors with an id. The lines are apt's, dpkg's, sudo's own."""

import pytest

from selfhost.deploy.prepare_faults import Failed, fault
from selfhost.shapes.exit import ExitCode


def _fault(text: str):
    return fault(Failed(step="docker: package docker.io", text=text, command="selfhost prepare"))


LINES = {
    "RT092": "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4121 (unattended-upgr)",
    "RT093": "W: Failed to fetch http://deb.debian.org/debian/InRelease  Temporary failure resolving 'deb.debian.org'",
    "RT094": "E: Unable to locate package docker.io",
    "RT102": "E: You don't have enough free space in /var/cache/apt/archives/. No space left on device",
    "RT103": "E: The repository 'http://10.0.0.1/stable/deb/amd64  InRelease' is not signed.",
    "RT114": "E: Packages need to be removed but remove is disabled.",
    "RT091": "sudo: a password is required",
    "RT100": "dpkg: error processing package docker.io (--configure)",
}


@pytest.mark.parametrize("id", LINES)
def test_each_line_has_its_own_answer(id):
    error = _fault(LINES[id])
    assert error.id == id
    assert error.exit_code is ExitCode.ENVIRONMENT
    assert LINES[id] in error.evidence
    assert any("selfhost prepare" in way or "apt-get update" in way for way in error.fix)


def test_the_holder_of_the_lock_is_named():
    assert _fault(LINES["RT092"]).what == "`unattended-upgr` (pid 4121) holds the lock of the package manager"


def test_a_package_that_is_unknown_because_the_lists_could_not_be_fetched_is_told_as_the_network():
    assert _fault(f"{LINES['RT094']}\n{LINES['RT093']}").id == "RT093"


def test_a_refusal_of_a_role_keeps_its_words():
    error = _fault(
        "RT096 Docker is a snap here, and is left alone\nwhy one\nwhy two\n→ remove it:\nsudo snap remove docker"
    )
    assert (error.id, error.what) == ("RT096", "Docker is a snap here, and is left alone")
    assert error.why == "why one why two"
    assert error.fix[0] == "remove it:\nsudo snap remove docker"


def test_the_packages_that_would_go_are_named():
    error = _fault(
        f"The following packages will be REMOVED:\n  containerd.io docker-ce\nThe following:\n{LINES['RT114']}"
    )
    assert error.what == "the package would remove others: containerd.io docker-ce"
    assert "apt-get --simulate install docker.io" in error.fix[0]
