"""What an engine would refuse of a command line: by its parser, or later by a name that its parser lets pass."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any


def refusals(line: Sequence[str], heard: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
    """`heard` is the parser's word on this line, `answer` what the engine knows in all."""
    found = [str(heard["refused"])] if "refused" in heard else []
    known = set(answer["flags"])
    found += [f"{word} is no flag" for word in line if word.startswith("--") and word not in known]  # shortened too
    for word, value in pairwise(line):
        names = answer["values"].get(word)
        if names is not None and value not in names:
            found.append(f"{word} has no {value}")
    return found
