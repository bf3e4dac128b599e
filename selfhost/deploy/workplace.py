"""What every deploy action is handed: where it works, and where it reports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem, System
from selfhost.shapes.event import Sink
from selfhost.shapes.finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """`ask` puts a yes-or-no question to the user, or refuses to without a terminal; `say` shows a finding."""

    env: Mapping[str, str]
    system: LocalSystem
    paths: Paths
    sink: Sink
    ask: Callable[[str], bool]
    interactive: bool
    """Somebody is there to be asked."""
    say: Callable[[Finding], None]
    eyes: System | None = None
    """Through which the machine is looked at; None for `system` itself."""
    taken_ports: frozenset[int] = frozenset()
    """Those of other services of the same file: no port that is chosen moves there."""
    taken_cards: frozenset[str] = frozenset()
    """Those of other services of the same file, by stable id: none of them is chosen."""
    for_later: bool = False
    """Files are written, nothing is started now: they do not depend on which ports are free at this moment."""
