"""The variables of a container with their values, the secret ones included. Never for a command line."""

from pathlib import Path

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.system import System
from selfhost.shapes.workload import EnvSource, Workload


def variables_of(workload: Workload, system: System) -> dict[str, str]:
    """Those of the text over those of the env_files; one that is passed through comes from this process."""
    found: dict[str, str] = {}
    for path in workload.env_files:
        found |= _of_file(path)
    for name, value in workload.env.items():
        if workload.env_sources.get(name) is not EnvSource.ENV_FILE or name not in found:
            found[name] = value
    for name, source in workload.env_sources.items():
        if source is EnvSource.PASSED_THROUGH and name in system.env:
            found[name] = system.env[name]
    return found


def _of_file(path: str) -> dict[str, str]:
    """`NAME=value` lines as `docker run --env-file` reads them: no quotes, `#` begins a comment line."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentMissing(
            f"{path} can't be read: {error.strerror if isinstance(error, OSError) else 'it is no text'}",
            why="It holds the engine's key, which is handed to the container as a variable.",
            fix=("look who may read it:\n" + f"ls -l {path}",),
            id="RT089",
        ) from None
    pairs = (line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return {name.strip(): value for name, equals, value in pairs if equals}
