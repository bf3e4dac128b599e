"""The cards that detect sees on a recorded machine."""

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.shapes.host import Accelerator


def cards(of: Recorded) -> tuple[Accelerator, ...]:
    return detect(of).accelerators


def only(of: Recorded) -> Accelerator:
    (card,) = cards(of)
    return card
