"""Which deployment is meant, and what is said when there is no such one."""

import difflib

from selfhost.core.errors import InputError
from selfhost.core.paths import Paths
from selfhost.runtimes.deployments import names


def the_only(paths: Paths, name: str | None) -> str:
    """`name`, or the one deployment there is. Raises InputError when there is none or more than one."""
    if name is not None:
        return name
    known = names(paths)
    if len(known) == 1:
        return known[0]
    if not known:
        raise InputError("nothing is deployed here", fix=("start something:\nselfhost up",), id="RT002")
    raise InputError(
        f"{len(known)} deployments are here; which one?",
        fix=(f"name it, one of: {', '.join(known)}",),
        id="RT003",
    )


def unknown(paths: Paths, name: str) -> InputError:
    """The error for a name under which nothing was ever started."""
    if paths.deployment(name).exists():
        return InputError(
            f"`{name}` has no endpoint: its engine was never started",
            why="An `up` began here and did not get that far.",
            fix=("start it with the same command again; or remove what it left:\n" + f"selfhost down {name}",),
            id="RT006",
        )
    near = difflib.get_close_matches(name, names(paths), n=3, cutoff=0.7)
    fix = [f"perhaps {' or '.join(f'`{n}`' for n in near)}"] if near else []
    fix.append("see what is here:\nselfhost status")
    return InputError(f"nothing named `{name}` is deployed here", fix=fix, id="RT001")
