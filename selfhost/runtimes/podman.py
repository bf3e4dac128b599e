"""The runtime `podman`, by its command."""

from selfhost.core.paths import Paths
from selfhost.core.system import System
from selfhost.runtimes.base import RuntimeInfo
from selfhost.runtimes.cli_client import CliClient
from selfhost.runtimes.container_runtime import ContainerRunner


def podman_runtime(paths: Paths, system: System) -> ContainerRunner:
    """Nothing starts its containers after a reboot by itself: that is what Quadlet is for."""
    remote = system.env.get("CONTAINER_HOST", "")
    local = not remote or remote.startswith("unix://")
    info = RuntimeInfo(
        name="podman", isolates=True, restarts=True, survives_reboot=False, sees_processes=local, containers=True
    )
    return ContainerRunner(info, CliClient("podman", system, where=remote, local=local), paths, system)
