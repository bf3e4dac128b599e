"""What an engine module offers: one launch in, arguments and environment out. Pure."""

from typing import Protocol

from selfhost.engines import sglang, vllm
from selfhost.engines.builds import unknown_engine
from selfhost.engines.launch import Launch

__all__ = ["Engine", "Launch", "engine"]


class Engine(Protocol):
    """The contract of an engine module, such as `selfhost.engines.vllm`."""

    @property
    def KEY_VARIABLE(self) -> str:  # noqa: N802 - a module constant seen through a Protocol
        """Environment variable through which the server gets its key.

        Empty for an engine that can take none without showing it: that one has no key, and listens on loopback only.
        """
        ...

    @property
    def PHASES(self) -> tuple[str, ...]:  # noqa: N802 - a module constant seen through a Protocol
        """Names of the start-up phases, in order."""
        ...

    def argv(self, launch: Launch) -> tuple[str, ...]:
        """Arguments behind `python -m MODULE`. Raises InputError when the user's flags contradict the launch.

        An image of the engine takes the same, behind its own entrypoint or Image.command.
        """
        ...

    def env(self, launch: Launch) -> dict[str, str]:
        """Variables to add to the engine's environment; no secret."""
        ...

    def overridden(self, extra: tuple[str, ...]) -> dict[str, str]:
        """The user's flags by full name with their values; switches are `true` or `false`. Raises InputError."""
        ...

    def moves_memory(self, extra: tuple[str, ...]) -> tuple[str, ...]:
        """Full names of those of the user's flags that change how much memory the engine takes. Raises InputError."""
        ...

    def count(self, text: str) -> int | None:
        """A number in the spelling that the engine's flags take; None for `auto` and for no number."""
        ...


ENGINES: dict[str, Engine] = {"vllm": vllm, "sglang": sglang}


def engine(name: str) -> Engine:
    """Return the module of the engine `name`. Raises InputError."""
    if name not in ENGINES:
        raise unknown_engine(name)
    return ENGINES[name]
