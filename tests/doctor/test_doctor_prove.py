"""The throw-away container: how a card is handed in, and what its answers mean."""

from dataclasses import replace

import pytest

from selfhost.core.recorded import Recorded
from selfhost.core.system import Completed, LocalSystem
from selfhost.doctor.prove import _OPEN, injection, prove
from selfhost.hosts.detect import detect
from selfhost.shapes.fact import Known, Unknown, Vendor
from selfhost.shapes.surroundings import Engine, Surroundings


def _engine(**more) -> Engine:
    return Engine(kind="docker", version="28.3", answers=Known(value=True, how="docker info"), **more)


class Answering(LocalSystem):
    """A machine whose engine answers `run` with what it is given, and keeps what was asked."""

    def __init__(self, run: Completed) -> None:
        super().__init__({})
        self.asked: list[tuple[str, ...]] = []
        self._answer = run

    def run(self, argv, **_):
        self.asked.append(tuple(argv))
        return self._answer if argv[1] == "run" else Completed(argv=tuple(argv), rc=0)


@pytest.mark.parametrize(
    ("injects", "vendor", "form"),
    [
        (("nvidia:gpus", "nvidia:cdi"), Vendor.NVIDIA, ("--device", "nvidia.com/gpu=all")),
        (("nvidia:gpus",), Vendor.NVIDIA, ("--gpus", "all")),
        (("nvidia:gpus", "nodes"), Vendor.AMD, ("--device", "/dev/kfd")),
    ],
)
def test_the_form_is_one_that_the_engine_has(injects, vendor, form):
    assert injection(_engine(injects=injects), vendor, ("/dev/kfd",)) == form


@pytest.fixture
def machine(snapshot):
    def of(engine):
        return replace(detect(Recorded(snapshot("gb10"))), surroundings=Surroundings(engines=(engine,)))

    return of


@pytest.mark.parametrize(
    ("stdout", "outcome"),
    [
        ("{path} ok\nopened\n", "good"),
        ("{path} Operation not permitted\nopened\n", "bad"),
        ("", "unknown"),
    ],
)
def test_what_opening_said(stdout, outcome, machine):
    host = machine(_engine())
    path = host.accelerators[0].nodes[0].path
    host = replace(host, accelerators=(replace(host.accelerators[0], nodes=host.accelerators[0].nodes[:1]),))
    system = Answering(
        Completed(argv=(), rc=0 if stdout else 125, stdout=stdout.format(path=path), timed_out=not stdout)
    )
    assert [proof.outcome for proof in prove(system, host)] == [outcome]


def test_all_that_was_made_is_removed_even_when_interrupted(machine):
    class Interrupted(Answering):
        def run(self, argv, **_):
            done = super().run(argv)
            if argv[1] == "run":
                raise KeyboardInterrupt
            return done

    system = Interrupted(Completed(argv=(), rc=0))
    with pytest.raises(KeyboardInterrupt):
        prove(system, machine(_engine()))
    assert [argv[1] for argv in system.asked] == ["import", "run", "rm", "rmi"]


def test_a_container_that_never_starts_says_nothing_of_the_card(machine):
    system = Answering(Completed(argv=(), rc=126, stderr="Error: setting rlimits: operation not permitted"))
    assert [proof.outcome for proof in prove(system, machine(_engine()))] == ["unknown"]


@pytest.mark.parametrize(
    "engine",
    [
        _engine(remote="tcp://other:2376"),
        _engine(desktop=True),
        _engine(sibling=True),
        replace(_engine(), answers=Unknown("hangs")),
    ],
)
def test_an_engine_that_cannot_show_it_is_unknown_and_left_alone(engine, machine):
    system = Answering(Completed(argv=(), rc=0))
    assert [proof.outcome for proof in prove(system, machine(engine))] == ["unknown"]
    assert system.asked == []


def test_the_probe_tells_a_missing_node_from_a_refused_one():
    done = LocalSystem().run(["sh", "-c", _OPEN, "sh", "/dev/null", "/dev/nowhere"], timeout_s=5)
    assert done.stdout.splitlines() == ["/dev/null ok", "/dev/nowhere ENOENT", "opened"]
