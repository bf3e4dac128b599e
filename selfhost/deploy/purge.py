"""`down --purge`: the compile caches too, and never those that another deployment uses."""

from collections.abc import Mapping, Sequence

from selfhost.core.errors import InputError
from selfhost.deploy.cluster_down import volumes_in_words
from selfhost.deploy.journal import Journal
from selfhost.deploy.runtime import container_runtime
from selfhost.deploy.state import State
from selfhost.deploy.workplace import Workplace
from selfhost.runtimes.base import Runtime
from selfhost.runtimes.deployments import names


def caches(state: State) -> tuple[str, ...]:
    """The volumes that this deployment's starts have made or used, whatever its plan says now."""
    entries, _ = Journal(state.journal_file).read()
    made = (str(one.get("path")) for one in Journal(state.journal_file).made(entries) if one.get("kind") == "volume")
    return tuple(dict.fromkeys(made))


def agreed(work: Workplace, state: State, runtimes: Sequence[Runtime] = ()) -> None:
    """Ask before anything is ended. Raises InputError for a no, and where nobody can answer."""
    wanted = caches(state)
    claims = next((words for one in runtimes if one.info.cluster and (words := volumes_in_words(state, one))), "")
    if not wanted and not claims:
        return
    volumes = claims or f"its compile caches ({', '.join(wanted)})"
    then = "the next start fetches them again" if claims else "the next start compiles anew"
    if work.ask(f"{state.name}: end it and remove its files, its key and {volumes}; {then}?"):
        return
    raise InputError(
        f"nothing was done: {state.name} is as it was",
        why="The answer was no.",
        fix=(f"take it down and keep the caches:\nselfhost down {state.name}",),
        id="RT122",
    )


def remove_caches(
    work: Workplace, state: State, runtimes: Sequence[Runtime]
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """What is gone, and why each of the others stays."""
    users = _users(work, state)
    gone: list[str] = []
    stays: dict[str, str] = {}
    for volume in caches(state):
        why = f"`{users[volume]}` uses it" if volume in users else _removed(runtimes, volume)
        if why:
            stays[volume] = why
        else:
            gone.append(volume)
    return tuple(gone), stays


def _removed(runtimes: Sequence[Runtime], volume: str) -> str:
    """Of each engine that this deployment ran in: why it stays in one of them."""
    with_volumes = (container_runtime(one) for one in runtimes if one.info.containers)
    return next((why for one in with_volumes if (why := one.remove_volume(volume))), "")


def _users(work: Workplace, state: State) -> Mapping[str, str]:
    """The volume of each other deployment of this user, running or not. Other users' containers hold theirs."""
    found = {}
    for name in names(work.paths):
        if name != state.name:
            for volume in caches(State(work.paths, name, say=work.say)):
                found[volume] = name
    return found
