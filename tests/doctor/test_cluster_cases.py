"""Public reports as snapshots of a cluster: what doctor finds first, and what it must say."""

import json
import tomllib
from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.doctor.areas.kubernetes import cluster_area
from selfhost.doctor.cluster.state import Cluster
from selfhost.shapes.finding import Severity

CASES = Path(__file__).parent.parent / "cases" / "cluster"
EXPECTED = tomllib.loads((CASES / "expect.toml").read_text())


def _findings(name: str):
    system = Recorded.load(CASES / f"{name}.json")
    return cluster_area(Cluster(system.kubernetes), target=EXPECTED[name].get("target", "")).findings


def test_every_snapshot_is_expected_something_of():
    assert sorted(path.stem for path in CASES.glob("*.json")) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_report_gets_its_verdict(name):
    found = _findings(name)
    said = (
        json.dumps([finding.to_json() for finding in found], ensure_ascii=False)
        .replace('\\"', '"')
        .replace("\\n", "\n")
    )
    assert set(EXPECTED[name]["ids"]) <= {finding.id for finding in found}
    assert [words for words in EXPECTED[name]["says"] if words not in said] == []


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in ("K012", "K025")])
def test_the_cause_stands_first(name):
    assert _findings(name)[0].id in EXPECTED[name]["ids"]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_finding_says_what_why_and_how_to_mend_it(name):
    for finding in _findings(name):
        assert finding.title
        assert finding.evidence
        assert finding.why
        assert finding.fix
        assert finding.place.object
        assert finding.source.startswith("https://" if finding.id.startswith("KX") else "")


def test_warnings_of_service_links_are_no_cause():
    found = {finding.id: finding for finding in _findings("K012")}
    assert found["KX319"].severity is Severity.INFO
