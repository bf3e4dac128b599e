"""Which roles a machine needs, from recorded machines; and what is refused before anything is asked."""

from dataclasses import replace
from pathlib import Path

import pytest

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.recorded import Recorded
from selfhost.deploy.prepare_elsewhere import distribution, refuse
from selfhost.deploy.prepare_roles import all_roles, choose
from selfhost.deploy.prepare_words import question
from selfhost.hosts.detect import detect
from selfhost.shapes.fact import Known
from selfhost.shapes.surroundings import Engine, Surroundings

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


def _machine(name):
    return detect(Recorded.load(SNAPSHOTS / f"{name}.json"), wide=True)


def _with(name, *engines):
    return replace(_machine(name), nesting=(), surroundings=Surroundings(engines=engines))


def _engine(kind, **more):
    return Engine(kind=kind, version="28.3", answers=Known(value=True, how="it said so"), **more)


def _run(host, only=()):
    return [one.role for one in choose(host, only) if one.run]


@pytest.mark.parametrize(
    ("name", "engines", "roles"),
    [
        ("bare-no-cards", [], ["docker"]),
        ("bare-no-cards", ["podman"], ["podman"]),
        ("bare-no-cards", ["docker", "podman"], ["docker", "podman"]),
        ("rtx4090", [], ["docker", "nvidia_container_toolkit"]),
        ("two-5090", ["podman"], ["podman", "nvidia_container_toolkit"]),
        ("rtx-no-driver", [], ["docker"]),
        ("amd-mi300x", [], ["docker"]),
        ("amd-not-permitted", ["docker"], ["docker", "amd_access"]),
        ("arc-b580", [], ["docker"]),
    ],
)
def test_the_roles_that_a_machine_needs(name, engines, roles):
    assert _run(_with(name, *map(_engine, engines))) == roles


def test_a_card_without_a_driver_gets_no_toolkit_and_the_driver_is_named():
    reasons = {one.role: one.reason for one in choose(_with("rtx-no-driver"))}
    assert "no driver that answers: install that first" in reasons["nvidia_container_toolkit"]


@pytest.mark.parametrize("more", [{"desktop": True}, {"remote": "tcp://other:2376"}])
def test_an_engine_that_is_not_this_machine_s_is_left_alone(more):
    assert _run(_with("bare-no-cards", _engine("docker", **more))) == []


@pytest.mark.parametrize("name", ["pod", "rtx-docker-not-granted", "podman-rootless"])
def test_inside_a_container_nothing_is_prepared(name):
    assert _run(_machine(name)) == []
    assert "prepare the machine around it" in choose(_machine(name))[0].reason


def test_a_role_that_is_asked_for_runs_whatever_the_machine_says():
    assert _run(_machine("pod"), ["podman"]) == ["podman"]
    assert all_roles(choose(_machine("pod"), ["podman"])) == ("packages", "podman")
    assert all_roles(choose(_machine("pod"), ["amd_access"])) == ("amd_access",)


def _release(text):
    return distribution(Recorded({"files": {"/etc/os-release": text}}))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'ID=fedora\nPRETTY_NAME="Fedora Linux 43"\n',
            "config-manager addrepo --from-repofile https://download.docker.com/linux/fedora/",
        ),
        (
            'ID=rocky\nID_LIKE="rhel centos fedora"\n',
            "--add-repo https://download.docker.com/linux/rhel/docker-ce.repo",
        ),
        ("ID=cachyos\nID_LIKE=arch\n", "sudo pacman -S docker"),
        ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "sudo zypper install docker"),
        ("ID=alpine\n", "doas apk add docker"),
        ("ID=nixos\n", "virtualisation.docker.enable = true;"),
        ("ID=void\n", "https://docs.docker.com/engine/install/"),
    ],
)
def test_a_distribution_without_apt_is_refused_with_its_own_steps(text, line):
    with pytest.raises(EnvironmentMissing) as caught:
        refuse(_release(text), ("packages", "docker", "amd_access"))
    assert caught.value.id == "RT095"
    assert line in caught.value.fix[0]
    assert caught.value.fix[1].endswith("selfhost prepare --only amd_access")


def test_an_image_of_fedora_gets_no_lines_of_dnf():
    here = distribution(Recorded({"files": {"/etc/os-release": "ID=fedora\n", "/run/ostree-booted": ""}}))
    with pytest.raises(EnvironmentMissing) as caught:
        refuse(here, ("docker",))
    assert "dnf" not in " ".join(caught.value.fix)


def test_alpine_is_told_that_the_toolkit_can_t_be_there():
    with pytest.raises(EnvironmentMissing, match="Alpine") as caught:
        refuse(_release('ID=alpine\nPRETTY_NAME="Alpine Linux v3.23"\n'), ("nvidia_container_toolkit",))
    assert "needs glibc" in caught.value.fix[0]


@pytest.mark.parametrize(
    "text", ["ID=debian\n", "ID=linuxmint\nID_LIKE='ubuntu debian'\n", "ID=pop\nID_LIKE=ubuntu\n", ""]
)
def test_what_is_built_on_debian_is_not_refused(text):
    refuse(_release(text), ("packages", "docker"))


def test_groups_are_everybody_s_so_no_distribution_is_refused_for_them():
    refuse(_release("ID=fedora\n"), ("amd_access",))


def test_the_question_says_what_a_restart_ends_and_who_becomes_root():
    host, asked = _with("bare-no-cards", _engine("docker")), {"docker_user": "ana"}
    idle = question(host, ("packages", "docker"), asked)
    assert "ana joins the group docker, which may do all that root may" in idle
    assert "only while no container runs" in idle
    assert "stops the containers that run now" in question(host, ("docker",), {"docker_restart": "always"})
    assert "restart" not in question(host, ("docker",), {"docker_restart": "never"})
    assert "restart" not in question(_with("bare-no-cards"), ("docker",), {})
