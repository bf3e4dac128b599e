"""Manifests of our own making, and one that a `restricted` namespace took: nothing at all is said of them."""

from pathlib import Path

import pytest

from selfhost.visibility.files import NO_FILES, Files
from selfhost.visibility.project import Source, judge

TESTS = Path(__file__).parent.parent
RENDERED = sorted((TESTS / "golden").glob("*/kubernetes/manifests.yaml"))
TAKEN = TESTS / "cases" / "correct" / "k8s-restricted-deployment.yaml"


def beside(path: str) -> Files:
    del path
    return NO_FILES


def said(path: Path) -> list[str]:
    found = judge([Source(path=path.name, text=path.read_text(encoding="utf-8"))], host=None, beside=beside).findings
    return [f"{finding.id} {finding.place}: {finding.title}" for finding in found]


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.parent.parent.name)
def test_what_is_rendered_has_no_finding(path: Path) -> None:
    assert said(path) == []


def test_a_manifest_that_was_taken_has_no_finding() -> None:
    assert said(TAKEN) == []


def test_a_slip_in_it_is_found(tmp_path: Path) -> None:
    text = TAKEN.read_text(encoding="utf-8")
    for right, wrong, id_ in (
        ("memory: 12Gi,", "memory: 12GB,", "KX070"),
        ("maxSurge: 0, maxUnavailable: 1", "maxSurge: 1, maxUnavailable: 0", "KX051"),
        ("failureThreshold: 180", "failureThreshold: 6", "KX350"),
        ("[vllm, serve]", "[sh, -c, vllm serve Qwen/Qwen3-4B --port=8000 --shutdown-timeout=60]", "KX362"),
        ("claimName: qwen3-4b-cache", "claimName: qwen3-4b-cach", "KX459"),
        ("value: /cache/hf", "value: /tmp/hf", "KX254"),
        ("targetPort: http", "targetPort: htp", "KX652"),
    ):
        assert right in text
        file = tmp_path / "x.yaml"
        file.write_text(text.replace(right, wrong, 1), encoding="utf-8")
        assert id_ in {line.partition(" ")[0] for line in said(file)}, id_
