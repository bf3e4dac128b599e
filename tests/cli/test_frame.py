"""The command as a process: exit codes, what goes to which stream, and what is not imported."""

import ast
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import selfhost
from selfhost.cli._commands import COMMANDS, PANELS
from selfhost.shapes.exit import ExitCode

ROOT = Path(__file__).parents[2]
HEAVY = ("docker", "kubernetes", "openai", "ansible_runner", "huggingface_hub", "httpx", "rich", "pydantic", "jinja2")

# a command that misbehaves takes the place of `detect` and `up`: the frame around it is the real one
SEAM = """
import sys, types
module = types.ModuleType("selfhost.cli.detect")
source = '''{body}'''
exec(source, module.__dict__)
sys.modules["selfhost.cli.detect"] = sys.modules["selfhost.cli.up"] = module
sys.argv = ["selfhost", *sys.argv[1:]]
from selfhost.__main__ import main
main()
"""
WAITING = """
import time, typer
from selfhost.cli._context import invocation
from selfhost.cli._options import Json
def command(context: typer.Context, json: Json = False) -> None:
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("cleaned", flush=True)
"""
BROKEN = """
from selfhost.cli._options import Json
def command(json: Json = False) -> None:
    {}["mem_banks_count"]
"""
LATE = """
import typer
from selfhost.cli._context import invocation
def command(context: typer.Context) -> None:
    input()
    invocation(context).console.result("an answer")
"""
PASSED_ON = """
import typer
from selfhost.cli._context import invocation
from selfhost.cli._options import Json
def command(context: typer.Context, json: Json = False) -> None:
    print(invocation(context).passed_on)
"""
HUNG_UP = """
import os, signal
def command() -> None:
    os.kill(os.getpid(), signal.SIGHUP)
    print("still here", flush=True)
"""
ENDLESS = """
import typer
from selfhost.cli._context import invocation
def command(context: typer.Context) -> None:
    invocation(context).console.result("begun")
    while True:
        print("x" * 1000)  # not flushed: what waits in the buffer must not complain at exit
"""


def environment(**extra):
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **extra}


def run(*argv, body="", **extra):
    start = ["-c", SEAM.format(body=body)] if body else ["-m", "selfhost"]
    return subprocess.run(
        [sys.executable, *start, *argv],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(**extra),
        timeout=60,
        check=False,
    )


def start(body, *argv, **extra):
    return subprocess.Popen(
        [sys.executable, "-c", SEAM.format(body=body), *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**extra),
    )


def test_the_version_is_one_line_on_stdout():
    for argv in (("--version",), ("-q", "--version")):
        done = run(*argv)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"selfhost {selfhost.__version__}\n", "")


def test_help_lists_every_command_in_its_panel_on_stdout():
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Usage: selfhost ")
    headings = [line for line in lines if line in PANELS]
    assert headings == ["Start", "Understand", "Check", "Operate"]
    assert [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in COMMANDS] == list(
        COMMANDS
    )
    assert run("--color", "never", "--help").stdout == done.stdout


def test_every_command_file_is_in_the_table_and_the_other_way_round():
    files = {path.stem for path in (ROOT / "selfhost" / "cli").glob("[a-z]*.py")}
    assert files == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_the_shared_options(name):
    done = run(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: selfhost {name} ")
    for option in ("--color", "--quiet", "--help"):
        assert option in done.stdout


def test_no_words_are_wrong_usage_and_get_the_help_on_stderr():
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: selfhost ")


def test_an_unknown_command_gets_the_near_name():
    done = run("detekt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error[CF090]: there is no command `detekt`\n"
        "  → perhaps:\n"
        "      selfhost detect\n"
        "  → all commands:\n"
        "      selfhost --help\n"
    )


@pytest.mark.parametrize(
    ("argv", "head", "hint"),
    [
        (("detect", "--jsn"), "error[CF091]: `selfhost detect` has no option `--jsn`", "  → perhaps `--json`"),
        (("--colour", "never"), "error[CF091]: `selfhost` has no option `--colour`", "  → perhaps `--color`"),
        (
            ("detect", "--color", "pink"),
            "error[CF092]: `--color`: `pink` is not one of `auto`, `always`, `never`",
            "  → all options:",
        ),
        (
            ("detect", "here"),
            "error[CF093]: `selfhost detect` takes no names or files; too many: here",
            "  → all options:",
        ),
        (("up", "a", "b c"), "error[CF093]: `selfhost up` takes one MODEL only; too many: b c", ""),
        (("up", "--name"), "error[CF093]: `--name` needs a value behind it", "      selfhost up --help"),
        (("up", "--yes=3"), "error[CF093]: `--yes` takes no value", "      selfhost up --help"),
        (("up", "--port", "abc"), "error[CF092]: `--port`: `abc` is not a whole number", ""),
        (("up", "--port", "8k"), "error[CF092]: `--port`: `8k` is not a whole number", ""),
        (("up", "--context", "32x"), "error[CF092]: `--context`: `32x` is not a whole number", ""),
        (("plan", "--context", "9" * 40), f"error[CF092]: `--context`: `{'9' * 18}…` is too large a number", ""),
        (("logs", "--tail", "-3"), "error[CF092]: `--tail` / `-n`: -3 is too small, the least is 0", ""),
        (("up", "--version"), "error[CF091]: `selfhost up` has no option `--version`", "      selfhost --version"),
    ],
)
def test_wrong_options_are_said_in_our_words(argv, head, hint):
    done = run(*argv)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0] == head
    assert hint in "\n".join(lines[1:])


