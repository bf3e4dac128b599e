import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from selfhost.core.files import append_line, ensure_folder, set_aside, sweep, write_atomic

ROOT = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from selfhost.core.files import write_atomic
turn = 0
while True:
    write_atomic(Path(sys.argv[1]), chr(97 + turn % 26) * 200_000)
    turn += 1
    if turn == 1:
        print("writing", flush=True)
"""


def test_a_file_is_whole_after_its_writer_was_killed_and_leftovers_can_be_swept(tmp_path):
    target = tmp_path / "state.json"
    for turn in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(target)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        with writer:
            writer.stdout.readline()
            time.sleep(0.003 * turn)
            writer.send_signal(signal.SIGKILL)
        text = target.read_text()
        assert len(text) == 200_000
        assert len(set(text)) == 1
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_files_are_for_their_owner_only(tmp_path):
    write_atomic(tmp_path / "new" / "deep" / "file", "x")
    append_line(tmp_path / "new" / "journal", "x")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "new").rglob("*")}
    assert modes == {"deep": 0o700, "file": 0o600, "journal": 0o600}


def test_a_write_that_cannot_finish_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "state.json"
    write_atomic(target, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(target, "\ud800")
    with pytest.raises(IsADirectoryError):
        write_atomic(ensure_folder(tmp_path / "folder"), "new")
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "state.json"]


def test_a_line_after_a_torn_one_starts_on_its_own(tmp_path):
    journal = tmp_path / "journal.jsonl"
    append_line(journal, "one")
    with journal.open("a") as stream:
        stream.write('{"half": ')
    append_line(journal, "two")
    assert journal.read_text() == 'one\n{"half": \ntwo\n'


def test_damage_is_set_aside_and_never_over_earlier_damage(tmp_path):
    kept = []
    for content in ("first", "second", "third"):
        (tmp_path / "plan.json").write_text(content)
        kept.append(set_aside(tmp_path / "plan.json"))
    assert [path.read_text() for path in kept] == ["first", "second", "third"]
    assert not (tmp_path / "plan.json").exists()
