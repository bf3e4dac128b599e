"""Rules over a machine: each speaks on its bad snapshots and is silent on its good ones."""

from pathlib import Path

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect
from selfhost.shapes.finding import Finding, RunOn, Severity
from selfhost.visibility.lint import check_host, rules
from selfhost.visibility.rule import Scope

CASES = Path(__file__).parent.parent / "cases" / "lint"
OURS = sorted(number for number, (spec, _) in rules().items() if spec.scope is Scope.HOST or spec.alone)


def found(path: Path) -> tuple[Finding, ...]:
    return check_host(detect(Recorded.load(path), wide=True))


def cases(kind: str) -> list[Path]:
    return [path for number in OURS for path in sorted((CASES / number).glob(f"{kind}-*.json"))]


def case_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", cases("bad"), ids=case_id)
def test_a_bad_machine_is_found(path: Path) -> None:
    finding = next(one for one in found(path) if one.id == path.parent.name)
    assert finding.title
    assert finding.why
    assert finding.fix
    assert finding.evidence


@pytest.mark.parametrize("path", cases("good"), ids=case_id)
def test_a_good_machine_is_left_alone(path: Path) -> None:
    seen = found(path)
    assert path.parent.name not in {finding.id for finding in seen}
    assert not [finding for finding in seen if finding.severity is Severity.ERROR]


@pytest.mark.parametrize("number", OURS)
def test_every_rule_over_a_machine_has_a_bad_and_a_good_one(number: str) -> None:
    assert list((CASES / number).glob("bad-*.json"))
    assert list((CASES / number).glob("good-*.json"))


@pytest.mark.parametrize(
    ("case", "where"),
    [
        ("DV077/bad-kind", RunOn.CONTAINER_HOST),
        ("DV081/bad-no-avx2", RunOn.HYPERVISOR),
        ("DV071/bad-unprivileged", RunOn.HERE),
        ("DV083/bad-no-node", RunOn.HERE),
    ],
)
def test_a_fix_is_for_the_machine_that_it_belongs_on(case: str, where: RunOn) -> None:
    number = case.partition("/")[0]
    assert {finding.run_on for finding in found(CASES / f"{case}.json") if finding.id == number} == {where}


def test_a_snap_that_works_is_only_warned_of() -> None:
    severity = {
        case: next(one.severity for one in found(CASES / "DV070" / f"{case}.json") if one.id == "DV070")
        for case in ("bad-no-runtime", "bad-own-toolkit")
    }
    assert severity == {"bad-no-runtime": Severity.ERROR, "bad-own-toolkit": Severity.WARNING}


@pytest.mark.parametrize(
    "name",
    [
        "rtx-usable",
        "two-5090",
        "two-rtx",
        "eight-h100",
        "gh200",
        "amd-mi300x",
        "wsl2-rtx",
        "bare-no-cards",
        "pod",
        "vm-kvm",
    ],
)
def test_a_healthy_machine_gives_no_finding(name: str) -> None:
    assert found(CASES.parent.parent / "snapshots" / f"{name}.json") == ()
