"""`selfhost lint`: what it finds behind a name, and what it says of what it cannot read."""

import json
from pathlib import Path

import pytest

from selfhost.cli import _lint_files, run

BAD = "docker run a/b --api-key k\n"
CI = "on: push\njobs: {}\n"


def write(path: str, text: str = BAD) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def found(capsys, *argv: str) -> list[tuple[str, str]]:
    run(["lint", *argv, "--json"])
    return [(one["path"], one["id"]) for one in json.loads(capsys.readouterr().out)["findings"]]


def test_a_folder_is_walked_in_order_and_what_is_none_of_ours_is_passed_over(capsys):
    for path in ("d/b.sh", "d/a/z.sh", "d/a.sh", "d/c/x.container"):
        write(path, BAD if path.endswith(".sh") else "[Container]\nImage=x\nExec=y --api-key k\n")
    write("d/ci.yaml", CI)
    write("d/empty.yaml", "")
    write("d/notes.txt")
    write("d/plain.sh", "echo hello\n")
    for path in ("d/.git/x.sh", "d/node_modules/x.sh", "d/.venv/x.sh", "d/.hidden.d/x.sh"):
        write(path)
    assert found(capsys, "d") == [
        ("d/a.sh", "DV090"), ("d/a/z.sh", "DV090"), ("d/b.sh", "DV090"), ("d/c/x.container", "DV090"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", [CI, "", "[1, 2]", "hello"])
def test_the_same_file_named_is_refused_with_the_forms_that_are_read(text, capsys):
    write("ci.yaml", text)
    assert run(["lint", "ci.yaml"]) == 2
    assert "error[CF054]" in capsys.readouterr().err


def test_templates_of_a_chart_are_no_manifests_yet():
    write("c/Chart.yaml", "apiVersion: v2\nname: x\n")
    write("c/templates/pod.yaml", "{{ if }}\napiVersion: v1\nkind: Pod\n")
    write("c/run.sh")
    assert [source.path for source in _lint_files.gather(["c"]).sources] == ["c/Chart.yaml", "c/run.sh"]


def test_a_template_elsewhere_in_a_folder_is_named_and_is_no_mistake(capsys):
    write("c/patch.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: {{ .Release.Name }} }\n")
    write("c/secret.yaml", "apiVersion: v1\nkind: Secret\nstringData:\n  token: {{TOKEN}}\n")
    write("c/run.sh", "docker run --gpus all vllm/vllm-openai:v0.31.0 --model m\n")
    assert found(capsys, "c") == [("c/patch.yaml", "CF059"), ("c/secret.yaml", "CF059")]
    assert run(["lint", "c", "--strict"]) == 0
    assert run(["lint", "c/secret.yaml"]) == 2


def test_an_override_beside_its_compose_file_is_half_a_file():
    for path in ("a/compose.yaml", "a/compose.override.yaml", "b/compose.override.yaml"):
        write(path, "services: {}\n")
    paths = [source.path for source in _lint_files.gather(["a", "b"]).sources]
    assert paths == ["a/compose.yaml", "b/compose.override.yaml"]


def test_a_loop_of_links_ends_and_a_dangling_one_is_passed_over(capsys):
    write("d/a.sh")
    Path("d/again").symlink_to("..")
    Path("d/gone.sh").symlink_to("nowhere")
    assert found(capsys, "d") == [("d/a.sh", "DV090")]


def test_one_broken_file_is_a_finding_beside_those_of_the_others(capsys):
    write("d/a.sh", "docker run 'x\n")
    write("d/b.sh")
    assert found(capsys, "d") == [("d/a.sh", "CF022"), ("d/b.sh", "DV090")]
    assert run(["lint", "d"]) == 1


@pytest.mark.parametrize(
    ("target", "id", "says"),
    [
        ("gone.yaml", "CF070", "gone.yaml does not exist"),
        ("empty", "CF071", "no file in empty that lint reads"),
        ("x" * 5000, "CF070", "can't be read"),
        ("a\0b", "CF070", "can't be read"),
        ("binary.sh", "CF072", "not UTF-8"),
        ("nul.sh", "CF072", "not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_wrong_input(target, id, says, capsys):
    Path("empty").mkdir()
    Path("binary.sh").write_bytes(b"docker run x\n\xff\xfa\n")
    Path("nul.sh").write_bytes(b"docker run x\0\n")
    assert run(["lint", target]) == 2
    said = capsys.readouterr().err
    assert f"error[{id}]" in said
    assert says in said


def test_a_file_that_refuses_to_be_read_is_named_with_the_reason(capsys):
    Path("d").mkdir()
    Path("d/x.sh").symlink_to("/proc/self/mem")  # opens for everybody, root too, and gives no byte at 0
    assert run(["lint", "d/x.sh"]) == 2
    assert "Input/output error" in capsys.readouterr().err


def test_several_files_of_which_none_can_be_read_are_all_named(capsys):
    assert run(["lint", "gone.sh", "lost.sh"]) == 2
    said = capsys.readouterr().out
    assert said.count("error[CF070]") == 2


def test_a_file_too_large_to_be_one_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(_lint_files, "LARGEST_BYTES", 8)
    write("x.sh")
    assert run(["lint", "x.sh"]) == 2
    assert "error[CF072]: x.sh is larger" in capsys.readouterr().err


def test_text_that_powershell_wrote_is_read(capsys):
    Path("x.sh").write_bytes(BAD.encode("utf-16"))
    assert found(capsys, "x.sh") == [("x.sh", "DV090")]


def test_without_a_name_the_compose_file_here_is_meant(capsys):
    assert run(["lint"]) == 2
    said = capsys.readouterr().err
    assert "error[CF071]" in said
    assert "selfhost lint compose.yaml" in said
    write("docker-compose.yml", "services: {}\n")
    write("compose.yaml", "services: {}\n")
    assert [source.path for source in _lint_files.gather([]).sources] == ["compose.yaml"]


def test_an_env_file_is_looked_for_beside_the_text():
    write("d/run.sh", "docker run --env-file one.env a/b\n")
    write("d/one.env", "A=1\n")
    beside = _lint_files.beside("d/run.sh")
    assert (beside.text("one.env"), beside.text("two.env"), beside.text(".")) == ("A=1\n", None, None)
