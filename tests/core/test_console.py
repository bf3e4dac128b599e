import io
import json

import pytest

from selfhost.core.columns import columns
from selfhost.core.console import Console
from selfhost.core.errors import DeployFailed, EnvironmentMissing, InputError
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.finding import Finding, Place, RunOn, Severity


class TtyText(io.StringIO):
    def isatty(self):
        return True


def console(*, width=120, stdin=None, stderr=None, **more):
    out, err = io.StringIO(), stderr or io.StringIO()
    return Console(out, err, {}, stdin=stdin or io.StringIO(), width=width, **more), out, err


RELOAD = """reboot, or stop all GPU processes and reload the module:
sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia"""
KERNEL = EnvironmentMissing(
    "the NVIDIA kernel module is 550.120 but its library is 580.95",
    id="HX003",
    why="The driver package was upgraded while the old module is still loaded, so every CUDA call fails before any "
    "container is involved.",
    evidence="Failed to initialize NVML: Driver/library version mismatch",
    fix=[RELOAD],
)


def test_an_error_has_head_why_evidence_and_actions():
    voice, out, err = console(width=80)
    voice.error(KERNEL)
    assert err.getvalue() == (
        "error[HX003]: the NVIDIA kernel module is 550.120 but its library is 580.95\n"
        "  The driver package was upgraded while the old module is still loaded, so every\n"
        "  CUDA call fails before any container is involved.\n"
        "    | Failed to initialize NVML: Driver/library version mismatch\n"
        "  → reboot, or stop all GPU processes and reload the module:\n"
        "      sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia\n"
    )
    assert out.getvalue() == ""


def test_a_command_is_never_wrapped():
    voice, _, err = console(width=40)
    command = "selfhost up some/very-long-model-name --context 4096 --name a-deployment-of-mine"
    voice.error(InputError("too long", fix=(f"try:\n{command}\n{command} --yes",)))
    assert err.getvalue().splitlines()[-2:] == [f"      {command}", f"      {command} --yes"]


def test_a_path_in_the_explanation_is_never_broken():
    voice, _, err = console(width=40)
    path = "/home/ana/.cache/selfhost/engines/vllm-0.32.0-cpu/lib/python3.11"
    voice.error(InputError("wrong", why=f"Look at {path} first."))
    assert f"  {path}" in err.getvalue().splitlines()


def test_colour_touches_the_id_literals_and_commands_only():
    voice, _, err = console(color="always")
    voice.error(InputError("unknown key `resoning`", id="CF002", fix=("perhaps:\nselfhost up",)))
    assert err.getvalue() == (
        "\x1b[31merror[CF002]\x1b[0m: unknown key \x1b[36m`resoning`\x1b[0m\n"
        "  → perhaps:\n"
        "      \x1b[36mselfhost up\x1b[0m\n"
    )


def test_text_of_users_and_logs_survives_without_steering_the_terminal():
    voice, _, err = console()
    voice.error(DeployFailed("[bold] :8000 \x1b[31mred", evidence="\x1b[1m[/bold]\x07"))
    assert err.getvalue() == "error: [bold] :8000 red\n    | [/bold]\\x07\n"


def test_evidence_is_at_most_five_lines():
    voice, _, err = console()
    voice.error(DeployFailed("stopped", evidence="\n".join(f"line {number}" for number in range(9))))
    lines = err.getvalue().splitlines()[1:]
    assert lines == [f"    | line {number}" for number in range(4)] + ["    | … and 5 more lines"]


def test_the_place_stands_in_the_head_once():
    voice, _, err = console()
    place = Place(path="selfhost.yaml", line=7)
    voice.error(InputError("unknown key", id="CF002", place=place))
    voice.error(InputError("selfhost.yaml:7: unknown key", id="CF002", place=place))
    assert err.getvalue().splitlines() == ["error[CF002]: selfhost.yaml:7: unknown key"] * 2


def test_a_finding_begins_with_its_line_and_names_the_machine_of_the_fix():
    voice, _, err = console()
    voice.finding(
        Finding(
            id="DV014",
            severity=Severity.WARNING,
            title="the card is not granted",
            place=Place(path="compose.yaml", line=14),
            fix=("grant it",),
            run_on=RunOn.HYPERVISOR,
        )
    )
    assert err.getvalue() == (
        "compose.yaml:14: warning[DV014]: the card is not granted\n  → on the hypervisor: grant it\n"
    )


