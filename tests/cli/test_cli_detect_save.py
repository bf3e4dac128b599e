"""`detect --save`, `--host` and `--inside` from the command line."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def detect(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    argv = [sys.executable, "-m", "selfhost", "detect", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60, check=False)


def test_what_is_saved_reads_back_as_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    first = detect("--save", str(file), "--json")
    assert first.returncode == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = json.loads(detect("--host", str(file), "--json").stdout)
    live = json.loads(first.stdout)
    assert again["machine"]["kernel"] == live["machine"]["kernel"]
    assert again["machine"]["nesting"] == live["machine"]["nesting"]
    assert again["accelerators"] == live["accelerators"]
    assert "replaced" in first.stderr


def test_a_snapshot_is_written_anew_but_nothing_else_is_overwritten(tmp_path: Path) -> None:
    file, other = tmp_path / "machine.json", tmp_path / "notes.txt"
    other.write_text("mine")
    assert detect("--save", str(file)).returncode == 0
    assert detect("--save", str(file)).returncode == 0
    refused = detect("--save", str(other))
    assert refused.returncode == 2
    assert "CF047" in refused.stderr
    assert other.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_named() -> None:
    refused = detect("--save", "/proc/nowhere/machine.json")
    assert refused.returncode == 4
    assert "CF049" in refused.stderr


def test_a_snapshot_has_no_inside(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    detect("--save", str(file))
    refused = detect("--host", str(file), "--inside", "vllm")
    assert refused.returncode == 2
    assert "CF097" in refused.stderr


def test_a_container_that_nobody_knows_is_an_answer() -> None:
    refused = detect("--inside", "docker:selfhost-no-such-container")
    assert refused.returncode == 4
    assert "Traceback" not in refused.stderr


def test_one_look_is_at_one_machine() -> None:
    done = detect("--host", "a.json", "--from", "b.json")
    assert done.returncode == 2
    assert "error[CF095]: --host names 2 machines: a.json, b.json" in done.stderr
