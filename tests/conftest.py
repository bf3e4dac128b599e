"""Every test gets a home, XDG folders and a working directory of its own; pip's settings and HF_HOME stay."""

import os

import pytest

_SPEECH = ("NO_COLOR", "FORCE_COLOR", "CI", "COLUMNS", "SELFHOST_DEBUG")


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    """The temporary home."""
    home = tmp_path_factory.mktemp("home")
    work = home / "work"
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for kind, place in {
        "STATE": ".local/state",
        "CACHE": ".cache",
        "CONFIG": ".config",
        "DATA": ".local/share",
    }.items():
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / place))
    for variable in [*_SPEECH, *(name for name in os.environ if name.startswith("SELFHOST_"))]:
        if variable != "SELFHOST_TEST_CACHE":
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(work)
    return home
