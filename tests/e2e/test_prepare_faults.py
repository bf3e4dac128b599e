"""`prepare` where something stands in the way, in a fresh Debian: a lock, an interrupt, no root, running containers."""
# ruff: noqa: F811

import re
import subprocess
import sys
import time

import pytest

from tests.e2e.test_prepare import ROOT, debian, machine  # noqa: F401

pytestmark = pytest.mark.slow

_HOLD = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(300)"
_SYSTEMCTL = "#!/bin/sh\\necho $* >> /systemctl.log\\n"


@pytest.mark.parametrize("lock", ["/var/lib/dpkg/lock-frontend", "/var/lib/apt/lists/lock"])
def test_the_holder_of_a_lock_is_waited_for_and_named(machine, lock):
    machine.client.run("exec", "-d", machine.name, sys.executable, "-c", _HOLD, lock)
    began = time.monotonic()
    error = machine.prepare("--only", "podman", "--set", "podman_lock_timeout_s=10", rc=4)["error"]
    assert time.monotonic() - began > 10
    assert error["id"] == "RT092"
    assert re.match(r"`\S+` \(pid \d+\) holds the lock", error["what"]), error


def test_an_interrupt_says_where_it_was_leaves_no_folder_and_the_next_run_goes_on(machine):
    machine.sh("mv /usr/bin/apt-get /usr/bin/apt-get.own; printf '#!/bin/sh\\nexec sleep 987\\n' > /usr/bin/apt-get")
    machine.sh("chmod +x /usr/bin/apt-get")
    line = f"echo $$ > /pid; exec {sys.executable} -m selfhost prepare --yes --only podman"
    argv = ["docker", "exec", "-e", f"PYTHONPATH={ROOT}", machine.name, "sh", "-c", line]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=machine.client.env
    ) as running:
        for _ in range(120):
            if _sleeps(machine):
                break
            time.sleep(0.5)
        assert machine.sh("stat -c %a /tmp/selfhost-prepare-*") == "700"
        machine.sh("kill -INT $(cat /pid)")
        _, said = running.communicate(timeout=60)
        assert running.returncode == 130
    assert "interrupted" in said
    assert "what was done stays, a package manager at work ends by itself; to go on: " in said
    assert "prepare --only podman" in said
    assert machine.sh("ls -d /tmp/selfhost-prepare* 2>/dev/null || true") == ""
    assert _sleeps(machine)  # a dpkg that was cut off would leave more to mend
    machine.sh("mv /usr/bin/apt-get.own /usr/bin/apt-get")
    assert machine.prepare("--only", "podman", rc=0)["changed"] > 0


def _sleeps(machine) -> bool:
    return "sleep 987" in machine.sh("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")


@pytest.mark.parametrize(
    ("sudo", "evidence"),
    [("", "sudo is not installed"), ("echo sudo: a password is required >&2; exit 1", "sudo: a password is required")],
)
def test_without_root_the_command_for_it_is_named_and_nothing_runs(machine, sudo, evidence):
    if sudo:
        machine.sh(f"printf '#!/bin/sh\\n{sudo}\\n' > /usr/bin/sudo; chmod +x /usr/bin/sudo")
    machine.sh("chmod 711 /root")  # where the Python that is lent may lie
    argv = ["docker", "exec", "-u", "ana", "-e", f"PYTHONPATH={ROOT}", machine.name, sys.executable, "-m", "selfhost"]
    done = subprocess.run(
        [*argv, "prepare", "--only", "podman"], capture_output=True, text=True, env=machine.client.env, timeout=100
    )
    assert done.returncode == 4, done.stderr
    assert "RT091" in done.stderr
    assert evidence in done.stderr
    assert f"sudo {sys.executable} -m selfhost prepare --only podman" in done.stderr


def test_no_package_of_the_user_is_removed(machine):
    control = "Package: containerd.io\\nVersion: 1\\nArchitecture: all\\nMaintainer: n <n@a.b>\\nDescription: x\\n"
    machine.sh(f"mkdir -p /x/DEBIAN; printf '{control}Conflicts: containerd, runc\\n' > /x/DEBIAN/control")
    machine.sh("dpkg-deb -b /x /x.deb; dpkg -i /x.deb")
    error = machine.prepare("--only", "docker", rc=4)["error"]
    assert error["id"] == "RT114", error
    assert "containerd.io" in error["what"]
    assert "ok installed" in machine.sh("dpkg -s containerd.io")


def _docker_with_systemd(machine, containers: str) -> None:
    machine.sh("mkdir -p /run/systemd/system /etc/docker; groupadd -f docker")
    machine.sh("printf '#!/bin/sh\\necho Docker version 27.5.1, build x\\n' > /usr/bin/dockerd")
    machine.sh(f"printf '#!/bin/sh\\necho {containers}\\n' > /usr/bin/docker")
    machine.sh(
        f"printf '{_SYSTEMCTL}' > /usr/bin/systemctl; chmod +x /usr/bin/systemctl /usr/bin/docker /usr/bin/dockerd"
    )


@pytest.mark.parametrize(
    ("containers", "words", "restarts"),
    [
        ("", [], True),
        ("0f3c", [], False),
        ("0f3c", ["--set", "docker_restart=always"], True),
        ("", ["--set", "docker_restart=never"], False),
    ],
)
def test_running_containers_are_ended_only_when_that_was_asked_for(machine, containers, words, restarts):
    _docker_with_systemd(machine, containers)
    told = machine.prepare("--only", "docker", *words, rc=0)
    assert ("restart docker.service" in machine.sh("cat /systemctl.log")) is restarts
    assert any("stops the containers that run now" in one for one in told["notices"]) is not restarts


def test_the_steps_are_counted_without_gaps(machine):
    _docker_with_systemd(machine, "")
    done = machine.python("-m", "selfhost", "prepare", "--yes", "--only", "docker", "--progress", "plain")
    assert done.returncode == 0, done.stderr
    counted = [(int(number), int(total)) for number, total in re.findall(r"(\d+)/(\d+) \w+", done.stderr)]
    total = counted[0][1]
    assert list(dict.fromkeys(counted)) == [(number, total) for number in range(1, total + 1)]
