"""What every runtime must do. A runtime's test file subclasses this with a fixture `runtime` and one `toy`."""

import socket
from collections.abc import Callable

from selfhost.runtimes.base import EngineState, Launchable, Runtime
from selfhost.runtimes.ports import free_port, listening
from tests.runtimes.conftest import until

Toy = Callable[..., Launchable]


class RuntimeContract:
    def test_what_was_never_started_is_gone_and_looking_makes_nothing(self, runtime: Runtime, paths) -> None:
        assert runtime.inspect("toy").state is EngineState.GONE
        assert not paths.deployments.exists()

    def test_a_started_engine_runs_with_its_plan_and_a_new_instance_each_time(self, runtime: Runtime, toy: Toy) -> None:
        first = runtime.start(toy(plan_digest="abc"))
        assert first.state is EngineState.RUNNING
        assert first.plan_digest == "abc"
        runtime.stop("toy", grace_s=2.0)
        second = runtime.start(toy(plan_digest="abc"))
        assert second.instance not in ("", first.instance)

    def test_starting_twice_gives_the_same_engine(self, runtime: Runtime, toy: Toy) -> None:
        first = runtime.start(toy())
        second = runtime.start(toy())
        assert (second.pid, second.instance) == (first.pid, first.instance)

    def test_what_the_engine_prints_is_in_its_log(self, runtime: Runtime, toy: Toy) -> None:
        runtime.start(toy())
        until(lambda: "toy engine serves" in runtime.log("toy").last(None))

    def test_the_log_comes_piece_by_piece_and_nothing_twice(self, runtime: Runtime, toy: Toy) -> None:
        runtime.start(toy("--say-bytes", "6400"))
        log, said = runtime.log("toy"), [""]
        until(lambda: (said.append(log.more()), "serves" in said[-1])[1])
        lines = "".join(said).splitlines()
        assert lines == ["toy engine starts", *(f"{number:062d}#" for number in range(100)), "toy engine serves"]
        assert log.more() == ""
        assert runtime.log("toy").last(2).splitlines() == lines[-2:]

    def test_its_own_port_has_no_stranger_and_one_of_somebody_else_has(self, runtime: Runtime, toy: Toy) -> None:
        port = free_port(18100)
        assert runtime.port_holder("toy", port) is None
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))
            other.listen()
            assert runtime.port_holder("toy", port) is not None
        runtime.start(toy("--port", str(port), port=port))
        until(lambda: listening(port))
        assert runtime.port_holder("toy", port) is None
        assert runtime.port_holder("another", port) is not None

    def test_the_memory_of_what_runs_is_known_where_its_processes_are(self, runtime: Runtime, toy: Toy) -> None:
        assert runtime.memory_bytes("toy") is None
        runtime.start(toy())
        until(lambda: "serves" in runtime.log("toy").last(None))
        occupied = runtime.memory_bytes("toy")
        assert runtime.info.sees_processes == (occupied is not None)
        assert occupied is None or 1024**2 < occupied < 1024**3

    def test_an_engine_that_ends_by_itself_leaves_its_exit_code(self, runtime: Runtime, toy: Toy) -> None:
        runtime.start(toy("--exit", "3"))
        seen = until(lambda: (look := runtime.inspect("toy")).state is EngineState.EXITED and look)
        assert (seen.exit_code, seen.signal, seen.stopped) == (3, None, False)
        assert not seen.alive

    def test_stop_proves_that_nothing_is_left(self, runtime: Runtime, toy: Toy) -> None:
        port = free_port(18100)
        runtime.start(toy("--port", str(port), "--children", "2", port=port))
        until(lambda: "serves" in runtime.log("toy").last(None))
        receipt = runtime.stop("toy", grace_s=5.0)
        assert len(receipt.ended) >= 3  # the engine, two children, and where there is one the container's init
        assert receipt.leftovers == ()
        assert receipt.listener_free
        assert not receipt.forced
        assert runtime.inspect("toy").state is EngineState.GONE

    def test_what_does_not_listen_to_a_request_to_end_is_killed(self, runtime: Runtime, toy: Toy) -> None:
        runtime.start(toy("--deaf", "--children", "1"))
        until(lambda: "serves" in runtime.log("toy").last(None))
        receipt = runtime.stop("toy", grace_s=0.3)
        assert receipt.forced
        assert receipt.leftovers == ()
        assert runtime.inspect("toy").state is EngineState.GONE

    def test_stopping_what_does_not_run_is_no_error(self, runtime: Runtime) -> None:
        assert runtime.stop("toy", grace_s=1.0).ended == ()

    def test_remove_takes_the_logs_too(self, runtime: Runtime, toy: Toy) -> None:
        runtime.start(toy())
        assert runtime.log("toy").exists
        runtime.remove("toy")
        assert not runtime.log("toy").exists
        assert runtime.log("toy").last(None) == ""

    def test_the_key_is_in_no_file_of_the_deployment(self, runtime: Runtime, toy: Toy, paths) -> None:
        runtime.start(toy("--port", "0"))
        until(lambda: "serves" in runtime.log("toy").last(None))
        files = [path for path in paths.deployment("toy").rglob("*") if path.is_file()]
        assert files or runtime.info.containers  # a container's engine keeps its own records
        assert not [path for path in files if "sk-test-1234" in path.read_text(errors="replace")]
