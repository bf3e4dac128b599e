import json

from selfhost.deploy.journal import Journal


def test_what_was_written_is_read_back_in_order(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write("plan", "done", digest="a")
    journal.write("fetch", "done", digest="b", data={"made": [{"kind": "weights", "path": "/x", "existed": False}]})
    entries, damage = journal.read()
    assert [(e.step, e.state, e.digest) for e in entries] == [("plan", "done", "a"), ("fetch", "done", "b")]
    assert damage == ()
    assert [thing["path"] for thing in journal.made(journal.read()[0])] == ["/x"]


def test_a_torn_last_line_is_passed_over_and_the_next_line_stands_alone(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.write("plan", "done")
    with path.open("a") as stream:
        stream.write('{"at": "2026-12-02T08:00:00+00:00", "da')
    entries, damage = journal.read()
    assert [e.step for e in entries] == ["plan"]
    assert damage == ()
    journal.write("apply", "done")
    assert json.loads(path.read_text().splitlines()[-1])["step"] == "apply"
    entries, damage = journal.read()
    assert [e.step for e in entries] == ["plan", "apply"]
    assert damage == ()


def test_damage_in_the_middle_is_set_aside_named_and_the_readable_lines_still_count(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.write("plan", "done")
    journal.write("fetch", "done", data={"made": [{"kind": "weights", "path": "/w", "existed": True}]})
    lines = path.read_text().splitlines()
    path.write_text("\x00\x00 not json\n" + "\n".join(lines) + "\n")
    entries, damage = journal.read()
    assert [e.step for e in entries] == ["plan", "fetch"]
    assert damage[0].id == "RT020"
    kept = list(tmp_path.glob("journal.jsonl.damaged-*"))
    assert len(kept) == 1
    assert "not json" in kept[0].read_text()
    again, damage = journal.read()
    assert [e.step for e in again] == ["plan", "fetch"]
    assert damage == ()
    assert [thing["existed"] for thing in journal.made(journal.read()[0])] == [True]


def test_the_first_sight_of_a_thing_decides_whether_it_existed_before(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for existed in (False, True):
        journal.write("fetch", "made", data={"made": [{"kind": "environment", "path": "/e", "existed": existed}]})
    assert [thing["existed"] for thing in journal.made(journal.read()[0])] == [False]
