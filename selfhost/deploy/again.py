"""The command that starts a deployment again."""

from dataclasses import replace

from selfhost.deploy.state import State
from selfhost.plan.command_line import command_line


def again(state: State) -> str:
    """The very command that starts this deployment, whatever it was called with; empty when nobody knows any more."""
    service = state.service()
    if service is None:
        return ""
    return command_line("up", service if "name" in service.origins else replace(service, name=""))
