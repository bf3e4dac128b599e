"""From an invocation to the workplace that deploy acts in."""

from selfhost.cli._context import Invocation
from selfhost.deploy.workplace import Workplace


def workplace(at_work: Invocation, *, progress: str = "auto", yes: bool = False) -> Workplace:
    return Workplace(
        env=at_work.env,
        system=at_work.system,
        paths=at_work.paths,
        sink=at_work.sink(progress),
        ask=lambda question: at_work.console.confirm(question, yes=yes),
        interactive=not yes and at_work.console.may_ask,
        say=at_work.console.finding,
    )
