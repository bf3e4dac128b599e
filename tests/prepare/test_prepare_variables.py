"""`--set` against the roles' own specifications, and those against the roles."""

from pathlib import Path

import pytest
import yaml

from selfhost.core.errors import InputError
from selfhost.deploy.prepare_variables import of_roles, read

ROLES = sorted((Path(__file__).parents[2] / "playbooks" / "roles").iterdir())


def test_values_have_the_form_that_the_role_wants():
    assert read(
        [
            "docker_source=docker.com",
            "docker_lock_timeout_s=5",
            "docker_packages=docker.io, docker-cli",
            'docker_settings={"log-driver": "local"}',
            "nvidia_container_toolkit_url=http://mirror/a=b",
        ]
    ) == {
        "docker_source": "docker.com",
        "docker_lock_timeout_s": 5,
        "docker_packages": ["docker.io", "docker-cli"],
        "docker_settings": {"log-driver": "local"},
        "nvidia_container_toolkit_url": "http://mirror/a=b",
    }


@pytest.mark.parametrize(
    ("setting", "id", "words"),
    [
        ("docker_sorce=docker.com", "RT110", "docker_source"),
        ("ansible_become=false", "RT110", "There are: amd_access_user"),
        ("docker_source", "RT110", "by its name"),
        ("docker_source=snap", "RT112", "one of: distribution, docker.com"),
        ("docker_lock_timeout_s=-1", "RT112", "a whole number"),
        ("docker_settings=[1]", "RT112", "a JSON object"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_nearest(setting, id, words):
    with pytest.raises(InputError) as caught:
        read([setting])
    assert caught.value.id == id
    assert words in caught.value.why


def test_a_variable_of_a_role_that_does_not_run_is_refused():
    with pytest.raises(InputError) as caught:
        of_roles({"docker_source": "docker.com"}, ("packages", "podman"))
    assert caught.value.id == "RT111"


@pytest.mark.parametrize("role", ROLES, ids=lambda one: one.name)
def test_every_variable_of_a_role_is_specified_with_its_default(role):
    said = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    file = role / "defaults" / "main.yml"
    defaults = yaml.safe_load(file.read_text()) if file.exists() else {}
    assert set(said) == set(defaults)
    for name, one in said.items():
        assert name.startswith(f"{role.name}_")
        assert one["description"]
        assert "default" not in one or one["default"] == defaults[name]
