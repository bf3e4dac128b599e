"""A port of this machine that leads to a pod: each connection is a port-forward of its own through the API server.

The library's own forward leaves its thread to die of a reset connection, so only its websocket is used here.
"""

import socket
import threading
from collections.abc import Callable
from typing import Any, Self

from selfhost.runtimes.cluster import faults
from selfhost.runtimes.cluster.client import Cluster, authorization

BUFFER = 32768
PROTOCOL = "v4.channel.k8s.io"
"""Of one port: channel 0 carries data, channel 1 an error; each begins with two bytes, the port's number.
https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/cri/streaming/portforward/websocket.go"""
OPEN_S = 15.0
_DATA, _ERROR = 0, 1


class Forward:
    """Listens on loopback until it is closed. `pod` tells for each connection which pod is meant now, or nothing.

    A pod that was replaced meanwhile, or a connection that broke, costs that one connection.
    """

    def __init__(self, cluster: Cluster, *, pod: Callable[[], str], pod_port: int, port: int = 0) -> None:
        self._cluster = cluster
        self._pod = pod
        self._pod_port = pod_port
        self.trouble = ""
        """Why the last connection could not be made; empty after one that could."""
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64, reuse_port=False)
        self.port: int = self._listener.getsockname()[1]
        self._ended = False
        threading.Thread(target=self._accept, name=f"forward {self.port}", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._ended = True
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:  # it was never connected; the close is what counts
            pass
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), name="forward of one", daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        far: Any = None
        try:
            pod = self._pod()
            far = _open(self._cluster, pod, self._pod_port) if pod else None
            self.trouble = "" if pod else "there is no pod that runs"
            if far is not None:
                self._carry(near, far)
        except faults.of_streams() as error:
            self.trouble = " ".join(str(error).split())[:300]
        finally:
            near.close()
            if far is not None:
                far.shutdown()

    def _carry(self, near: socket.socket, far: Any) -> None:
        back = threading.Thread(target=self._back, args=(near, far), name="forward back", daemon=True)
        back.start()
        try:
            while piece := near.recv(BUFFER):
                far.send_binary(bytes((_DATA,)) + piece)
        finally:
            _hang_up(near)
            _hang_up(far.sock)
            back.join()

    def _back(self, near: socket.socket, far: Any) -> None:
        begun: set[int] = set()
        try:
            while True:
                frame = far.recv()
                data = frame.encode() if isinstance(frame, str) else frame
                if not data:  # the other end closed it
                    break
                channel, rest = data[0], data[1:]
                if channel not in begun:
                    begun.add(channel)  # the number of the port
                elif channel == _ERROR:
                    self.trouble = rest.decode(errors="replace")[:300]
                    break
                else:
                    near.sendall(rest)
        except faults.of_streams() as error:
            self.trouble = "" if isinstance(error, OSError) else " ".join(str(error).split())[:300]
        finally:
            _hang_up(near)


def _hang_up(one: Any) -> None:
    """Wake whoever waits for more of it; it may be gone already."""
    try:
        one.shutdown(socket.SHUT_RDWR)
    except (OSError, AttributeError):
        return


def _open(cluster: Cluster, pod: str, port: int) -> Any:
    from kubernetes.stream import ws_client

    api = cluster.api
    headers = {"sec-websocket-protocol": PROTOCOL, **authorization(api)}
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/portforward"
    url = ws_client.get_websocket_url(  # type: ignore[no-untyped-call]
        f"{str(api.configuration.host).rstrip('/')}{path}", [("ports", str(port))]
    )
    return ws_client.create_websocket(api.configuration, url, headers)  # type: ignore[no-untyped-call]
