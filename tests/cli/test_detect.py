"""What `detect` says of a machine: nothing that `up` would then deny."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from selfhost.cli._machine import lines
from selfhost.core.errors import SelfhostError
from selfhost.core.recorded import Recorded
from selfhost.core.terminal import Terminal
from selfhost.hosts.detect import detect as detect_host
from selfhost.hosts.placement import gate
from selfhost.hosts.to_json import findings

PLAIN = Terminal(io.StringIO(), {})
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


SNAPSHOTS = ROOT / "tests" / "snapshots"


@pytest.mark.parametrize(
    ("name", "state", "id", "counted"),
    [
        ("amd-usable", "usable, not by this version", "HX008", "0 of 1 accelerator usable by this version"),
        ("strix-halo", "usable, not by this version", "HX008", "0 of 1 accelerator usable by this version"),
        ("amd-masked", "usable, not by this version", "HX008", "0 of 2 accelerators usable by this version"),
        ("arc-b70-pair", "/dev/dri/renderD129 may not be opened (EACCES)", "HX201", "0 of 2 accelerators usable"),
        ("rtx-old-driver", "driver 550.144.03, the engine needs 580 or later", "HX004", "0 of 1 accelerator usable"),
        ("rtx-no-driver", "no NVIDIA driver, bound to nouveau", "HX001", "0 of 1 accelerator usable"),
        ("rtx-vfio", "set aside for a virtual machine (vfio-pci)", "HX006", "0 of 1 accelerator usable"),
        ("pod", "not granted to this pod", "HX301", "0 of 1 accelerator usable"),
        ("rtx-hung-smi", "nvidia-smi gave no answer within 5 s", "HX005", "0 of 1 accelerator usable"),
        ("pascal-only", "vLLM 0.33.0 has no code for sm_61", "HX007", "0 of 1 accelerator usable"),
    ],
)
def test_a_card_that_up_refuses_is_not_called_usable(name, state, id, counted):
    done = detect("--from", str(SNAPSHOTS / f"{name}.json"))
    assert re.search(rf"{re.escape(state)}.*  {id}$", done.stdout, re.MULTILINE)
    assert "  usable\n" not in done.stdout
    assert counted in done.stderr


def gate_id(host, card):
    """Of the error with which the gate refuses this card; empty when an engine is started on it."""
    try:
        placed = gate(host, str(card.index))
    except SelfhostError as error:
        return error.id
    return "" if placed.backend == "cuda" else "cpu"


def test_every_snapshot_says_usable_exactly_where_an_engine_would_be_started():
    seen = set()
    for path in sorted(SNAPSHOTS.glob("*.json")):
        host = detect_host(Recorded.load(path))
        for card in host.accelerators:
            refused = gate_id(host, card)
            assert {refused} <= {"", *(finding.id for finding in findings(host))}
            row = next(line for line in lines(host, PLAIN) if line.startswith(f"   {card.index}  "))
            assert bool(re.search(r"  usable(, but .*)?$", row)) is (refused == ""), (path.name, row)
            seen.add(refused == "")
    assert seen == {True, False}


def test_json_holds_a_finding_for_each_card_that_is_not_used():
    done = detect("--json", "--from", str(SNAPSHOTS / "arc-b70-pair.json"))
    found = json.loads(done.stdout)["findings"]
    assert [(one["id"], one["severity"], one["path"]) for one in found] == [
        ("HX008", "warning", ""),
        ("HX201", "warning", "/dev/dri/renderD129"),
    ]
    assert found[0]["object"] == "Intel Arc Pro B-series (Battlemage)"
    assert json.loads(detect("--json", "--from", str(SNAPSHOTS / "two-rtx.json")).stdout)["findings"] == []


def test_a_file_without_a_schema_is_no_snapshot(tmp_path):
    (tmp_path / "empty.json").write_text("{}")
    done = detect("--from", str(tmp_path / "empty.json"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error[CF041]: ")
    assert "names no `schema`" in done.stderr


def test_of_a_machine_that_was_not_seen_nothing_is_claimed(tmp_path):
    (tmp_path / "bare.json").write_text('{"schema": "selfhost.snapshot/1"}')
    done = detect("--from", str(tmp_path / "bare.json"))
    assert "unknown cores" in done.stdout
    assert "the CPU's cores and memory are unknown" in done.stderr
    assert "can serve" not in done.stderr


def test_a_whole_card_is_not_said_to_be_cut():
    shown = detect("--from", str(SNAPSHOTS / "eight-h100.json")).stdout  # its cards say `MIG Mode: Disabled`
    assert "Disabled" not in shown
    assert len(re.findall(r"(?m)^ +\d+  NVIDIA H100 80GB HBM3 .* usable$", shown)) == 8
