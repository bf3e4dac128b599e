"""What an engine module offers: one launch in, arguments and environment out. Pure."""

from typing import Protocol

from selfhost.core.errors import InputError
from selfhost.engines import vllm
from selfhost.engines.launch import Launch

__all__ = ["Engine", "Launch", "engine"]


class Engine(Protocol):
    """The contract of an engine module, such as `selfhost.engines.vllm`."""

    @property
    def KEY_VARIABLE(self) -> str:  # noqa: N802 - a module constant seen through a Protocol
        """Environment variable through which the server gets its key."""
        ...

    @property
    def PHASES(self) -> tuple[str, ...]:  # noqa: N802 - a module constant seen through a Protocol
        """Names of the start-up phases, in order."""
        ...

    def argv(self, launch: Launch) -> tuple[str, ...]:
        """Arguments behind `python -m MODULE`. Raises InputError when the user's flags contradict the launch."""
        ...

    def env(self, launch: Launch) -> dict[str, str]:
        """Variables to add to the engine's environment; no secret."""
        ...

    def overridden(self, extra: tuple[str, ...]) -> dict[str, str]:
        """The user's flags by full name with their values; switches are `true` or `false`. Raises InputError."""
        ...


ENGINES: dict[str, Engine] = {"vllm": vllm}


def engine(name: str) -> Engine:
    """Return the module of the engine `name`. Raises InputError."""
    if name not in ENGINES:
        raise InputError(
            f"`{name}` is not an engine that selfhost starts",
            why=f"Known engines: {', '.join(ENGINES)}.",
            fix=("use vLLM, or leave --engine out",),
            id="PL060",
        )
    return ENGINES[name]
