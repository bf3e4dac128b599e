"""`selfhost doctor` as it is typed: its exit code, its JSON, its scripts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNAPSHOTS = ROOT / "tests" / "snapshots"


def _doctor(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "COLUMNS": "80", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "selfhost", "doctor", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=env, cwd=cwd, check=False)


@pytest.mark.parametrize(("name", "code"), [("two-rtx", 0), ("amd-usable", 0), ("rtx-mismatch", 1)])
def test_the_exit_code_is_of_the_errors(name, code, tmp_path):
    assert _doctor("--host", str(SNAPSHOTS / f"{name}.json"), cwd=tmp_path).returncode == code


def test_json_has_findings_and_areas(tmp_path):
    done = _doctor("--host", str(SNAPSHOTS / "rtx-mismatch.json"), "--json", cwd=tmp_path)
    said = json.loads(done.stdout)
    assert said["schema"] == "selfhost.findings/1"
    assert said["ok"] is False
    assert [area["name"] for area in said["areas"]][:2] == ["driver", "devices"]
    assert "HX003" in [finding["id"] for finding in said["findings"]]


def test_a_healthy_machine_is_one_line_an_area(tmp_path):
    done = _doctor("--host", str(SNAPSHOTS / "two-3090-nvml.json"), cwd=tmp_path)
    assert "driver        nvidia" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_scripts_are_written_again_but_never_over_a_strangers_file(tmp_path):
    words = ("--host", str(SNAPSHOTS / "rtx-docker-not-granted.json"), "--fix-script", "out")
    assert _doctor(*words, cwd=tmp_path).returncode == 1
    script = tmp_path / "out" / "fix-container-host.sh"
    assert "HX301" in script.read_text()
    assert _doctor(*words, cwd=tmp_path).returncode == 1
    script.write_text("mine\n")
    refused = _doctor(*words, cwd=tmp_path)
    assert (refused.returncode, script.read_text()) == (2, "mine\n")
    assert _doctor(*words, "--overwrite", cwd=tmp_path).returncode == 1
    assert script.read_text() != "mine\n"


@pytest.mark.parametrize("words", [("out",), ("--prove", "--host", "x.json"), ("--json", "--fix-script", "-")])
def test_what_does_not_go_together_is_wrong_usage(words, tmp_path):
    assert _doctor(*words, cwd=tmp_path).returncode == 2
