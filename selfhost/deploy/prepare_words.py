"""What is said before anything is changed: which roles, who becomes as powerful as root, and what ends by a restart."""

from collections.abc import Mapping, Sequence

from selfhost.shapes.host import Host, Known

_RESTARTING = ("docker", "nvidia_container_toolkit")


def question(host: Host, roles: Sequence[str], variables: Mapping[str, object]) -> str:
    names = ", ".join(role for role in roles if role != "packages")
    said = (f"Install and set up on this machine: {names}.", _root(roles, variables), _restart(host, roles, variables))
    return " ".join((*filter(None, said), "Go on?"))


def _root(roles: Sequence[str], variables: Mapping[str, object]) -> str:
    user = variables.get("docker_user")
    joins = user and user != "root" and "docker" in roles
    return f"{user} joins the group docker, which may do all that root may." if joins else ""


def _restart(host: Host, roles: Sequence[str], variables: Mapping[str, object]) -> str:
    """Only of a Docker that answers here: one that is yet to come has no containers."""
    engines = host.surroundings.engines if host.surroundings else ()
    there = any(one.kind == "docker" and isinstance(one.answers, Known) and one.answers.value for one in engines)
    ways = {str(variables.get(f"{role}_restart", "idle")) for role in _RESTARTING if role in roles}
    if not there or not ways or ways == {"never"}:
        return ""
    if "always" in ways:
        return "New settings restart Docker, which stops the containers that run now."
    return (
        "New settings restart Docker only while no container runs; otherwise they wait, and the line for it is named."
    )
