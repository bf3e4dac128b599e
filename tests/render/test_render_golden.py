"""Golden files of many machines: the bytes, what they mean when they are read back, and our own lint."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from selfhost.deploy.read_back import read_bundle
from selfhost.plan.workload import workload_of
from selfhost.render.targets import TARGETS
from selfhost.shapes.finding import Severity
from selfhost.visibility.lint import lint, rules
from selfhost.visibility.rule import Scope
from tests.fakes.workloads import without_places
from tests.render.golden_cases import GOLDEN, HOSTS, MODES, Case, cases, files_of, host_of, place_of, plan_of, rendered

KWARGS = "--default-chat-template-kwargs"


def on_disk(case: Case) -> dict[str, str]:
    folder = GOLDEN / str(case)
    files = (path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else ()
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in files}


def write(case: Case, files: dict[str, str]) -> None:
    folder = GOLDEN / str(case)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, text in files.items():
        (folder / path).write_bytes(text.encode())


@pytest.mark.parametrize("case", cases(), ids=str)
def test_the_same_bytes_as_before(case: Case, regenerate: bool) -> None:
    files = files_of(case)
    if regenerate:
        write(case, files)
    assert files == on_disk(case)


@pytest.mark.parametrize("case", rendered(), ids=str)
def test_a_golden_folder_reads_back_as_its_plan(case: Case) -> None:
    plan = plan_of(case)
    assert without_places(read_bundle(case.target, on_disk(case))) == without_places(workload_of(plan, place_of(plan)))


@pytest.mark.parametrize("case", rendered(), ids=str)
def test_lint_has_nothing_to_say_of_it_on_its_machine(case: Case) -> None:
    found = lint(read_bundle(case.target, on_disk(case)), host_of(case.host))
    ours = [one for one in found if rules()[one.id][0].scope is not Scope.HOST and one.severity is not Severity.INFO]
    assert [f"{one.id} {one.title}" for one in ours] == []


@pytest.mark.parametrize("case", [case for case in rendered() if case.folder.startswith("reasoning-")], ids=str)
def test_the_reasoning_mode_is_the_one_asked_for(case: Case) -> None:
    argv = read_bundle(case.target, on_disk(case)).argv
    said = json.loads(argv[argv.index(KWARGS) + 1]) if KWARGS in argv else {}
    assert said == plan_of(case).reasoning.template_defaults
    mode = case.folder.split("-")[1]
    if mode in ("on", "off"):
        assert said["enable_thinking"] is (mode == "on")
    if mode == "no":
        assert KWARGS not in argv


@pytest.mark.parametrize("case", [case for case in rendered() if case.target == "quadlet"], ids=str)
def test_no_comment_stands_within_a_continued_setting(case: Case) -> None:
    """Quadlet before podman 5 ends the setting there and refuses the rest (containers/podman#21556)."""
    for name, text in on_disk(case).items():
        if name.endswith((".container", ".network", ".volume")):
            lines = text.splitlines()
            pairs = pairwise(lines)
            assert [
                after for before, after in pairs if before.endswith("\\") and after.lstrip()[:1] in ("#", ";", "")
            ] == []


@pytest.mark.parametrize("target", TARGETS)
def test_the_readme_asks_with_what_the_mode_needs_of_every_client(target: str) -> None:
    said = {
        mode: (GOLDEN / f"reasoning-{mode}-vllm" / target / "README.txt").read_text()
        for mode in ("budget", "effort", "on")
    }
    assert '"thinking_token_budget": 2048, "max_tokens": 3072}' in said["budget"]
    assert '"reasoning_effort": "low"}' in said["effort"]
    assert [mode for mode, text in said.items() if "keeps this mode only" in text] == ["budget", "effort"]
    assert "thinking_token_budget" not in said["on"]


def test_there_are_enough_of_them() -> None:
    assert len(HOSTS) - 1 >= 12
    folders = {path.relative_to(GOLDEN) for path in GOLDEN.glob("*/*") if path.is_dir()}
    assert folders == {Path(str(case)) for case in cases()}
    assert len(rendered()) >= 3 * len(HOSTS) + 3 * len(MODES)
    assert {case.target for case in rendered()} == set(TARGETS)
