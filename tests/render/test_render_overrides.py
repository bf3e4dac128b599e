"""What a person puts into `overrides/` counts as the file that runs, and is named where it stands."""

import pytest

from selfhost.core.errors import InputError
from selfhost.deploy.read_back import read_bundle
from selfhost.render.targets import render
from selfhost.shapes.workload import CdiName, Mount
from tests.render.golden_cases import Case, place_of, plan_of

OVERRIDE = "overrides/compose.override.yaml"
DROP_IN = "overrides/selfhost-it.container.d/10-mine.conf"


def files(target: str, **more: str) -> dict[str, str]:
    plan = plan_of(Case("rtx4090", "rtx4090", "qwen3-4b", target))
    return {**render(target, plan, place_of(plan)).files, **more}


def test_a_compose_override_is_merged_as_compose_does_it() -> None:
    text = """services:
  it:
    environment: {VLLM_LOGGING_LEVEL: DEBUG, USER: me}
    stop_grace_period: 2m
    labels: {mine: "1"}
    volumes: ["/srv/lora:/lora:ro"]
    restart: unless-stopped
"""
    plain, changed = (
        read_bundle("compose", files("compose")),
        read_bundle("compose", files("compose", **{OVERRIDE: text})),
    )
    assert changed.env == {**plain.env, "VLLM_LOGGING_LEVEL": "DEBUG", "USER": "me"}
    assert changed.stop_grace_s == 120
    assert changed.labels == {**plain.labels, "mine": "1"}
    added = [(mount.source, mount.target, mount.read_only) for mount in changed.mounts if mount not in plain.mounts]
    assert ("/srv/lora", "/lora", True) in added
    assert changed.restart == "unless-stopped"
    assert changed.argv == plain.argv
    spot = changed.spot("env.USER")
    assert spot is not None
    assert (spot.path, spot.line) == (OVERRIDE, 3)


def test_an_override_with_a_further_service_is_refused() -> None:
    with pytest.raises(InputError, match="2 services") as error:
        read_bundle("compose", files("compose", **{OVERRIDE: "services: {web: {image: caddy}}\n"}))
    assert error.value.id == "CF086"


def test_only_the_override_below_overrides_counts() -> None:
    other = {"compose.override.yaml": "services: {it: {user: root}}\n", ".env": "X=1\n"}
    assert read_bundle("compose", files("compose", **other)) == read_bundle("compose", files("compose"))


def test_a_drop_in_adds_to_the_unit_and_its_lines_are_its_own() -> None:
    text = "[Container]\nEnvironment=VLLM_LOGGING_LEVEL=DEBUG\nAddDevice=nvidia.com/gpu=1\n[Service]\nRestart=no\n"
    plain, changed = (
        read_bundle("quadlet", files("quadlet")),
        read_bundle("quadlet", files("quadlet", **{DROP_IN: text})),
    )
    assert changed.env == {**plain.env, "VLLM_LOGGING_LEVEL": "DEBUG"}
    assert [one.name for one in changed.cdi][-1] == "1"
    assert isinstance(changed.cdi[0], CdiName)
    assert changed.restart == "no"
    spot = changed.spot("env.VLLM_LOGGING_LEVEL")
    assert spot is not None
    assert (spot.path, spot.line) == (DROP_IN, 2)


def test_a_drop_in_of_another_unit_does_not_count() -> None:
    other = {
        "overrides/other.container.d/a.conf": "[Container]\nUser=0\n",
        "overrides/selfhost-it.container.d/a.txt": "x",
    }
    assert read_bundle("quadlet", files("quadlet", **other)) == read_bundle("quadlet", files("quadlet"))


def test_names_of_volume_and_network_are_those_of_their_units() -> None:
    read = read_bundle("quadlet", files("quadlet"))
    assert read.network == "selfhost-it"
    volumes = [mount for mount in read.mounts if mount.kind == "volume"]
    assert [mount.source.startswith("selfhost-cache-") for mount in volumes] == [True]
    assert all(isinstance(mount, Mount) for mount in read.mounts)


def test_the_folder_is_part_of_the_path() -> None:
    assert read_bundle("quadlet", files("quadlet"), folder="/srv/it").path == "/srv/it/selfhost-it.container"
    assert read_bundle("compose", files("compose"), folder="/srv/it").path == "/srv/it/compose.yaml"


@pytest.mark.parametrize("target", ["compose", "docker", "quadlet", "process"])
def test_a_bundle_without_its_main_file_is_refused(target: str) -> None:
    with pytest.raises(InputError) as error:
        read_bundle(target, {"README.txt": "x"})
    assert error.value.id == "CF088"


def test_a_script_that_starts_nothing_is_refused() -> None:
    with pytest.raises(InputError) as error:
        read_bundle("docker", {"run.sh": "echo hello\n"})
    assert error.value.id == "CF087"


@pytest.mark.parametrize("target", ["compose", "docker", "quadlet"])
def test_bare_files_mean_the_same_and_give_no_reasons(target: str) -> None:
    plan = plan_of(Case("rtx4090", "rtx4090", "qwen3-4b", target))
    bare, full = (render(target, plan, place_of(plan), bare=bare).files for bare in (True, False))
    first = next(iter(full))
    assert plan.container is not None
    why = plan.container.reasons["cap_drop"]
    assert why in full[first]
    assert why not in bare[first]
    assert bare[first].splitlines()[1] == full[first].splitlines()[1]  # the plan's digest
    one, other = read_bundle(target, bare), read_bundle(target, full)
    assert (one.argv, one.env, one.mounts, one.health) == (other.argv, other.env, other.mounts, other.health)
