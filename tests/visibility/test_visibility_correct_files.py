"""Files in the forms that official documentation shows: no rule calls an error on any of them."""

import re
from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.host import Host
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.lint import lint_all, lint_objects, rules
from selfhost.visibility.objects import Manifests
from selfhost.visibility.rule import Scope
from selfhost.visibility.sources import objects_in, read_source
from tests.fakes.machines import HOSTS

TESTS = Path(__file__).parent.parent
CORRECT = sorted((TESTS / "cases" / "correct").iterdir())
SAID = re.compile(r"^# works on: (.+)$", re.MULTILINE)


def machine(name: str) -> Host:
    return HOSTS.get(name) or detect(Recorded.load(TESTS / "snapshots" / f"{name}.json"), wide=True)


def errors(path: Path, host: Host | None) -> list[Finding]:
    """Of the file; what is wrong with the machine whatever runs there is not its fault."""
    text = path.read_text(encoding="utf-8")
    workloads = read_source(text, path=path.name, files=NO_FILES)
    objects = Manifests.of(objects_in(text, path=path.name, files=NO_FILES))
    said = (*lint_all(workloads, host), *lint_objects(objects, host))
    found = [finding for finding in said if finding.severity is Severity.ERROR]
    return [finding for finding in found if rules()[finding.id][0].scope is not Scope.HOST]


def in_words(found: list[Finding]) -> str:
    return "\n".join(f"{finding.id} {finding.place}: {finding.title}" for finding in found)


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.name)
def test_a_correct_file_has_no_error(path: Path) -> None:
    assert in_words(errors(path, None)) == ""


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.name)
def test_it_has_none_on_the_machines_where_it_works_either(path: Path) -> None:
    said = SAID.search(path.read_text(encoding="utf-8"))
    for name in said[1].split(", ") if said else ():
        assert in_words(errors(path, machine(name))) == "", name


def test_there_are_enough_of_them() -> None:
    assert len(CORRECT) >= 90
