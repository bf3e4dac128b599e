"""The answer of `status`, apart from its options: the plain call is answered without the parser of options."""

from selfhost.cli._context import Invocation
from selfhost.runtimes.deployments import names


def answer(at_work: Invocation, *, name: str | None, json: bool) -> None:
    """Say what runs here, or what became of the deployment `name`."""
    found = []
    if name is not None or names(at_work.paths):
        from selfhost.deploy.status import status

        found = status(at_work.paths, at_work.system, say=at_work.console.finding, only=name)
    if name is not None and not found:
        from selfhost.core.names import check_name
        from selfhost.deploy.names import unknown

        raise unknown(at_work.paths, check_name(name))
    if json:
        rows = [row.to_json() for row in found]
        at_work.console.json({"schema": "selfhost.status/1", "ok": True, "deployments": rows})
    elif found:
        from selfhost.deploy.status_words import lines

        at_work.console.result("\n\n".join("\n".join(lines(row)) for row in found))
    else:
        at_work.console.note("nothing is deployed here\n  → selfhost up")
