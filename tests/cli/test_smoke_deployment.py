"""`selfhost smoke NAME` where nothing can answer: one error that names the state and the way out."""

import json
import os
import socket

import pytest

from selfhost.cli import run
from selfhost.core.lock import hold, me
from selfhost.core.paths import Paths
from selfhost.deploy.state import State

AGAIN = "selfhost up HuggingFaceTB/SmolLM2-135M-Instruct --name mine"


def test_a_dead_deployment_is_one_error_with_the_command_that_starts_it_again(deployed, capsys):
    deployed("", signal=9)
    assert run(["smoke", "mine"]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error[RT008]: mine does not run: the engine was ended by SIGKILL\n")
    assert AGAIN in said.err


def test_one_that_is_starting_is_not_called_dead(deployed, capsys):
    made = deployed("", code=1)
    with hold(made.folder / ".lock", me("selfhost up m --name mine"), wait_s=0.0, on_wait=lambda _: None):
        assert run(["smoke", "mine"]) == 4
    assert capsys.readouterr().err.startswith("error[RT007]: mine is still starting\n")


def test_one_that_runs_and_does_not_listen_yet_is_starting_while_up_is_at_work(deployed, capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        made = deployed("", port=free.getsockname()[1])
        with hold(made.folder / ".lock", me("selfhost up m --name mine"), wait_s=0.0, on_wait=lambda _: None):
            assert run(["smoke", "mine"]) == 4
    assert "error[RT007]" in capsys.readouterr().err


def test_a_plan_that_was_lost_is_said_and_the_name_is_not_proposed_again(deployed, capsys):
    made = deployed("")
    (made.folder / "plan.json").write_text('{"schema": "selfhost.')
    assert run(["smoke", "mine"]) == 4
    err = capsys.readouterr().err
    assert "error[RT015]: the plan of mine is missing\n" in err
    assert AGAIN in err
    assert "perhaps" not in err
    assert "never started" not in err


def test_a_plan_that_was_lost_with_its_service_says_so_too(deployed, capsys):
    made = deployed("")
    for name in ("plan.json", "service.json"):
        (made.folder / name).unlink()
    assert run(["smoke", "mine"]) == 4
    assert "start it as before, with --name mine" in capsys.readouterr().err


def test_our_own_key_refused_points_at_the_port_and_not_at_a_file(deployed, capsys):
    from tests.fakes.engine import FakeEngine, Options

    with FakeEngine(Options(key="sk-another-0123456789", token_s=0.0)) as other:
        deployed("", port=other.port)
        assert run(["smoke", "mine", "--only", "SM001", "--progress", "quiet"]) == 1
    out = capsys.readouterr().out
    assert "SM001 FAIL our own key was refused (401)" in out
    assert "--key-file" not in out
    assert f"ss -ltnp 'sport = :{other.port}'" in out


@pytest.mark.parametrize("known", [True, False])
def test_a_model_without_a_chat_template_is_described_as_one(deployed, known):
    from dataclasses import replace

    from selfhost.deploy.endpoint import describe_endpoint
    from selfhost.shapes.host import Known, Unknown

    deployed("")
    state = State(Paths.of(os.environ), "mine", say=lambda _: None)
    plan = state.plan()
    fact = Known(False, "tokenizer_config.json") if known else Unknown("not here")
    model = replace(plan.model, has_chat_template=fact)
    assert describe_endpoint(replace(plan, model=model), state).chat is not known


def test_no_place_for_junit_is_wrong_input_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for place in (".", str(tmp_path), "file/j.xml", "/proc/nowhere/j.xml"):
        assert run(["smoke", "--url", "http://127.0.0.1:9", "--model", "m", "--only", "SM801", "--junit", place]) == 2
        assert "error[CF068]" in capsys.readouterr().err


def test_json_is_one_document_also_when_junit_can_not_be_written(capsys):
    assert run(["smoke", "--url", "http://127.0.0.1:9", "--model", "m", "--only", "SM801", "--json",
                "--junit", "/dev/full/x"]) == 2  # fmt: skip
    assert json.loads(capsys.readouterr().out)["exit_code"] == 2


def test_junit_goes_through_a_link_and_leaves_it_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target.xml")
    argv = ["smoke", "--url", "http://127.0.0.1:9", "--model", "m", "--only", "SM801", "--progress", "quiet"]
    assert run([*argv, "--junit", str(tmp_path / "link")]) == 3
    assert (tmp_path / "link").is_symlink()
    assert "<testsuite" in (tmp_path / "target.xml").read_text()
