import io

import pytest

from selfhost.core.terminal import Terminal, cells, clean, may_ask, wants_colour, wants_live

# rows of the house's table: asked, is a tty, environment, coloured
COLOURS = [
    ("auto", True, {}, True),
    ("auto", True, {"TERM": "xterm"}, True),
    ("auto", False, {}, False),
    ("auto", True, {"NO_COLOR": "1"}, False),
    ("auto", True, {"NO_COLOR": "0"}, False),
    ("auto", True, {"NO_COLOR": ""}, True),
    ("auto", True, {"TERM": "dumb"}, False),
    ("auto", False, {"FORCE_COLOR": "1"}, True),
    ("auto", False, {"FORCE_COLOR": ""}, False),
    ("auto", False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True),
    ("always", False, {"NO_COLOR": "1", "TERM": "dumb"}, True),
    ("never", True, {"FORCE_COLOR": "1"}, False),
]


@pytest.mark.parametrize(("asked", "tty", "env", "coloured"), COLOURS)
def test_colour_follows_flag_then_force_then_the_terminal(asked, tty, env, coloured):
    assert wants_colour(asked, is_tty=tty, env=env) is coloured


@pytest.mark.parametrize(
    ("tty", "env", "live"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm", "CI": "true"}, False),
        (True, {"TERM": "xterm", "CI": ""}, True),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_a_line_is_live_only_on_a_capable_terminal_outside_ci(tty, env, live):
    assert wants_live(is_tty=tty, env=env) is live


@pytest.mark.parametrize(
    ("stdin", "stderr", "json", "asks"),
    [(True, True, False, True), (False, True, False, False), (True, False, False, False), (True, True, True, False)],
)
def test_questions_need_two_terminals_and_no_json(stdin, stderr, json, asks):
    assert may_ask(stdin_is_tty=stdin, stderr_is_tty=stderr, json=json) is asks


def test_a_stream_that_is_not_utf_8_gets_words_for_symbols_and_loses_nothing():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    terminal = Terminal(stream, {})
    terminal.write(f"{terminal.symbol('done')} a → b · 30 … λ\n")
    assert raw.getvalue() == b"ok   a -> b - 30 ... \\u03bb\n"


@pytest.mark.parametrize(("state", "word"), [("failed", "FAIL"), ("skipped", "skip"), ("warning", "warn")])
def test_each_symbol_has_an_ascii_twin_of_four_columns(state, word):
    assert Terminal(io.TextIOWrapper(io.BytesIO(), encoding="iso-8859-1"), {}).symbol(state) == word


def test_control_sequences_of_foreign_text_do_not_reach_the_terminal():
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07 [bold]\ttab") == "red bell\\x07 [bold]\ttab"


def test_width_is_counted_in_columns():
    assert [cells("ab"), cells("漢字"), cells("e\u0301"), cells("\x1b[31mx\x1b[0m")] == [2, 4, 1, 1]
