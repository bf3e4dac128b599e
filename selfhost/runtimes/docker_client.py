"""Docker by its own SDK. The only file that imports it."""

import socket
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from selfhost.core.system import System
from selfhost.runtimes.container_client import CallFailed, Layer, Object
from selfhost.runtimes.container_log import timed
from selfhost.runtimes.docker_address import Address
from selfhost.runtimes.docker_body import body_of
from selfhost.runtimes.variables import variables_of
from selfhost.shapes.workload import Workload

T = TypeVar("T")
TIMEOUT_S = 60
OLDEST_API = (1, 41)
"""Docker 20.10, the oldest that was tried."""


class DockerClient:
    """One daemon, asked for the first time when something is wanted of it. Satisfies container_client.Client."""

    kind = "docker"

    def __init__(self, address: Address, system: System) -> None:
        self._address = address
        self._system = system
        self._made: Any = None

    @property
    def where(self) -> str:
        return str(self._address)

    @property
    def local(self) -> bool:
        return self._address.is_socket

    @property
    def selinux(self) -> bool:
        options = self._ask(lambda: self._api.info().get("SecurityOptions")) or ()
        return any(str(option).startswith("name=selinux") for option in options)

    @property
    def _api(self) -> Any:
        if self._made is None:
            self._made = self._connect()
        return self._made

    def _connect(self) -> Any:
        import docker  # type: ignore[import-untyped]

        address, tls = self._address, None
        if address.is_socket:
            _knock(address.socket)
        if address.tls:
            pair = (address.cert, address.key) if address.cert and address.key else None
            tls = docker.tls.TLSConfig(client_cert=pair, ca_cert=address.ca or None, verify=address.verify)
        api = docker.APIClient(base_url=address.url, version="auto", timeout=TIMEOUT_S, tls=tls or False)
        if config := self._system.env.get("DOCKER_CONFIG"):
            api.reload_config(f"{config}/config.json")
        weakref.finalize(self, api.close)
        said = api.version()
        if any(one.get("Name") == "Podman Engine" for one in said.get("Components") or ()):
            raise CallFailed(f"podman {said.get('Version', '')} answers at {address.url}, with Docker's interface")
        spoken = str(said.get("ApiVersion") or "0")
        if tuple(int(part) for part in spoken.split(".") if part.isdigit()) < OLDEST_API:
            raise CallFailed(f"daemon is too old: Docker {said.get('Version', '')} speaks API {spoken}")
        return api

    def container(self, name: str) -> Object | None:
        found: Object | None = self._found(lambda: self._api.inspect_container(name))
        return found

    def containers(self, label: str) -> tuple[Object, ...]:
        listed = self._ask(lambda: self._api.containers(all=True, filters={"label": label}))
        found = (self.container(str(one["Id"])) for one in listed)
        return tuple(one for one in found if one is not None)

    def create(self, workload: Workload) -> str:
        body = body_of(workload, variables_of(workload, self._system))
        return str(self._ask(lambda: self._api.create_container_from_config(body, name=workload.name))["Id"])

    def start(self, container: str) -> None:
        self._ask(lambda: self._api.start(container))

    def stop(self, container: str, *, grace_s: int) -> None:
        self._found(lambda: self._api.stop(container, timeout=grace_s) or {})

    def remove(self, container: str) -> None:
        self._found(lambda: self._api.remove_container(container, v=True, force=True) or {})

    def restart_policy(self, container: str, policy: str) -> bool:
        name, _, most = policy.partition(":")
        chosen = {"Name": name, "MaximumRetryCount": int(most) if most.isdigit() else 0}
        self._ask(lambda: self._api.update_container(container, restart_policy=chosen))
        return True

    def networks(self, label: str) -> tuple[str, ...]:
        return tuple(str(one["Name"]) for one in self._ask(lambda: self._api.networks(filters={"label": label})))

    def network(self, name: str) -> Mapping[str, str] | None:
        listed = self._ask(lambda: self._api.networks(names=[name]))
        return next((one.get("Labels") or {} for one in listed if one["Name"] == name), None)

    def create_network(self, name: str, labels: Mapping[str, str]) -> None:
        self._ask(lambda: self._api.create_network(name, driver="bridge", check_duplicate=True, labels=dict(labels)))

    def remove_network(self, name: str) -> None:
        self._found(lambda: self._api.remove_network(name) or {})

    def volume(self, name: str) -> Mapping[str, str] | None:
        found = self._found(lambda: self._api.inspect_volume(name))
        return None if found is None else found.get("Labels") or {}

    def create_volume(self, name: str, labels: Mapping[str, str]) -> None:
        self._ask(lambda: self._api.create_volume(name, labels=dict(labels)))

    def remove_volume(self, name: str) -> None:
        self._found(lambda: self._api.remove_volume(name) or {})

    def image(self, reference: str) -> Object | None:
        found: Object | None = self._found(lambda: self._api.inspect_image(reference))
        return found

    def pull(self, reference: str, *, on_layer: Callable[[Layer], None], platform: str = "") -> None:
        tag = _tag(reference)
        lines = self._ask(
            lambda: self._api.pull(reference, tag=tag, stream=True, decode=True, platform=platform or None)
        )
        refused = ""
        while (line := self._ask(lambda: next(lines, None))) is not None:
            refused = refused or str(line.get("error") or "")  # read to its end, or the connection stays open
            progress = line.get("progressDetail") or {}
            on_layer(
                Layer(
                    id=str(line.get("id") or ""),
                    status=str(line.get("status") or ""),
                    done=progress.get("current"),
                    total=progress.get("total"),
                )
            )
        if refused:
            raise CallFailed(refused)

    def logs(self, container: str, *, since: str = "", tail: int | None = None) -> list[tuple[str, str]] | None:
        from datetime import datetime

        options: dict[str, Any] = {"since": datetime.fromisoformat(since).timestamp()} if since else {}
        try:
            raw = self._ask(
                lambda: self._api.logs(container, timestamps=True, tail="all" if tail is None else tail, **options)
            )
        except CallFailed as failed:
            if failed.status == 404:
                return None
            raise
        return timed(raw.decode("utf-8", "replace"))

    def _found(self, call: Callable[[], Any]) -> Any:
        """None for what is not there, or is gone already."""
        try:
            return self._ask(call)
        except CallFailed as failed:
            if failed.status == 404 or (failed.status == 409 and "is already in progress" in failed.text):
                return None
            raise

    def _ask(self, call: Callable[[], T]) -> T:
        from docker.errors import APIError, DockerException  # type: ignore[import-untyped]
        from requests.exceptions import RequestException
        from urllib3.exceptions import HTTPError

        try:
            return call()
        except APIError as error:
            text = str(error.explanation or error)
            raise CallFailed(text, status=error.response.status_code if error.response is not None else 0) from None
        except (DockerException, RequestException, HTTPError, OSError) as error:
            raise CallFailed(str(error) or type(error).__name__, reached=False) from None


def _tag(reference: str) -> str | None:
    """`latest` where nothing else is said: without a tag the SDK asks for it too, with a digest it must not."""
    return None if "@" in reference or ":" in reference.rpartition("/")[2] else "latest"


def _knock(path: str) -> None:
    """The SDK leaves a socket open that did not connect. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(TIMEOUT_S)
        door.connect(path)
