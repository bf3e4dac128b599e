"""What of the user's environment an engine is started with."""

from collections.abc import Mapping

from selfhost.core.redact import is_secret

DROPPED: Mapping[str, str] = {
    # Python of the shell, not of the engine's environment: docs.python.org/3/using/cmdline.html
    "PYTHONPATH": "modules of another interpreter would be imported first",
    "PYTHONHOME": "moves the standard library",
    "PYTHONSTARTUP": "only for shells",
    "PYTHONUSERBASE": "moves the user's site-packages",
    "PYTHONWARNINGS": "could turn an engine's warnings into errors",
    "PYTHONOPTIMIZE": "removes assertions that engines rely on",
    "VIRTUAL_ENV": "names the environment of selfhost itself",
    "CONDA_PREFIX": "names an environment that is not the engine's",
    # The engine serves weights that are already here and answers its clients; it calls nobody. A proxy would only
    # catch what its processes say to each other over loopback (when no_proxy lacks 127.0.0.1), and its URL may hold a
    # password. An engine that has to fetch something gets a proxy from its plan.
    "HTTP_PROXY": "loopback must not go through a proxy",
    "HTTPS_PROXY": "loopback must not go through a proxy",
    "ALL_PROXY": "loopback must not go through a proxy",
    "FTP_PROXY": "loopback must not go through a proxy",
    # A token by path: huggingface.co/docs/huggingface_hub/package_reference/environment_variables
    "HF_TOKEN_PATH": "names a file with a hub token",
    # Marks of selfhost.runtimes.members, inherited when `selfhost` is run by a process of an engine.
    "SELFHOST_DEPLOYMENT": "our own mark, of another engine",
    "SELFHOST_FOLDER": "our own mark, of another engine",
    "SELFHOST_INSTANCE": "our own mark, of another engine",
    "SELFHOST_PLAN": "our own mark, of another engine",
    "SELFHOST_PORT": "our own mark, of another engine",
    "SELFHOST_KEEPER": "our own mark, of a keeper",
}

ADDED: Mapping[str, str] = {
    "PYTHONUNBUFFERED": "1",  # the log is read while it is written; a killed engine's last lines must be in it
    "PYTHONNOUSERSITE": "1",
    "PYTHONSAFEPATH": "1",  # `python -m` would otherwise put the working directory before the engine's own modules
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",  # huggingface_hub: do not send the token that lies in $HF_HOME
    # setproctitle (which vLLM uses to name its processes) writes over the environment that /proc shows, and with it
    # over the marks by which they are found again; with this it leaves it alone (its documentation).
    "SPT_NOENV": "1",
}


def engine_environment(user: Mapping[str, str]) -> dict[str, str]:
    """The user's environment without anything secret or of another Python; `TOKENIZERS_PARALLELISM` and such stay."""
    kept = {key: value for key, value in user.items() if key.upper() not in DROPPED and not is_secret(key)}
    return {**kept, **ADDED}
