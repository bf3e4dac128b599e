"""Rules over files of every form: each speaks on its bad cases, and nothing is said of a good one."""

import re
from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.core.resources import resource
from selfhost.hosts.detect import detect
from selfhost.shapes.finding import Finding, Severity
from selfhost.shapes.host import Host
from selfhost.visibility.files import NO_FILES, Files
from selfhost.visibility.lint import lint_all, lint_objects, rule_count, rules
from selfhost.visibility.objects import Manifests
from selfhost.visibility.rule import Scope
from selfhost.visibility.sources import objects_in, read_source
from tests.fakes.machines import HOSTS

TESTS = Path(__file__).parent.parent
CASES = TESTS / "cases" / "lint"
SAID = re.compile(r"^(?:#|//) (host|snapshot): (\S+)$", re.MULTILINE)
# By their folders, not by the registry: a rule that is lost must be missed.
OURS = sorted(
    folder.name
    for folder in CASES.iterdir()
    if not any('"selfhost.snapshot/1"' in case.read_text(encoding="utf-8") for case in folder.glob("bad-*.json"))
)


class Beside:
    """Files that lie beside a case, such as its env_file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def text(self, path: str) -> str | None:
        file = self.folder / path
        return file.read_text(encoding="utf-8") if file.is_file() else None


def machine(path: Path, text: str) -> Host | None:
    said = SAID.search(text)
    kind, name = said.groups() if said else ("snapshot", path.stem.partition("@")[2])
    if not name:
        return None
    return HOSTS[name] if kind == "host" else detect(Recorded.load(TESTS / "snapshots" / f"{name}.json"), wide=True)


def found(path: Path) -> tuple[Finding, ...]:
    text = path.read_text(encoding="utf-8")
    files: Files = Beside(path.parent) if any(path.parent.glob("*.env")) else NO_FILES
    host = machine(path, text)
    objects = Manifests.of(objects_in(text, path=str(path), files=files))
    return (*lint_all(read_source(text, path=str(path), files=files), host), *lint_objects(objects, host))


def cases(kind: str) -> list[Path]:
    return [path for number in OURS for path in sorted((CASES / number).glob(f"{kind}-*")) if path.suffix != ".env"]


def case_id(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", cases("bad"), ids=case_id)
def test_a_bad_file_is_found(path: Path) -> None:
    number = path.parent.name
    finding = next(one for one in found(path) if one.id == number)
    assert finding.place.path.startswith(str(path.parent))
    assert finding.place.line
    assert finding.evidence
    assert finding.why
    assert finding.fix


def is_silent(finding: Finding, number: str) -> bool:
    """Of its own family nothing at all; of manifests, whose short cases lack much, no error and not its own rule."""
    if rules()[finding.id][0].scope is Scope.HOST:
        return True
    of_objects = finding.id.startswith("KX")
    return of_objects and finding.id != number and finding.severity is not Severity.ERROR


@pytest.mark.parametrize("path", cases("good"), ids=case_id)
def test_nothing_is_found_in_a_good_file(path: Path) -> None:
    said = [finding for finding in found(path) if not is_silent(finding, path.parent.name)]
    assert [f"{finding.id} {finding.title}" for finding in said] == []


@pytest.mark.parametrize("number", OURS)
def test_every_rule_is_documented_and_has_red_and_green_cases(number: str) -> None:
    spec = rules()[number][0]
    assert spec.id == number
    assert spec.source.startswith("https://")
    page = resource("rules", f"{number}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {number}: ")
    for heading in ("What", "Why it hurts", "Bad", "Good", "Source"):
        assert f"\n## {heading}\n" in page, (number, heading)
    assert list((CASES / number).glob("bad-*"))
    assert list((CASES / number).glob("good-*"))


def test_every_rule_has_its_folder_of_cases() -> None:
    assert set(rules()) == {folder.name for folder in CASES.iterdir()}
    assert rule_count() == len(rules()) >= 40


def test_a_finding_stands_on_the_line_of_its_variable() -> None:
    finding = next(one for one in found(CASES / "DV002" / "bad-one-card.sh") if one.id == "DV002")
    assert finding.place.line == 3


def test_a_secret_that_is_found_is_not_repeated() -> None:
    for path in (CASES / "DV090").glob("bad*.sh"):
        for finding in found(path):
            assert "notareal" not in str(finding)
            assert "not-a-real-key" not in str(finding)


def test_without_a_host_only_what_the_file_alone_proves_is_said() -> None:
    text = "export CUDA_VISIBLE_DEVICES=7\nexec python -m vllm.x --api-key k\n"
    seen = lint_all(read_source(text, path="x.sh", files=NO_FILES), None)
    assert {finding.id for finding in seen} == {"DV090"}
    assert all(finding.severity is Severity.ERROR for finding in seen)
