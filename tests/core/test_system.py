import os

import pytest

from selfhost.core.system import LocalSystem


def test_a_missing_program_is_a_result():
    done = LocalSystem().run(["no-such-program-here"], timeout_s=5)
    assert (done.missing, done.ok, done.rc) == (True, False, 127)


def test_a_program_that_takes_too_long_is_ended_and_its_words_are_kept():
    done = LocalSystem().run(["sh", "-c", "echo begun; exec sleep 30"], timeout_s=0.5)
    assert (done.timed_out, done.ok, done.stdout) == (True, False, "begun\n")


def test_output_that_is_not_utf_8_is_still_output():
    done = LocalSystem().run(["printf", r"a\377b"], timeout_s=5)
    assert (done.ok, done.stdout) == (True, "a\ufffdb")


def test_a_command_sees_the_environment_it_is_handed_and_its_stdin():
    system = LocalSystem({"PATH": os.environ["PATH"], "COLOUR": "green"})
    assert system.run(["sh", "-c", "echo $COLOUR; cat"], timeout_s=5, stdin="in").stdout == "green\nin"
    assert system.run(["sh", "-c", "echo $COLOUR"], timeout_s=5, env={"PATH": os.environ["PATH"]}).stdout == "\n"


def test_device_nodes_have_numbers_and_opening_says_how_it_went(tmp_path):
    system = LocalSystem({})
    null = system.stat("/dev/null")
    assert (null.kind, null.major, null.minor) == ("c", 1, 3)  # Documentation/admin-guide/devices.txt
    assert system.try_open("/dev/null") == "ok"
    assert system.try_open(str(tmp_path / "none")) == "ENOENT"
    assert system.try_open(str(tmp_path)) == "EISDIR"


def test_what_is_not_there_raises_and_the_disk_of_a_future_folder_is_that_of_its_parent(tmp_path):
    system = LocalSystem({})
    for look in (system.read, system.listdir, system.readlink, system.stat):
        with pytest.raises(FileNotFoundError):
            look(str(tmp_path / "none"))
    assert system.disk(str(tmp_path / "not" / "yet"))[0] == system.disk(str(tmp_path))[0]


def test_a_command_that_is_too_late_takes_its_children_along(tmp_path):
    script = tmp_path / "wrapper"
    script.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {tmp_path}/child\necho early\nwait\n")
    script.chmod(0o755)
    done = LocalSystem().run([str(script)], timeout_s=0.5)
    assert done.timed_out
    assert done.stdout == "early\n"
    child = (tmp_path / "child").read_text().strip()
    state = LocalSystem().run(["ps", "-o", "stat=", "-p", child], timeout_s=5).stdout.strip()
    assert state[:1] in ("", "Z")
