"""Manifests that a real API server was asked about: what a file alone can decide is an error, the legal one is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.host import Host
from selfhost.visibility.files import NO_FILES, Files
from selfhost.visibility.project import Source, judge

LINES = (Path(__file__).parent.parent / "cases" / "k8s-bad-manifests.jsonl").read_text(encoding="utf-8").splitlines()
ROWS = {row["id"].partition("-")[0]: row for row in map(json.loads, LINES)}
EXPECTED = {
    "b01": ("DV033", "0.5"),
    "b02": ("DV033", "limits: 2, requests: 1"),
    "b03": ("DV033", "no limit"),
    "b04": ("DV033b", "spec.resources"),
    "b05": ("KX456", "livenesProbe"),
    "b06": ("KX360", "45"),
    "b07": ("KX353", "successThreshold: 2"),
    "b08": ("KX053", "Recreate"),
    "b09": ("KX054", "maxUnavailable 0"),
    "b10": ("KX055", "app: a in the selector, b in the template"),
    "b11": ("KX450", "letters; 63 are the most"),
    "b12": ("KX450", "Qwen/Qwen3-4B"),
    "b13": ("KX454", "HF_TOKEN"),
    "b14": ("KX455", "value: 1"),
    "b15": ("KX550", "gpu"),
    "b16": ("KX552", "no exactly"),
    "b17": ("KX553", "16Gi"),
    "b18": ("KX551", "<=1.30"),
    "b19": ("KX252", "/dev/shm"),
    "b22": ("KX050", "Gt 16Gi"),
    "b23": ("KX060", "minAvailable 1"),
    "b24": ("KX451", "hostname"),
    "b27": ("KX071", "memory: 16"),
    "b28": ("KX070", "16GiB"),
}
BY_THE_CLUSTER = ("b20", "b21", "b25")
"""Whether a RuntimeClass, a PriorityClass or a Secret exists is nothing that a file tells."""


def beside(path: str) -> Files:
    del path
    return NO_FILES


def errors(text: str, host: Host | None = None, name: str = "x.yaml") -> list[Finding]:
    found = judge([Source(path=name, text=text)], host=host, beside=beside).findings
    return [finding for finding in found if finding.severity is Severity.ERROR]


def as_list(text: str) -> str:
    """The same objects as JSON, inside a List."""
    from selfhost.core.yaml import documents

    items: list[Any] = [tree.data for tree in documents(text, path="x.yaml")]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1)


@pytest.mark.parametrize("number", EXPECTED)
def test_what_is_really_wrong_is_an_error_that_names_its_cause(number: str) -> None:
    assert ROWS[number]["really_wrong"]
    id_, words = EXPECTED[number]
    found = errors(ROWS[number]["yaml"])
    assert [finding.id for finding in found] == [id_]
    assert words in found[0].evidence
    assert found[0].place.line
    assert found[0].fix


@pytest.mark.parametrize("number", EXPECTED)
def test_the_same_in_a_json_list_is_found_too(number: str) -> None:
    found = errors(as_list(ROWS[number]["yaml"]), name="x.json")
    assert [finding.id for finding in found] == [EXPECTED[number][0]]
    assert found[0].place.line
    assert found[0].place.line > 1


def test_a_legal_manifest_has_no_error() -> None:
    legal = [row["id"] for row in ROWS.values() if not row["really_wrong"]]
    assert legal == ["b26-gpu-quoted-int"]
    assert errors(ROWS["b26"]["yaml"]) == []


@pytest.mark.parametrize("number", BY_THE_CLUSTER)
def test_nothing_is_claimed_of_what_only_the_cluster_knows(number: str) -> None:
    assert errors(ROWS[number]["yaml"]) == []


def test_every_row_is_decided_or_named() -> None:
    assert {*EXPECTED, *BY_THE_CLUSTER, "b26"} == set(ROWS)
