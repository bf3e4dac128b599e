"""What every engine module does alike: selfhost's own flags, each with its values, beside those of the user. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from selfhost.core.errors import InputError
from selfhost.engines.flags import Given, Vocabulary
from selfhost.engines.launch import Launch
from selfhost.shapes.plan import ReasoningPlan

Planned = list[tuple[str, ...]]
"""Flags in their order: the name, then its values."""

QUIET = {
    # Everything it needs is on the disk by now; a server must not depend on a hub, nor carry a hub token.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    # Lines of several processes reach the log in the order in which they were written.
    "PYTHONUNBUFFERED": "1",
}
"""Variables for an engine that asks and tells nobody outside."""


def grouped(words: Sequence[str]) -> Planned:
    """`--a 1 2 --b` as flags with their values."""
    found: list[list[str]] = []
    for word in words:
        if word.startswith("--") or not found:
            found.append([word])
        else:
            found[-1].append(word)
    return [tuple(group) for group in found]


def thinking(reasoning: ReasoningPlan) -> Planned:
    """Parser, template defaults and switches of the mode; both engines name these flags alike."""
    flags: Planned = [("--reasoning-parser", reasoning.parser)] if reasoning.parser else []
    if reasoning.template_defaults:
        # The server's own default makes a client that sends nothing get the mode that was asked for.
        defaults = json.dumps(reasoning.template_defaults, separators=(",", ":"), sort_keys=True)
        flags.append(("--default-chat-template-kwargs", defaults))
    return [*flags, *grouped(reasoning.server_flags)]


def beside(planned: Planned, given: Iterable[Given], *, replaced: set[str]) -> tuple[str, ...]:
    """All words of the command line: what is planned and not replaced, then the user's own."""
    tokens = [word for flag in planned if flag[0] not in replaced for word in flag]
    for flag in given:
        tokens += flag.tokens
    return tuple(tokens)


def replaced_by(given: Iterable[Given], *, vocabulary: Vocabulary) -> set[str]:
    """Names of planned flags that the user's flags replace."""
    names: set[str] = set()
    for flag in given:
        known = vocabulary.flag(flag.name)
        names.update((flag.name, *(known.displaces if known else ())))
    return names


def check_code(launch: Launch, asked: Mapping[str, str]) -> None:
    """Raise InputError for code out of a repository that only the engine was told to run."""
    if asked.get("--trust-remote-code") == "true" and not launch.trust_remote_code:
        raise InputError(
            "`--trust-remote-code` is passed to the engine, but selfhost was not asked to allow it",
            why="It runs Python that came with the model; asked through selfhost, the revision is pinned.",
            fix=("read that code, then:\nselfhost up MODEL --trust-remote-code",),
            id="PL064",
        )


def check_devices(
    launch: Launch, asked: Mapping[str, str], *, sizes: Sequence[str], count: Callable[[str], int | None]
) -> None:
    """Raise InputError for sizes that multiply to more devices than are allocated. `sizes`: tensor, pipeline, data."""
    allocated = max(1, len(launch.devices))
    planned = (launch.cut.tensor, launch.cut.pipeline, launch.cut.data)
    needed = 1
    for name, default in zip(sizes, planned, strict=True):
        needed *= count(asked.get(name, "")) or default
    if needed > allocated and any(name in asked for name in sizes):
        spread = " ".join(f"{name} {asked[name]}" for name in sizes if name in asked)
        raise InputError(
            f"`{spread}` needs {needed} devices; {allocated} {'is' if allocated == 1 else 'are'} allocated",
            why="Tensor, pipeline and data parallel sizes multiply, and each part takes a device of its own.",
            fix=("leave it out: selfhost spreads the model over the devices it allocated",),
            id="PL067",
        )
