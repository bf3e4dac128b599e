"""A file of ours that is damaged, newer or out of reach is never a crash, and never lost."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.json_file import read_json


def port(raw: dict[str, Any]) -> int:
    return int(raw["port"])


def read(path: Path):
    return read_json(path, port, schema="selfhost.plan/2", id="RT021", title="the plan is damaged")


def test_what_is_there_is_read_and_what_is_not_is_none(tmp_path: Path) -> None:
    assert read(tmp_path / "plan.json") == (None, ())
    (tmp_path / "plan.json").write_text('{"schema": "selfhost.plan/2", "port": 8000}')
    assert read(tmp_path / "plan.json") == (8000, ())


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ('{"schema": "selfh', "Unterminated string"),
        ("", "Expecting value"),
        ("[1]", "it holds no JSON object"),
        ("\x00\xff", ""),
        ("[" * 100_000, ""),
        ("{}", "it has no 'schema'"),
        ('{"schema": "selfhost.plan/1", "port": 1}', "its schema is selfhost.plan/1, not selfhost.plan/2"),
        ('{"schema": "other/9", "port": 1}', "its schema is other/9"),
        ('{"schema": "selfhost.plan/2"}', "it has no 'port'"),
        ('{"schema": "selfhost.plan/2", "port": []}', ""),
    ],
)
def test_a_damaged_file_is_set_aside_as_it_was(tmp_path: Path, text: str, evidence: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    value, (finding,) = read(path)
    assert value is None
    assert (finding.id, finding.severity) == ("RT021", "warning")
    assert finding.title == "the plan is damaged"
    assert finding.evidence.startswith(evidence)
    assert not path.exists()
    assert Path(finding.place.path).read_text() == text
    assert finding.fix == (f"nothing to do; to look at it:\nless {finding.place.path}",)
    assert read(path) == (None, ())


def test_state_of_a_newer_version_is_refused_in_words_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"schema": "selfhost.plan/3", "port": "another form"}))
    value, (finding,) = read(path)
    assert value is None
    assert (finding.id, finding.severity) == ("RT022", "error")
    assert "selfhost.plan/3" in finding.title
    assert json.loads(path.read_text())["port"] == "another form"


def test_a_file_that_cannot_be_read_is_said_to_be_so_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.mkdir()  # also root can't read a folder
    value, (finding,) = read(path)
    assert (value, finding.id, finding.evidence) == (None, "RT052", os.strerror(21))
    assert path.is_dir()
