"""`selfhost explain NAME`: a live engine is not dead of what its log holds, a dead one is named with its end."""

import json

import pytest

from selfhost.cli import run

REFUSED = 'INFO:     127.0.0.1:5 - "GET /v1/models HTTP/1.1" 401 Unauthorized\n{"error": "Unauthorized"}\n'
FULL = "OSError: [Errno 28] No space left on device\n"


def test_refusals_that_smoke_made_are_no_failure_of_a_live_engine(deployed, capsys):
    deployed(REFUSED)
    assert run(["explain", "mine"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("mine runs (pid ")
    assert out.endswith("); nothing in its log is a failure\n")


def test_a_live_engine_without_a_failure_is_ok_in_json(deployed, capsys):
    deployed(REFUSED)
    assert run(["explain", "mine", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["findings"]) == (True, [])
    assert "mine runs" in document["text"]


def test_a_live_engine_with_a_real_failure_has_both_said(deployed, capsys):
    deployed(REFUSED + FULL)
    assert run(["explain", "mine"]) == 1
    out = capsys.readouterr().out
    assert "mine runs (pid " in out
    assert "error[EF020]: the disk is full" in out
    assert "EF031" not in out


def test_a_killed_engine_is_named_with_its_signal_and_no_cause_is_invented(deployed, capsys):
    deployed("INFO loading\n" + REFUSED, signal=9, out_of_memory=False)
    assert run(["explain", "mine"]) == 1
    out = capsys.readouterr().out
    assert "mine does not run: the engine was ended by SIGKILL\n" in out
    assert "EF046" not in out
    assert "EF031" not in out


def test_a_killed_engine_whose_log_has_the_cause_gets_both(deployed, capsys):
    deployed(FULL, signal=6)
    assert run(["explain", "mine"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("mine does not run: the engine was ended by SIGABRT\n")
    assert "error[EF020]" in out


def test_an_end_for_lack_of_memory_is_the_cause_when_the_kernel_said_so(deployed, capsys):
    deployed("INFO loading\n", signal=9, out_of_memory=True)
    assert run(["explain", "mine"]) == 1
    assert "error[EF046]" in capsys.readouterr().out


def test_an_engine_that_was_told_to_stop_is_no_failure(deployed, capsys):
    deployed("INFO loading\n", signal=9, stopped=True)
    assert run(["explain", "mine"]) == 0
    assert "mine does not run: the engine was stopped; nothing in its log is a failure" in capsys.readouterr().out


def test_an_end_that_nobody_knows_is_undecided_with_its_exit_code(deployed, capsys):
    deployed("INFO the last words\n", code=3)
    assert run(["explain", "mine"]) == 3
    err = capsys.readouterr().err
    assert "mine does not run: the engine ended with exit code 3" in err
    assert "the last words" in err


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_exit_code_that_is_said_wins_over_what_was_seen(deployed, more):
    deployed("INFO loading\n", code=3)
    assert run(["explain", "mine", "--exit-code", "137", *more]) == 1
