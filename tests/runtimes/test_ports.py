import os
import socket
import sys
from pathlib import Path

import pytest

from selfhost.runtimes import ports


@pytest.fixture
def listener():
    """A listening socket on a free port of loopback."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def test_a_listener_is_named_with_its_process_and_user(listener) -> None:
    port = listener.getsockname()[1]
    holder = ports.port_holder(port)
    assert holder.pid == os.getpid()
    assert f"(pid {os.getpid()}, user " in str(holder)
    assert Path(sys.executable).name[:6] in str(holder)
    assert ports.listening(port)


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")])
def test_a_listener_on_every_address_is_in_the_way_too(family, address) -> None:
    with socket.socket(family) as server:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip("no IPv6 here")
        server.listen()
        assert ports.port_holder(server.getsockname()[1]).pid == os.getpid()


def test_a_free_port_has_no_holder_and_the_next_free_one_is_after_a_taken_one(listener) -> None:
    port = listener.getsockname()[1]
    free = ports.free_port(port)
    assert free > port
    assert ports.port_holder(free) is None
    assert not ports.listening(free)


def test_a_bound_port_that_nobody_listens_on_is_said_to_be_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        holder = ports.port_holder(taken.getsockname()[1])
        assert holder is not None
        assert holder.pid == 0
        assert "nobody is seen to listen" in str(holder)


def test_above_the_last_port_the_kernel_picks_one() -> None:
    assert 1024 < ports.free_port(65536) < 65536
