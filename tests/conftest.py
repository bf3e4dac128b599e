"""Every test gets a home, XDG folders and a working directory of its own; pip's settings and HF_HOME stay."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, so that a landing does not depend on luck; at the desk: --hypothesis-profile random
settings.register_profile("same", derandomize=True, deadline=None)  # a busy machine fails no test
settings.register_profile("random", derandomize=False, deadline=None)
settings.load_profile("same")

_SPEECH = ("NO_COLOR", "FORCE_COLOR", "CI", "COLUMNS", "SELFHOST_DEBUG")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """A folder of this run alone: pytest's own lies beside those of other runs and is cleared while those still go."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:  # started in the background: programs of tests would inherit it
            signal.signal(number, usual)
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        config.option.basetemp = tempfile.mkdtemp(prefix="selfhost-tests-")
        config.stash[_OWN] = Path(config.option.basetemp)


def pytest_sessionfinish(session, exitstatus):
    """Left after a failure, to be looked at; and left where something is still mounted in it."""
    folder = session.config.stash.get(_OWN, None)
    mounted = Path("/proc/self/mounts")
    if exitstatus == 0 and folder and not (mounted.exists() and f" {folder}/" in mounted.read_text()):
        shutil.rmtree(folder, ignore_errors=True)


_OWN = pytest.StashKey[Path]()
_CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
_STATE = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")


@pytest.fixture(scope="session")
def engine_python():
    """The interpreter of the managed environment that `make up` made, or None where there is none."""
    from selfhost.core.paths import Paths
    from selfhost.engines.builds import choose
    from selfhost.fetch import venv

    paths = Paths.of({"HOME": "/", "XDG_CACHE_HOME": _CACHE, "XDG_STATE_HOME": _STATE})
    ready = venv.ready(choose(backend="cpu", asked=None), paths=paths)
    return ready.python if ready is not None else None


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
