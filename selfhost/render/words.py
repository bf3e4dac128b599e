"""Arguments as a person would set them in lines."""

import re
from collections.abc import Sequence

_FLAG = re.compile(r"--[A-Za-z]")


def by_flag(words: Sequence[str]) -> list[list[str]]:
    """One line for each flag with its values."""
    lines: list[list[str]] = []
    for word in words:
        if _FLAG.match(word) or not lines:
            lines.append([word])
        else:
            lines[-1].append(word)
    return lines
