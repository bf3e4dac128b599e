"""Lines of a rendered file with the reason for each beside it, or above it where there is no room."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from selfhost.render.escape import Escaped, comment

WIDTH = 120
_ALSO = {"log_driver": "log_options"}
"""Lines that begin what another key has the reason for."""


@dataclass(frozen=True, slots=True)
class Line:
    """`text` is in the words of its language already. `joined`: the command goes on in the next line."""

    text: Escaped
    why: str = ""
    depth: int = 0
    joined: bool = False


class Reasons:
    """Reasons by Workload key; each is said once, at the first line that it belongs to."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self._left = dict(reasons)

    def of(self, key: str) -> str:
        """Of `key`, or of the longest beginning of it that has one."""
        while key:
            for name in (key, _ALSO.get(key, key)):
                if name in self._left:
                    return self._left.pop(name)
            key = key.rpartition(".")[0]
        return ""


def yaml_line(line: Line) -> Escaped:
    pad = "  " * line.depth
    text = f"{pad}{line.text}"
    why = comment(line.why)
    if not why:
        return Escaped(text)
    if len(text) + len(why) + 4 <= WIDTH:
        return Escaped(f"{text}  # {why}")
    return Escaped(f"{_above(why, pad)}\n{text}")


def unit_line(line: Line) -> Escaped:
    """Systemd knows no comment at the end of a line."""
    pad = "  " * line.depth
    text = pad + line.text + (" \\" if line.joined else "")
    return Escaped(f"{_above(comment(line.why), pad)}\n{text}" if line.why else text)


def shell_line(line: Line) -> Escaped:
    """One option of a command over several lines; no comment can stand among them."""
    return Escaped("  " * line.depth + line.text + (" \\" if line.joined else ""))


def _above(why: str, pad: str) -> str:
    marked = f"{pad}# "
    wrapped = textwrap.wrap(why, WIDTH, initial_indent=marked, subsequent_indent=marked, break_on_hyphens=False)
    return "\n".join(wrapped)
