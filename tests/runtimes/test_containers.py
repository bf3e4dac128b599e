"""Containers as their engines describe them: State objects in the form of Docker's API and of podman inspect."""

import pytest

from selfhost.runtimes.base import EngineState
from selfhost.runtimes.container_log import ContainerLog
from selfhost.runtimes.containers import is_ours, seconds, seen_of


def of_state(**state: object) -> dict[str, object]:
    labels = {"io.selfhost.name": "toy", "io.selfhost.digest": "d", "io.selfhost.instance": "i"}
    binding = {"PortBindings": {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8123"}]}}
    return {
        "Id": "0123456789abcdef",
        "Image": "sha256:1",
        "RestartCount": 2,
        "State": state,
        "Config": {"Labels": labels},
        "HostConfig": binding,
    }


@pytest.mark.parametrize(
    ("state", "expected", "code", "signal"),
    [
        ({"Status": "running"}, EngineState.RUNNING, None, None),
        ({"Status": "paused"}, EngineState.RUNNING, None, None),
        ({"Status": "restarting", "ExitCode": 3, "Running": True}, EngineState.EXITED, 3, None),
        ({"Status": "exited", "ExitCode": 0}, EngineState.EXITED, 0, None),
        ({"Status": "exited", "ExitCode": 143}, EngineState.EXITED, None, 15),
        ({"Status": "exited", "ExitCode": 255}, EngineState.EXITED, 255, None),
        ({"Status": "created", "ExitCode": 0}, EngineState.GONE, None, None),
        ({"Status": "something new"}, EngineState.UNKNOWN, None, None),
    ],
)
def test_how_it_stands(state, expected, code, signal) -> None:
    seen = seen_of(of_state(**state), pid=7, start_ticks=1)
    assert (seen.state, seen.exit_code, seen.signal) == (expected, code, signal)
    assert (seen.port, seen.restarts, seen.plan_digest, seen.instance) == (8123, 2, "d", "i")
    assert bool(seen.pid) == seen.alive


def test_lack_of_memory_is_what_the_engine_says_and_unknown_for_another_kill() -> None:
    killed = of_state(Status="exited", ExitCode=137, OOMKilled=True)
    assert seen_of(killed, pid=0, start_ticks=0).out_of_memory is True
    assert "lack of memory" in seen_of(killed, pid=0, start_ticks=0).reason
    assert seen_of(of_state(Status="exited", ExitCode=137), pid=0, start_ticks=0).out_of_memory is None
    assert seen_of(of_state(Status="exited", ExitCode=1), pid=0, start_ticks=0).out_of_memory is False


def test_podman_says_who_stopped_it() -> None:
    assert seen_of(of_state(Status="exited", ExitCode=143, StoppedByUser=True), pid=0, start_ticks=0).stopped


def test_an_unhealthy_engine_runs_and_the_reason_says_so() -> None:
    seen = seen_of(of_state(Status="running", Health={"Status": "unhealthy"}), pid=1, start_ticks=1)
    assert (seen.state, seen.health) == (EngineState.RUNNING, "unhealthy")
    assert "health check" in seen.reason


def test_times_with_nanoseconds_and_the_one_that_means_never() -> None:
    assert seconds("1970-01-01T00:01:00.123456789Z") == pytest.approx(60.123456)
    assert seconds("1970-01-01T01:00:00+01:00") == 0.0
    assert seconds("0001-01-01T00:00:00Z") == 0.0


def test_ours_is_what_names_the_deployment_and_no_other_folder() -> None:
    assert is_ours({"io.selfhost.name": "toy", "io.selfhost.folder": "/a"}, "toy", "/a")
    assert is_ours({"io.selfhost.name": "toy"}, "toy", "/a")
    assert not is_ours({"io.selfhost.name": "toy", "io.selfhost.folder": "/b"}, "toy", "/a")
    assert not is_ours({}, "toy", "/a")


class Said:
    """Gives what is asked for, as `since` includes lines of that very moment."""

    kind = "docker"

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def logs(self, _: str, *, since: str = "", tail: int | None = None) -> list[tuple[str, str]]:
        del tail
        return [line for line in self.lines if line[0] >= since]


def test_a_log_gives_late_and_equal_lines_once() -> None:
    said = Said()
    log = ContainerLog(said, "selfhost-toy")
    first = "2026-01-01T00:00:05.000000001Z"
    said.lines = [(first, "a\n"), (first, "a\n")]
    assert log.more() == "a\na\n"
    said.lines = [("2026-01-01T00:00:04.900000000Z", "late\n"), *said.lines, (first, "a\n")]
    assert log.more() == "late\na\n"
    assert log.more() == ""
