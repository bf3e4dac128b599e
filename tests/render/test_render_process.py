"""Files of the process target: run by a real shell, read back, the same bytes every time."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selfhost.plan.decide import decide
from selfhost.plan.workload import workload_of
from selfhost.render.escape import comment, shell, shell_name, systemd, systemd_text
from selfhost.render.process import render
from selfhost.render.templates import environment, refuse_unescaped
from selfhost.shapes.place import Place
from selfhost.shapes.plan import Plan
from selfhost.visibility.readers.process import read
from tests.fakes.planning import a_host, a_model, a_service, smollm2

ECHO = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
PLAN = decide(host=a_host(), model=smollm2(), service=a_service(), port=8000)
NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True).map(lambda name: f"T_{name}")


def a_plan(**changes: Any) -> Plan:
    return dataclasses.replace(PLAN, **changes)


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that tells which arguments and environment it got, without any shell in between."""
    folder = tmp_path_factory.mktemp("it's a folder")
    program = folder / "py thon"
    program.write_text(f"#!{sys.executable} -S\n{ECHO}\n", encoding="utf-8")
    program.chmod(0o755)
    (folder / "key file").write_text("sk-selfhost-test\n", encoding="utf-8")
    return program


def run(plan: Plan, stub: Path, *, shell_program: str = "bash", **env: str) -> tuple[list[str], dict[str, str]]:
    bundle = render(plan, python=str(stub), key_file=str(stub.with_name("key file")))
    script = stub.with_name("serve.sh")
    script.write_bytes(bundle.files["serve.sh"].encode())
    clean = {"PATH": os.environ["PATH"], "PYTHONUTF8": "1", **env}
    done = subprocess.run([shell_program, script], capture_output=True, env=clean, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    argv, seen = json.loads(done.stdout)
    return argv, seen


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(argv=st.lists(TEXT, max_size=6), env=st.dictionaries(NAMES, TEXT, max_size=4))
def test_a_real_shell_hands_over_exactly_the_planned_words(argv: list[str], env: dict[str, str], stub: Path) -> None:
    plan = a_plan(argv=tuple(argv), env=env)
    seen_argv, seen_env = run(plan, stub)
    assert seen_argv == ["-m", plan.build.module, *argv]
    assert {name: seen_env.get(name) for name in env} == env
    assert seen_env["VLLM_API_KEY"] == "sk-selfhost-test"


@pytest.mark.parametrize("program", [name for name in ("bash", "dash", "sh") if shutil.which(name)])
@pytest.mark.parametrize("text", ["", "$(touch x)", "`id`", "a'b\"c", "a\nb\r\n", "\\", "🦀 ü", "-n", "!history", "*"])
def test_no_word_is_read_as_shell(program: str, text: str, stub: Path) -> None:
    argv, env = run(a_plan(argv=("--x", text), env={"T_X": text}), stub, shell_program=program)
    assert argv[-1] == text
    assert env["T_X"] == text


@settings(max_examples=100, deadline=None)
@given(argv=st.lists(TEXT, max_size=6), env=st.dictionaries(NAMES, TEXT, max_size=4), python=TEXT.map("/{}".format))
def test_what_is_rendered_reads_back_as_planned(argv: list[str], env: dict[str, str], python: str) -> None:
    plan = a_plan(argv=tuple(argv), env=env)
    bundle = render(plan, python=python, key_file="/x/key")
    workload = read(bundle.files["serve.sh"], path="serve.sh")
    assert dataclasses.replace(workload, path="", at={}) == workload_of(plan, Place(python=python))


def test_real_plans_read_back_too() -> None:
    for model in (smollm2(), a_model()):
        plan = decide(host=a_host(gib=64), model=model, service=a_service(), port=8000)
        workload = read(render(plan, python="/p/bin/python", key_file="/k").files["serve.sh"], path="s")
        assert dataclasses.replace(workload, path="", at={}) == workload_of(plan, Place(python="/p/bin/python"))


def test_the_key_is_read_from_its_file_and_stands_in_no_file(stub: Path) -> None:
    bundle = render(a_plan(), python=str(stub), key_file=str(stub.with_name("key file")), folder="/srv/x")
    assert not any("sk-selfhost-test" in text for text in bundle.files.values())
    argv, _ = run(a_plan(), stub)
    assert not any("sk-selfhost-test" in word for word in argv)


@pytest.mark.parametrize("content", [None, ""])
def test_a_missing_or_empty_key_file_stops_the_script(content: str | None, tmp_path: Path) -> None:
    key = tmp_path / "key"
    if content is not None:
        key.write_text(content, encoding="utf-8")
    script = tmp_path / "serve.sh"
    script.write_text(render(a_plan(), python="/bin/echo", key_file=str(key)).files["serve.sh"], encoding="utf-8")
    done = subprocess.run(["sh", script], capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 78
    assert done.stdout == ""
    assert str(key) in done.stderr


def test_the_engine_gets_no_hub_token(stub: Path) -> None:
    _, env = run(a_plan(), stub, HF_TOKEN="hf_x", HUGGING_FACE_HUB_TOKEN="hf_y")
    assert not {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "KEY_FILE"} & set(env)


def test_the_same_plan_gives_the_same_bytes() -> None:
    first, second = (render(a_plan(), python="/p", key_file="/k", folder="/f") for _ in range(2))
    assert first.digest == second.digest
    assert first.files == second.files
    assert set(first.files) == {"serve.sh", "README.txt", "selfhost.service"}
    assert first.executable == {"serve.sh"}


def test_without_a_folder_there_is_no_unit() -> None:
    assert "selfhost.service" not in render(a_plan(), python="/p", key_file="/k").files


def test_the_first_lines_say_what_it_is_and_how_it_runs_without_selfhost() -> None:
    from selfhost.plan.digest import digest_of

    plan = a_plan()
    head = "\n".join(render(plan, python="/p", key_file="/k").files["serve.sh"].splitlines()[:6])
    assert digest_of(plan) in head
    assert "without selfhost" in head
    assert "vllm 0.32.0" in head


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    bundle = render(a_plan(), python="/p", key_file="/k", folder=str(folder))
    (folder / "serve.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    unit = tmp_path / "selfhost-it.service"
    unit.write_text(bundle.files["selfhost.service"], encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "--user", "verify", unit], capture_output=True, text=True, check=False)
    assert "selfhost-it" not in done.stderr, done.stderr


def test_a_value_without_an_escaping_filter_is_refused() -> None:
    template = environment().from_string("x: {{ v }}")
    with pytest.raises(TypeError, match="without an escaping filter"):
        template.render(v="yes")
    with pytest.raises(TypeError):
        refuse_unescaped("text")


def test_an_unknown_name_in_a_template_is_refused() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        environment().from_string("{{ v | shell }}").render()


def test_what_no_process_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        shell("a\0b")
    with pytest.raises(ValueError, match="NUL"):
        systemd("a\0b")
    with pytest.raises(ValueError, match="not the name"):
        shell_name("A;rm")
    with pytest.raises(ValueError, match="not the name"):
        shell_name("A\n")


def test_a_comment_stays_on_its_line() -> None:
    assert comment("a\nb\x85c\u2028d") == "a b c d"
    assert systemd_text("50 % done\\") == "50 %% done"


def test_systemd_words_double_what_it_would_expand() -> None:
    # systemd.service(5): `%` begins a specifier, `$` a variable; both are written twice to be meant
    assert systemd('a b%h$HOME"\\\n') == '"a b%%h$$HOME\\"\\\\\\x0a"'