def test_with_json_even_wrong_usage_is_one_document_on_stdout():
    done = run("detect", "--json", "--nonsense")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"], document["ok"]) == (2, 2, False)
    assert document["schema"] == "selfhost.error/1"
    assert document["error"]["id"] == "CF091"
    assert done.stderr.startswith("error[CF091]: ")
    assert run("-q", "detect", "--json", "--from", "/none").stderr == ""


def test_the_version_is_never_taken_for_another_option():
    assert "--precision" not in run("up", "--version").stderr


def test_help_may_be_asked_for_as_a_command():
    assert run("help").stdout == run("--help").stdout
    assert run("help", "up").stdout == run("up", "--help").stdout
    assert run("help", "--help").stdout == run("--help").stdout
    assert run("help", "upp").stderr.startswith("error[CF090]: there is no command `upp`")


@pytest.mark.parametrize(
    "argv", [("--help", "--json"), ("--version", "--json"), ("--json", "--help"), ("help", "--json")]
)
def test_help_and_version_for_programs_are_one_document(argv):
    done = run(*argv)
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (document["schema"], document["version"]) == ("selfhost.commands/1", selfhost.__version__)
    assert [row["name"] for row in document["commands"]] == list(COMMANDS)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_one_that_nobody_reads(closed):
    line = f'"{sys.executable}" -m selfhost status {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, env=environment(), timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr in ("", "nothing is deployed here\n  → selfhost up\n")


def test_with_a_closed_stream_no_file_of_ours_takes_its_number():
    look = (
        "import os, sys; from selfhost.__main__ import _open_what_is_closed; _open_what_is_closed()\n"
        "os.write(int(sys.argv[1]), os.readlink('/proc/self/fd/1').encode())"
    )
    line = f'"{sys.executable}" -c "$LOOK" 2 >&-'
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        capture_output=True, text=True, env=environment(LOOK=look), timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "/dev/null")


def test_with_progress_json_stderr_is_json_lines_only():
    done = run("up", "/none", "--progress", "json")
    documents = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, done.stdout) == (2, "")
    assert (documents[-1]["schema"], documents[-1]["error"]["id"]) == ("selfhost.error/1", "MD002")
    wrong = run("up", "--progress=json", "--nonsense")
    assert json.loads(wrong.stderr)["error"]["id"] == "CF091"
    assert json.loads(
        run("up", "--progress", "json", body=BROKEN.replace("json: Json = False", "progress: str = ''")).stderr
    )


def test_a_user_without_a_home_still_gets_told_of_our_faults():
    homeless = BROKEN.replace("import Json", "import Json\nimport pwd\npwd.getpwuid = lambda number: {}[number]")
    none = {"HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""}
    done = run("detect", "--json", body=homeless, **none)
    assert json.loads(done.stdout)["exit_code"] == 70
    assert "The trace could not be kept (this user has no home folder)" in " ".join(done.stderr.split())


def test_colour_is_for_terminals_unless_forced():
    assert "\x1b" not in run("detekt").stderr
    assert "\x1b[31merror[CF090]\x1b[0m" in run("detekt", FORCE_COLOR="1").stderr
    assert "\x1b[31m" in run("--color", "always", "detect", "--from", "/none").stderr
    assert "\x1b" not in run("detekt", FORCE_COLOR="", NO_COLOR="1").stderr


@pytest.mark.parametrize(
    ("extra", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)]
)
def test_on_a_terminal_no_color_counts_when_it_is_not_empty(extra, coloured):
    main_end, child_end = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "selfhost", "detekt"],
        stdin=child_end,
        stdout=child_end,
        stderr=child_end,
        env=environment(**{"TERM": "xterm", **extra}),
    )
    os.close(child_end)
    assert child.wait(timeout=60) == 2
    seen = b""
    while select.select([main_end], [], [], 0.2)[0]:
        try:
            seen += os.read(main_end, 4096)
        except OSError:  # EIO: the other end of a pty is closed
            break
    os.close(main_end)
    assert b"there is no command" in seen
    assert (b"\x1b[" in seen) is coloured


def test_our_own_fault_is_70_with_the_trace_in_a_file_for_its_owner(own_home):
    done = run("detect", body=BROKEN)
    assert (done.returncode, done.stdout) == (70, "")
    log = next((own_home / ".local/state/selfhost/log").glob("*.log"))
    assert done.stderr == (
        "error: selfhost has a bug: KeyError 'mem_banks_count'\n"
        f"  The full trace is in ~/.local/state/selfhost/log/{log.name}\n"
        "  → report it with that trace and with what this prints about the machine:\n"
        "      selfhost detect --json\n"
    )
    assert log.stat().st_mode & 0o777 == 0o600
    assert "Traceback (most recent call last)" in log.read_text()


