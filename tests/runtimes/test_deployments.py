import json
import subprocess
import sys
from pathlib import Path

from selfhost.core.paths import Paths
from selfhost.runtimes import deployments

ROOT = Path(__file__).parent.parent.parent


def made(paths: Paths, name: str, *files: str) -> None:
    folder = paths.deployment(name)
    (folder / "run").mkdir(parents=True)
    for file in files:
        (folder / file).write_text(json.dumps({}))


def test_names_are_the_folders_that_something_was_recorded_in(paths: Paths) -> None:
    assert deployments.names(paths) == ()
    made(paths, "b", "plan.json")
    made(paths, "a", "service.json")
    made(paths, "c", "run/engine.json")
    made(paths, "only-a-lock", ".lock")
    (paths.deployments / ".hidden").mkdir()
    (paths.deployments / "file").write_text("x")
    assert deployments.names(paths) == ("a", "b", "c")


def test_reading_it_loads_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; import selfhost.runtimes.deployments, selfhost.runtimes.keeper; "
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('pydantic', 'httpx', 'jinja2', 'yaml', 'rich', 'typer', 'huggingface_hub', 'openai', 'ctypes', 'packaging')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
