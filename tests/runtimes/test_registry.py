import json
import subprocess
import sys
from pathlib import Path

from selfhost.core.paths import Paths
from selfhost.runtimes import registry

ROOT = Path(__file__).parent.parent.parent


def made(paths: Paths, name: str, **files: object) -> Path:
    folder = paths.deployment(name)
    (folder / "run").mkdir(parents=True)
    for file, body in files.items():
        text = body if isinstance(body, str) else json.dumps(body)
        (folder / f"{file}.json").write_text(text)
    return folder


def test_names_are_the_folders_that_something_was_recorded_in(paths: Paths) -> None:
    assert registry.names(paths) == ()
    made(paths, "b", plan={"schema": "selfhost.plan/1"})
    made(paths, "a", service={"schema": "selfhost.service/1"})
    made(paths, "only-a-lock")
    (paths.deployments / ".hidden").mkdir()
    (paths.deployments / "file").write_text("x")
    assert registry.names(paths) == ("a", "b")


def test_what_is_there_is_read_and_what_is_not_is_none(paths: Paths) -> None:
    made(paths, "a", plan={"schema": "selfhost.plan/1", "port": 8000})
    record = registry.load(paths, "a")
    assert record.plan == {"schema": "selfhost.plan/1", "port": 8000}
    assert (record.service, record.engine, record.findings, record.newer) == (None, None, (), False)


def test_a_damaged_file_is_set_aside_and_the_rest_still_used(paths: Paths) -> None:
    for number, text in enumerate(('{"schema": "selfh', "", "[1]", "\x00\xff")):
        folder = made(paths, f"d{number}", plan=text, service={"schema": "selfhost.service/1"})
        record = registry.load(paths, f"d{number}")
        assert record.plan is None
        assert record.service == {"schema": "selfhost.service/1"}
        assert [finding.id for finding in record.findings] == ["RT051"]
        assert not (folder / "plan.json").exists()
        assert next(folder.glob("plan.json.damaged-*")).read_text() == text
        assert registry.load(paths, f"d{number}").findings == ()


def test_state_of_a_newer_version_is_refused_in_words_and_left_alone(paths: Paths) -> None:
    folder = made(paths, "a", plan={"schema": "selfhost.plan/2"})
    record = registry.load(paths, "a")
    assert record.newer
    assert record.plan is None
    assert [finding.id for finding in record.findings] == ["RT022"]
    assert json.loads((folder / "plan.json").read_text()) == {"schema": "selfhost.plan/2"}


def test_reading_it_loads_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; import selfhost.runtimes.registry, selfhost.runtimes.keeper; "
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('pydantic', 'httpx', 'jinja2', 'yaml', 'rich', 'typer', 'huggingface_hub', 'openai', 'ctypes', 'packaging')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
