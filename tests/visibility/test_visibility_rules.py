"""Rules over launch scripts: each fires on its bad cases and is silent on its good ones."""

import re
from pathlib import Path

import pytest

from selfhost.core.resources import resource
from selfhost.shapes.finding import Severity
from selfhost.shapes.host import Host, Vendor
from selfhost.shapes.workload import Workload
from selfhost.visibility.lint import lint, rule_count, rules
from selfhost.visibility.readers.process import read
from tests.fakes.planning import a_card, a_host

CASES = Path(__file__).parent.parent / "cases" / "lint"
HOSTS = {
    "no-card": a_host(),
    "one-nvidia": a_host(accelerators=(a_card(),)),
    "two-nvidia": a_host(accelerators=(a_card(0), a_card(1))),
    "mixed-nvidia": a_host(accelerators=(a_card(0, name="NVIDIA GeForce RTX 3060", arch="sm_86", gib=11.6), a_card(1))),
    "two-amd": a_host(accelerators=tuple(a_card(i, name="MI300X", vendor=Vendor.AMD, arch="gfx942") for i in range(2))),
    "one-intel": a_host(
        accelerators=(a_card(0, name="Intel Data Center GPU Max 1550", vendor=Vendor.INTEL, arch="pvc"),)
    ),
}


def load(path: Path) -> tuple[Workload, Host]:
    text = path.read_text(encoding="utf-8")
    named = re.search(r"^# host: (\S+)$", text, re.MULTILINE)
    assert named, f"{path} does not say its host"
    return read(text, path=str(path)), HOSTS[named[1]]


def ids(path: Path) -> set[str]:
    workload, host = load(path)
    return {finding.id for finding in lint(workload, host)}


def case_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", sorted(CASES.glob("*/bad*.sh")), ids=case_id)
def test_a_bad_script_is_found(path: Path) -> None:
    assert path.parent.name in ids(path)


@pytest.mark.parametrize("path", sorted(CASES.glob("*/good*.sh")), ids=case_id)
def test_nothing_is_found_in_a_good_script(path: Path) -> None:
    assert ids(path) == set()


def test_every_rule_is_documented_and_has_red_and_green_cases() -> None:
    assert rule_count() == len(rules()) >= 7
    for number, (spec, _) in rules().items():
        assert spec.id == number
        assert spec.source.startswith("https://")
        page = resource("rules", f"{number}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {number}: ")
        for heading in ("What", "Why it hurts", "Bad", "Good", "Source"):
            assert f"\n## {heading}\n" in page, (number, heading)
        assert list((CASES / number).glob("bad*.sh")), number
        assert list((CASES / number).glob("good*.sh")), number


def test_every_finding_says_where_why_and_what_to_do() -> None:
    for path in CASES.glob("*/bad*.sh"):
        for finding in lint(*load(path)):
            assert finding.place.path == str(path)
            assert finding.why
            assert finding.fix
            assert finding.severity is rules()[finding.id][0].severity


def test_a_finding_stands_on_the_line_of_its_variable() -> None:
    workload, host = load(CASES / "DV002" / "bad-one-card.sh")
    finding = next(iter(lint(workload, host)))
    assert (finding.place.line, finding.place.object) == (3, workload.label)


def test_a_secret_that_is_found_is_not_repeated() -> None:
    for path in (CASES / "DV090").glob("bad*.sh"):
        for finding in lint(*load(path)):
            assert "notareal" not in str(finding)
            assert "not-a-real-key" not in str(finding)


def test_without_a_host_only_what_the_file_alone_proves_is_said() -> None:
    workload = read("export CUDA_VISIBLE_DEVICES=7\nexec python -m vllm.x --api-key k\n", path="x.sh")
    assert {finding.id for finding in lint(workload, None)} == {"DV090"}
    assert all(finding.severity is Severity.ERROR for finding in lint(workload, None))
