from pathlib import Path

import pytest

from selfhost.core.errors import InputError
from selfhost.core.names import check_name, slug
from selfhost.core.paths import Paths


def test_folders_follow_xdg_and_relative_values_are_ignored():
    env = {"HOME": "/home/ana", "XDG_STATE_HOME": "/var/state", "XDG_CACHE_HOME": "relative/cache"}
    paths = Paths.of(env)
    assert paths.deployment("qwen3-4b") == Path("/var/state/selfhost/deployments/qwen3-4b")
    assert paths.traces == Path("/var/state/selfhost/log")
    assert paths.engines == Path("/home/ana/.cache/selfhost/engines")


@pytest.mark.parametrize("name", ["a", "qwen3-4b", "llama-3.1_8b", "0", "x" * 63])
def test_a_name_that_can_be_a_folder_and_a_container_passes(name):
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "-a", "a-", "Qwen", "a b", "ä", "x" * 64, "a\n"])
def test_any_other_name_is_refused_with_one_that_works(name):
    with pytest.raises(InputError) as refused:
        check_name(name)
    suggestion = refused.value.fix[0].rpartition(" ")[2]
    assert check_name(suggestion) == suggestion


@pytest.mark.parametrize(
    ("text", "name"),
    [("Qwen/Qwen3-4B", "qwen3-4b"), ("./models/My Model/", "my-model"), ("///", ""), ("x" * 62 + "-yz", "x" * 62)],
)
def test_the_slug_is_the_nearest_valid_name(text, name):
    assert slug(text) == name
