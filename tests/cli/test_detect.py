import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SNAPSHOT = {
    "schema": "selfhost.snapshot/1",
    "files": {
        "/etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n',
        "/proc/sys/kernel/osrelease": "6.8.0-58-generic\n",
        "/proc/meminfo": "MemTotal:       65746364 kB\nMemAvailable:   60922904 kB\n",
        "/proc/cpuinfo": "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu avx2 avx512f\n",
    },
    "disks": {"/": {"total": 250_000_000_000, "free": 80_000_000_000}},
}


def detect(*argv):
    return subprocess.run(
        [sys.executable, "-m", "selfhost", "detect", *argv],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        timeout=60,
        check=False,
    )


def saved(tmp_path):
    path = tmp_path / "host.json"
    path.write_text(json.dumps(SNAPSHOT))
    return str(path)


def test_a_saved_machine_is_read_instead_of_this_one(tmp_path):
    done = detect("--from", saved(tmp_path))
    assert done.returncode == 0
    first = done.stdout.splitlines()[0]
    assert first.startswith("Machine    Ubuntu 24.04.1 LTS · kernel 6.8.0-58-generic · ")
    # 65,746,364 kB and 60,922,904 kB over 1,048,576
    assert "62.7 GiB memory, 58.1 GiB available" in first
    # 80e9 and 250e9 over 2^30
    assert "Disk       / · 74.5 GiB free of 232.8 GiB" in done.stdout.splitlines()
    assert "no accelerator found" in done.stderr


def test_json_is_one_document_and_stderr_is_empty(tmp_path):
    done = detect("--json", "--from", saved(tmp_path))
    host = json.loads(done.stdout)
    assert (done.returncode, done.stderr, host["schema"]) == (0, "", "selfhost.host/1")
    assert host["machine"]["memory_bytes"]["value"] == 65_746_364 * 1024


def test_quiet_keeps_the_result_only(tmp_path):
    done = detect("-q", "--from", saved(tmp_path))
    assert done.stdout
    assert done.stderr == ""


def test_a_file_that_is_no_snapshot_is_wrong_input(tmp_path):
    (tmp_path / "cut.json").write_text('{"schema": ')
    done = detect("--json", "--from", str(tmp_path / "cut.json"))
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["id"].startswith("CF")


def test_this_machine_is_described_whatever_it_is():
    done = detect("--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["machine"]["cpu"]["cores_online"] >= 1
