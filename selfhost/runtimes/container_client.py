"""What is asked of a container engine, be it by its SDK or by its command line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from selfhost.shapes.workload import Workload

Object = Mapping[str, Any]
"""A container, network or image as the engine's inspect shows it."""


class CallFailed(Exception):
    """The engine said no, or could not be reached. Worded for people by container_errors."""

    def __init__(self, text: str, *, status: int = 0, reached: bool = True) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        """HTTP status, 0 where there is none."""
        self.reached = reached
        """False: nobody answered at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One line of a pull: a layer that came further, or words about the whole."""

    id: str = ""
    status: str = ""
    done: int | None = None
    total: int | None = None


class Client(Protocol):
    """Every call raises CallFailed. Names are those of the engine."""

    @property
    def kind(self) -> str:
        """`docker` or `podman`: in whose words a person would ask."""
        ...

    @property
    def where(self) -> str:
        """The address, and where it was said: for words."""
        ...

    @property
    def local(self) -> bool:
        """Whether its containers are processes of this machine."""
        ...

    @property
    def selinux(self) -> bool:
        """Whether the engine labels its containers."""
        ...

    def container(self, name: str) -> Object | None: ...

    def containers(self, label: str) -> tuple[Object, ...]:
        """All that carry `label` (`NAME` or `NAME=VALUE`), running or not."""
        ...

    def create(self, workload: Workload) -> str:
        """Make a container of that name and give its id; nothing runs yet, and nothing is pulled."""
        ...

    def start(self, container: str) -> None: ...

    def stop(self, container: str, *, grace_s: int) -> None:
        """SIGTERM, and SIGKILL after the grace; one that does not run is no error."""
        ...

    def remove(self, container: str) -> None:
        """With its anonymous volumes, running or not; one that is gone is no error."""
        ...

    def restart_policy(self, container: str, policy: str) -> bool:
        """False when this engine can't change it."""
        ...

    def networks(self, label: str) -> tuple[str, ...]:
        """Names of those with `label`."""
        ...

    def network(self, name: str) -> Mapping[str, str] | None:
        """Its labels."""
        ...

    def create_network(self, name: str, labels: Mapping[str, str]) -> None: ...

    def remove_network(self, name: str) -> None: ...

    def volume(self, name: str) -> Mapping[str, str] | None:
        """Its labels."""
        ...

    def create_volume(self, name: str, labels: Mapping[str, str]) -> None: ...

    def remove_volume(self, name: str) -> None:
        """One that is gone is no error; one that a container has, running or not, is."""
        ...

    def image(self, reference: str) -> Object | None: ...

    def pull(self, reference: str, *, on_layer: Callable[[Layer], None], platform: str = "") -> None: ...

    def logs(self, container: str, *, since: str = "", tail: int | None = None) -> list[tuple[str, str]] | None:
        """Pairs of an RFC 3339 time and a line with its end; None without such a container."""
        ...
