"""The runtime `docker`: by its SDK; where the daemon is reached by ssh, by its own command."""

from selfhost.core.paths import Paths
from selfhost.core.system import System
from selfhost.runtimes.base import RuntimeInfo
from selfhost.runtimes.cli_client import CliClient
from selfhost.runtimes.container_runtime import ContainerRunner
from selfhost.runtimes.docker_address import address_of
from selfhost.runtimes.docker_client import DockerClient


def docker_runtime(paths: Paths, system: System) -> ContainerRunner:
    """Raises EnvironmentMissing for a context that names no daemon."""
    address = address_of(system)
    # By ssh the SDK would need an ssh library of its own; Docker's command uses the user's ssh.
    by_command = CliClient("docker", system, where=str(address), local=False)
    client = by_command if address.is_ssh else DockerClient(address, system)
    info = RuntimeInfo(
        name="docker",
        isolates=True,
        restarts=True,
        survives_reboot=True,
        sees_processes=client.local,
        containers=True,
    )
    return ContainerRunner(info, client, paths, system)
