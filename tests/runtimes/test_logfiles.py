from pathlib import Path

from selfhost.runtimes import logfiles


def test_the_logs_of_the_newest_five_former_runs_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    for run in range(8):
        logfiles.begin(log)
        log.write_text(f"run {run}")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {
        "engine.log": "run 7",
        **{f"engine-{number}.log": f"run {7 - number}" for number in range(1, 6)},
    }


def test_a_log_is_cut_under_its_writer_and_nothing_is_lost(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    with log.open("ab", buffering=0) as engine:  # O_APPEND, as the engine has it
        for number in range(5):
            engine.write(f"part {number}\n".encode() * 100)
            assert logfiles.shorten(log, limit_bytes=500, keep=3)
        engine.write(b"the end\n")
    assert not logfiles.shorten(log, limit_bytes=500, keep=3)
    assert log.read_text() == "the end\n"
    parts = [(tmp_path / f"engine.log.{number}").read_text().splitlines()[0] for number in (1, 2, 3)]
    assert parts == ["part 4", "part 3", "part 2"]
    assert not (tmp_path / "engine.log.4").exists()


def test_the_parts_of_the_former_run_go_with_it_and_those_before_are_dropped(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    for run in ("first", "second"):
        logfiles.begin(log)
        log.write_text(run * 100)
        logfiles.shorten(log, limit_bytes=10, keep=3)
        log.write_text(f"{run} end")
    logfiles.begin(log)
    found = {path.name: path.read_text()[:6] for path in tmp_path.iterdir()}
    assert found == {"engine-1.log": "second", "engine-1.log.1": "second", "engine-2.log": "first "}


def test_a_log_that_is_not_there_is_not_shortened(tmp_path: Path) -> None:
    assert not logfiles.shorten(tmp_path / "engine.log", limit_bytes=1, keep=3)
