"""`selfhost lint`: the four forms of its findings and its exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import selfhost
from selfhost.cli import run

BAD = "#!/bin/sh\nvllm serve m --api-key k\n"
GOOD = "vllm serve m\n"
UNEXPLAINED = f"# selfhost: ignore DV090\n{BAD}"


@pytest.fixture
def files() -> None:
    Path("bad.sh").write_text(BAD, encoding="utf-8")
    Path("good.sh").write_text(GOOD, encoding="utf-8")


@pytest.mark.usefixtures("files")
def test_people_read_place_id_and_reason_and_at_the_end_the_count(capsys):
    assert run(["lint", "good.sh", "bad.sh"]) == 1
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == "bad.sh:2:1: error[DV090]: `--api-key` puts a secret on the command line"
    assert lines[-1] == "2 files, 1 error"
    assert "    | --api-key ***" in lines
    assert "selfhost explain DV090" in said.err
    assert "rules say more with --host" in said.err


@pytest.mark.usefixtures("files")
def test_a_clean_file_is_one_calm_line(capsys):
    assert run(["lint", "good.sh"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("good.sh: nothing found (")
    assert out.count("\n") == 1


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("asked", [["--json"], ["--format", "json"]])
def test_programs_get_one_document_over_all_files_in_order(asked, capsys):
    assert run(["lint", "good.sh", "bad.sh", "gone.sh", *asked]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["ok"]) == ("selfhost.findings/1", False)
    assert said["summary"] == {"error": 2, "warning": 0, "info": 0}
    assert [(found["path"], found["line"], found["id"]) for found in said["findings"]] == [
        ("bad.sh", 2, "DV090"), ("gone.sh", None, "CF070"),
    ]  # fmt: skip
    assert said["files"] == ["good.sh", "bad.sh", "gone.sh"]


def test_github_gets_a_command_a_finding_with_its_escapes(capsys):
    Path("a,b:c%.sh").write_text(BAD, encoding="utf-8")
    assert run(["lint", "a,b:c%.sh", "--format", "github"]) == 1
    line, *more = capsys.readouterr().out.splitlines()
    # docs.github.com/actions, workflow commands: in properties `%`, `:` and `,` are written %25, %3A, %2C
    assert line.startswith("::error file=a%2Cb%3Ac%25.sh,line=2,col=1,title=DV090::`--api-key` puts a secret")
    assert "%0A" in line
    assert more == []


@pytest.mark.usefixtures("files")
def test_sarif_names_rule_level_and_region(capsys):
    assert run(["lint", "bad.sh", "--format", "sarif"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["version"] == "2.1.0"
    (one,) = said["runs"]
    assert [rule["id"] for rule in one["tool"]["driver"]["rules"]] == ["DV090"]
    (result,) = one["results"]
    assert (result["ruleId"], result["level"]) == ("DV090", "error")
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "bad.sh"}, "region": {"startLine": 2, "startColumn": 1}}


def test_a_warning_fails_only_when_asked_for(capsys):
    Path("x.sh").write_text(UNEXPLAINED, encoding="utf-8")
    assert run(["lint", "x.sh"]) == 0
    assert run(["lint", "x.sh", "--strict"]) == 1
    capsys.readouterr()
    assert run(["lint", "x.sh", "--strict", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["ok"], said["summary"]["warning"]) == (False, 1)


@pytest.mark.usefixtures("files")
def test_a_rule_can_be_left_out_and_one_that_does_not_exist_is_named(capsys):
    assert run(["lint", "bad.sh", "--ignore", "dv090"]) == 0
    assert run(["lint", "bad.sh", "--ignore", "DV001,DV777"]) == 2
    assert "error[CF074]: --ignore DV" in capsys.readouterr().err


def test_stdin_is_read_by_what_it_says():
    done = subprocess.run(
        [sys.executable, "-m", "selfhost", "lint", "-"],
        input="docker run a/b --api-key k\n", capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(selfhost.__file__).parents[1])}, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[0][:29]) == (1, "stdin:1:1: error[DV090]: `--a"), done.stderr


def test_a_running_process_is_judged_and_its_secrets_are_not_repeated(capsys):
    secret = "hf_" + "a1b2" * 8
    sleeper = subprocess.Popen(
        [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)", "--api-key", secret],
        stdout=subprocess.PIPE,
        env={**os.environ, "HF_TOKEN": secret, "CUDA_VISIBLE_DEVICES": "0"},
    )
    try:
        assert sleeper.stdout
        assert sleeper.stdout.readline() == b"1\n"
        assert run(["lint", "--pid", str(sleeper.pid), "--json"]) == 1
        said = capsys.readouterr().out
        assert [found["id"] for found in json.loads(said)["findings"]] == ["DV090"]
        assert secret not in said
    finally:
        sleeper.kill()
        sleeper.communicate()
    assert run(["lint", "--pid", str(sleeper.pid)]) == 2
    assert "error[CF073]" in capsys.readouterr().err


SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


def test_what_needs_the_machine_is_said_when_it_is_named(capsys):
    Path("x.sh").write_text("CUDA_VISIBLE_DEVICES=7 vllm serve m\n", encoding="utf-8")
    assert run(["lint", "x.sh"]) == 0
    capsys.readouterr()
    assert run(["lint", "x.sh", "--host", str(SNAPSHOTS / "rtx-usable.json"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert "DV002" in [one["id"] for one in found]


def test_a_machine_that_cannot_be_read_is_wrong_input(capsys):
    Path("x.sh").write_text(GOOD, encoding="utf-8")
    assert run(["lint", "x.sh", "--host", "gone.json"]) == 2
    assert "gone.json" in capsys.readouterr().err
