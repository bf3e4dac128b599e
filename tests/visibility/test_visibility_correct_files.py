"""Files in the forms that official documentation shows: no rule calls an error on any of them."""

from pathlib import Path

import pytest

from selfhost.shapes.finding import Severity
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.lint import lint_all
from selfhost.visibility.sources import read_source

CORRECT = sorted((Path(__file__).parent.parent / "cases" / "correct").iterdir())


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.name)
def test_a_correct_file_has_no_error(path: Path) -> None:
    workloads = read_source(path.read_text(encoding="utf-8"), path=path.name, files=NO_FILES)
    errors = [finding for finding in lint_all(workloads, None) if finding.severity is Severity.ERROR]
    assert not errors, "\n".join(f"{finding.id} {finding.place}: {finding.title}" for finding in errors)


def test_there_are_enough_of_them() -> None:
    assert len(CORRECT) >= 60