def test_with_json_an_error_is_one_document_on_stdout_and_words_on_stderr():
    voice, out, err = console(json=True)
    voice.error(KERNEL)
    document = json.loads(out.getvalue())
    assert document == {
        "schema": "selfhost.error/1",
        "ok": False,
        "exit_code": 4,
        "error": {
            "id": "HX003",
            "what": KERNEL.what,
            "why": KERNEL.why,
            "evidence": KERNEL.evidence,
            "fix": list(KERNEL.fix),
            "place": None,
        },
    }
    assert err.getvalue().startswith("error[HX003]: ")


def test_with_json_and_quiet_only_the_document_is_there():
    voice, out, err = console(json=True, quiet=True)
    voice.error(KERNEL)
    assert json.loads(out.getvalue())["exit_code"] == 4
    assert err.getvalue() == ""


def test_a_run_has_one_document_even_when_it_fails_at_the_end():
    voice, out, _ = console(json=True)
    voice.json({"schema": "selfhost.endpoint/1", "ok": False})
    voice.error(KERNEL)
    assert len(out.getvalue().splitlines()) == 1


def test_quiet_silences_notes_and_keeps_results_and_errors():
    voice, out, err = console(quiet=True)
    voice.note("a remark")
    voice.result("the answer")
    voice.error(InputError("wrong"))
    assert (out.getvalue(), err.getvalue()) == ("the answer\n", "error: wrong\n")


@pytest.mark.parametrize(
    ("answer", "agreed"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_a_person_is_asked_and_no_is_the_default(answer, agreed):
    voice, out, err = console(stdin=TtyText(answer), stderr=TtyText())
    assert voice.confirm("download 12.3 GiB?", yes=False) is agreed
    assert err.getvalue() == "download 12.3 GiB? [y/N] "
    assert out.getvalue() == ""


def test_where_nobody_can_answer_the_flag_is_named():
    for more in ({}, {"stdin": TtyText("y\n")}, {"stdin": TtyText("y\n"), "stderr": TtyText(), "json": True}):
        voice, _, _ = console(**more)
        with pytest.raises(InputError, match="download") as refused:
            voice.confirm("download 12.3 GiB?", yes=False)
        assert "--yes" in refused.value.fix[0]


def test_where_nobody_can_answer_the_whole_command_is_given():
    voice, _, _ = console()
    with pytest.raises(InputError) as refused:
        voice.confirm("download?", yes=False, command="selfhost up qwen3-4b -- --enforce-eager")
    assert refused.value.fix == ("agree beforehand:\nselfhost up qwen3-4b --yes -- --enforce-eager",)


def test_yes_answers_before_anything_is_asked():
    voice, _, err = console()
    assert voice.confirm("download?", yes=True) is True
    assert err.getvalue() == ""


def test_a_closed_stderr_does_not_hide_the_exit_code_behind_an_exception():
    err = io.StringIO()
    voice, _, _ = console(stderr=err)
    err.close()
    voice.error(InputError("wrong"))


def test_among_json_lines_there_is_no_prose_and_no_question():
    voice, out, err = console(stdin=TtyText("y\n"), stderr=TtyText())
    voice.json_lines = True
    voice.note("a remark")
    voice.finding(Finding(id="SM120", severity=Severity.WARNING, title="two answers"))
    voice.error(KERNEL)
    voice.trace("Traceback")
    voice.interrupted(ExitCode.INTERRUPTED)
    documents = [json.loads(line) for line in err.getvalue().splitlines()]
    assert [document["schema"] for document in documents] == [
        "selfhost.finding/1",
        "selfhost.error/1",
        "selfhost.trace/1",
        "selfhost.error/1",
    ]
    assert documents[1]["error"]["id"] == "HX003"
    assert documents[3]["exit_code"] == 130
    assert out.getvalue() == ""
    with pytest.raises(InputError) as caught:
        voice.confirm("Really?", yes=False)
    assert caught.value.why == "With --progress json nothing is asked."


def test_columns_are_as_wide_as_their_widest_cell_on_screen():
    rows = [("#", "name", "memory"), ("0", "\x1b[31m漢字\x1b[0m", "23.5 GiB"), ("10", "b", "")]
    assert columns(rows, right=frozenset({0, 2})) == [
        " #  name    memory",
        " 0  \x1b[31m漢字\x1b[0m  23.5 GiB",
        "10  b",
    ]


def test_no_rows_are_no_lines():
    assert columns([]) == []


def test_lines_to_paste_keep_what_they_stand_below() -> None:
    out = io.StringIO()
    console = Console(io.StringIO(), out, {})
    console.finding(
        Finding(id="DV017", severity=Severity.WARNING, title="t", fix=("write:\n  deploy:\n    resources: 1\n",))
    )
    assert "\n      deploy:\n        resources: 1\n" in out.getvalue()
