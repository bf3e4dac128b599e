"""`selfhost smoke` as a process, against the fake engine."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.fakes.engine import FakeEngine, Options

ROOT = Path(__file__).parents[2]
KEY = "sk-test-0123456789"
FEW = "SM001,SM801,SM101"


def smoke(*argv):
    return subprocess.run(
        [sys.executable, "-m", "selfhost", "smoke", *argv],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        timeout=60,
        check=False,
    )


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(KEY + "\n")
    return str(path)


def serve(*faults, key=KEY):
    return FakeEngine(Options(context=512, key=key, faults=frozenset(faults), token_s=0.0))


def test_a_healthy_endpoint_passes_with_one_line_a_check(key_file):
    with serve() as engine:
        done = smoke("--url", engine.url, "--key-file", key_file, "--only", FEW)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"{engine.url} · toy"
    assert "\nSM001 ok models lists exactly toy (" in done.stdout
    assert "4 of 4 checks passed; for this address as it is now; answer quality not tested (" in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_a_failed_check_exits_1_and_explains(key_file):
    with serve("no-key") as engine:
        done = smoke("--url", engine.url, "--key-file", key_file, "--only", FEW)
    assert done.returncode == 1
    assert "SM801 FAIL /v1/models without a key was answered 200, expected 401" in done.stdout
    assert "error[SM801]: /v1/models without a key was answered 200, expected 401" in done.stdout
    assert "3 of 4 checks passed, 1 failed; " in done.stdout


def test_json_is_one_document_and_junit_goes_to_its_file(key_file, tmp_path):
    report = tmp_path / "junit.xml"
    with serve() as engine:
        done = smoke("--url", engine.url, "--key-file", key_file, "--only", FEW, "--json", "--junit", str(report))
    body = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (body["schema"], body["ok"], len(body["checks"])) == ("selfhost.findings/1", True, 4)
    assert ET.parse(report).getroot().find("testsuite").get("tests") == "4"


@pytest.mark.parametrize(
    ("argv", "code", "id"),
    [
        (("--url", "ftp://x"), 2, "CF064"),
        (("toy", "--url", "http://127.0.0.1:9"), 2, "CF062"),
        (("--model", "toy"), 2, "CF063"),
        (("--url", "http://127.0.0.1:9", "--key-file", "/nonexistent"), 2, "CF065"),
        (("--url", "http://127.0.0.1:9"), 4, "SM003"),
        (("--url", "http://127.0.0.1:9", "--model", "m", "--only", "SM999"), 2, "CF061"),
    ],
)
def test_wrong_usage_is_named(argv, code, id):
    done = smoke(*argv)
    assert (done.returncode, f"error[{id}]: " in done.stderr) == (code, True), done.stderr


def test_a_server_that_wants_a_key_says_which_option_gives_it():
    with serve() as engine:
        done = smoke("--url", engine.url)
    assert done.returncode == 2
    assert "error[CF066]" in done.stderr
    assert "--key-file FILE" in done.stderr


def test_of_several_models_one_must_be_named(key_file):
    with serve("extra-model") as engine:
        done = smoke("--url", engine.url, "--key-file", key_file)
    assert done.returncode == 2
    assert "lists 2 models; which one?" in done.stderr


def test_what_can_not_be_judged_exits_3():
    with serve(key="") as engine:
        done = smoke("--url", engine.url, "--only", "SM801")
    assert done.returncode == 3
    assert "SM801 skipped: no key was given, so none can be checked" in done.stdout


def test_a_remark_of_a_check_that_passed_takes_one_line(key_file):
    options = Options(context=1024, key=KEY, parser="qwen3", token_s=0.0)
    with FakeEngine(options) as engine:
        done = smoke("--url", engine.url, "--key-file", key_file, "--only", "SM310")
    assert done.returncode == 0, done.stdout
    remark = next(line for line in done.stdout.splitlines() if "info[SM310]" in line)
    after = done.stdout.split(remark)[1].splitlines()
    assert [line for line in after if line] == [after[-1]]  # the closing words


def test_a_file_of_the_users_is_not_taken_for_pythons_own(key_file, tmp_path, monkeypatch):
    (tmp_path / "tempfile.py").write_text("raise SystemExit('mine')\n")
    monkeypatch.chdir(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    with serve() as engine:
        argv = ["-P", "-m", "selfhost", "smoke", "--url", engine.url, "--key-file", key_file, "--only", "SM020"]
        done = subprocess.run([sys.executable, *argv], capture_output=True, text=True, env=env, timeout=60, check=False)
    assert "\nSM020 ok" in done.stdout, done.stdout + done.stderr
