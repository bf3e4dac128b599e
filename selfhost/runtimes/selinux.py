"""Whether SELinux would keep a container from reading what it mounts."""

from selfhost.core.errors import EnvironmentMissing
from selfhost.core.system import System
from selfhost.runtimes.container_client import Client
from selfhost.shapes.workload import Workload

_ENFORCE = "/sys/fs/selinux/enforce"
_READABLE = ("container_file_t", "container_ro_file_t", "svirt_sandbox_file_t", "container_share_t")


def check(system: System, client: Client, workload: Workload) -> None:
    """Raises EnvironmentMissing for a bind whose label a confined container may not read."""
    try:
        enforcing = system.read(_ENFORCE).strip() == "1"
    except OSError:
        return
    unconfined = any(option in ("label=disable", "label:disable") for option in workload.security_opt)
    if not enforcing or unconfined or workload.privileged or not client.selinux:
        return
    for mount in workload.mounts:
        if mount.kind != "bind" or mount.source.startswith("/dev"):
            continue
        done = system.run(("stat", "--format", "%C", mount.source), timeout_s=5.0)
        label = done.stdout.strip()
        if done.ok and label.count(":") >= 2 and label.split(":")[2] not in _READABLE:
            raise EnvironmentMissing(
                f"SELinux would keep the container out of {mount.source}",
                why=f"Its label is {label}; {client.kind} confines containers to files labelled container_file_t.",
                fix=(
                    f"label the folder, as `:z` does:\nsudo chcon -R -t container_file_t {mount.source}",
                    f"and for good:\nsudo semanage fcontext --add --type container_file_t '{mount.source}(/.*)?'",
                ),
                id="RT072",
            )
