"""`selfhost explain` reads whatever exists and is no folder."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import selfhost
from selfhost.cli import _log, run

FULL = "OSError: [Errno 28] No space left on device\n"
ENV = {"PYTHONPATH": str(Path(selfhost.__file__).parents[1])}


def test_a_named_pipe_is_read(tmp_path, capsys):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(FULL,))
    writer.start()
    assert run(["explain", str(path)]) == 1
    writer.join(timeout=10)
    assert "error[EF020]" in capsys.readouterr().out


def test_what_a_shell_hands_over_as_a_file_is_read():
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m selfhost explain <(printf "{FULL.strip()}")'],
        env={**os.environ, **ENV}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "error[EF020]" in done.stdout


def test_an_empty_device_is_an_empty_log():
    assert run(["explain", os.devnull]) == 3


@pytest.mark.parametrize("redirection", ["<&-", "</dev/null"])
def test_without_a_stdin_the_input_is_wrong(redirection):
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m selfhost explain - {redirection}'],
        env={**os.environ, **ENV}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, "error[CF084]: there is nothing to read on stdin" in done.stderr) == (2, True), done


def test_of_a_long_pipe_the_beginning_and_the_end_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(_log, "HEAD_BYTES", 4)
    monkeypatch.setattr(_log, "TAIL_BYTES", 4)
    monkeypatch.setattr(_log, "CHUNK_BYTES", 2)
    path = tmp_path / "pipe"
    path.write_bytes(b"headMIDDLEtail")
    with path.open("rb") as stream:
        assert _log._ends(stream) == b"headtail"


def test_a_name_too_long_for_a_file_is_wrong_input(capsys):
    assert run(["explain", "x" * 5000]) == 2
    assert "error[CF080]" in capsys.readouterr().err