def test_the_trace_file_has_nothing_that_was_meant_for_the_engine(own_home):
    assert run("up", "--", "--api-key", "sk-of-mine", body=BROKEN).returncode == 70
    page = next((own_home / ".local/state/selfhost/log").glob("*.log")).read_text()
    assert "selfhost up -- …\n" in page
    assert "sk-of-mine" not in page


def test_our_own_fault_with_json_is_a_document_and_with_debug_a_trace():
    done = run("detect", "--json", body=BROKEN, SELFHOST_DEBUG="1")
    assert json.loads(done.stdout)["exit_code"] == 70
    assert "Traceback (most recent call last)" in done.stderr


def test_a_trace_that_cannot_be_kept_is_printed(own_home):
    (own_home / "blocked").write_text("a file where a folder should be")
    done = run("detect", body=BROKEN, XDG_STATE_HOME=str(own_home / "blocked"))
    assert done.returncode == 70
    assert "Traceback (most recent call last)" in done.stderr
    assert "could not be kept" in done.stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)], ids=["INT", "TERM", "HUP"]
)
def test_an_interrupted_command_cleans_up_and_says_which_signal_by_its_code(number, code):
    with start(WAITING, "detect") as child:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (code, "cleaned\n")
    assert "Traceback" not in err


def test_an_interrupted_command_with_json_says_so_in_a_document():
    with start(WAITING, "detect", "--json") as child:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    document = json.loads(out.removeprefix("cleaned\n"))
    assert (child.returncode, document["exit_code"], document["ok"]) == (130, 130, False)


def test_a_hangup_that_was_ignored_stays_ignored():
    nohup = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{SEAM.format(body=HUNG_UP)}"
    done = subprocess.run(
        [sys.executable, "-c", nohup, "detect"], capture_output=True, env=environment(), timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"still here\n")


def test_what_stands_behind_two_dashes_is_handed_to_the_command_as_it_is():
    done = run("up", "--json", "--", "--max-num-seqs", "4", "--json", "x", body=PASSED_ON)
    assert (done.returncode, done.stdout) == (0, "('--max-num-seqs', '4', '--json', 'x')\n")


def test_a_reader_who_leaves_ends_the_command_quietly():
    with start(ENDLESS, "detect") as child:
        child.stdout.readline()
        child.stdout.close()
        assert child.wait(timeout=60) == ExitCode.CLOSED_PIPE
        assert child.stderr.read() == ""


def test_a_reader_who_left_before_the_answer_leaves_nothing_to_complain_about_at_exit():
    with start(LATE, "detect") as child:
        child.stdout.close()
        child.stdin.write("go\n")
        child.stdin.close()
        assert child.wait(timeout=60) == ExitCode.CLOSED_PIPE
        assert child.stderr.read() == ""


@pytest.mark.parametrize(
    "code",
    [
        "import selfhost.cli, selfhost.cli._group",
        "import sys; from selfhost.cli import run; run(['--help']); run(['--color', 'never', '--help'])",
        "import sys; from selfhost.cli import run; run(['detect', '--json'])",
    ],
    ids=["import", "help", "detect"],
)
def test_starting_loads_nothing_heavy(code):
    look = f"{code}\nimport sys; print(); print(sorted(set(sys.modules) & set({HEAVY!r})))"
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, env=environment(), timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_plain_help_needs_neither_typer_nor_a_command():
    look = (
        "from selfhost.cli import run; run(['--help']); import sys\n"
        f"commands = {{'selfhost.cli.' + name for name in {list(COMMANDS)}}}\n"
        "print(sorted(set(sys.modules) & {'typer', *commands}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, env=environment(), timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_plain_status_needs_no_parser_of_options_and_answers_the_same():
    look = (
        "from selfhost.cli import run; code = run(['status', '--json']); import sys\n"
        "print(code, 'typer' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, env=environment(), timeout=60, check=True
    )
    answer, loaded = done.stdout.splitlines()
    assert loaded == "0 False"
    assert json.loads(answer) == json.loads(run("--color", "never", "status", "--json").stdout)
    assert run("status").stderr == run("--color", "never", "status").stderr


def test_there_is_one_except_that_catches_everything_and_one_exit():
    everything, exits = [], []
    for path in (ROOT / "selfhost").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
            ):
                everything.append(path.relative_to(ROOT).as_posix())
            if isinstance(node, ast.Attribute) and re.fullmatch(r"sys\.exit", ast.unparse(node)):
                exits.append(path.relative_to(ROOT).as_posix())
    assert everything == ["selfhost/cli/__init__.py"]
    assert sorted(exits) == [
        "selfhost/__main__.py",
        "selfhost/hosts/nvml.py",
        "selfhost/runtimes/ansible.py",
        "selfhost/runtimes/keeper.py",
    ]  # the keeper, what asks NVML and what runs a play are programs of their own
