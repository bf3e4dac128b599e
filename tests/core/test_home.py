import os
import pwd
from pathlib import Path

import pytest

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.home import home
from selfhost.core.paths import Paths


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_home_the_password_database_says_it(env):
    assert home(env) == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_home_is_asked_first():
    assert home({"HOME": "/home/ana"}) == Path("/home/ana")


def test_a_user_without_any_home_is_told_what_to_set(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_001)  # a number that no password database has
    with pytest.raises(EnvironmentMissing) as refused:
        home({})
    assert refused.value.id == "RT053"
    assert "4000000001" in refused.value.why
    assert "export HOME=" in refused.value.fix[0]


def test_folders_that_are_all_named_need_no_home(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_001)
    assert Paths.of({"XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/c"}).state == Path("/s/selfhost")
