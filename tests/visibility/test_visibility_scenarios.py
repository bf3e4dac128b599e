"""Public reports of cards that could not be used: each as the files and the machine that it describes."""

import json
from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.shapes.finding import Finding
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.lint import lint_all
from selfhost.visibility.sources import read_source

SCENARIOS = sorted((Path(__file__).parent.parent / "cases" / "scenarios").iterdir())
BESIDE = ("host.json", "expect.json")


def found(folder: Path) -> tuple[Finding, ...]:
    snapshot = folder / "host.json"
    host = detect(Recorded.load(snapshot), wide=True) if snapshot.exists() else None
    workloads = [
        workload
        for path in sorted(folder.iterdir())
        if path.name not in BESIDE
        for workload in read_source(path.read_text(encoding="utf-8"), path=path.name, files=NO_FILES)
    ]
    return lint_all(workloads, host)


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_a_report_is_explained_and_nothing_else_is_claimed(folder: Path) -> None:
    expected = json.loads((folder / "expect.json").read_text(encoding="utf-8"))
    ids = {finding.id for finding in found(folder)}
    assert set(expected["rules"]) <= ids
    assert not ids & set(expected["must_not"])
