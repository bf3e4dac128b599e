import io
import json
import os
import re
import threading
import time

import pytest

from selfhost.core.errors import InputError
from selfhost.core.progress import Json, Plain, Quiet, Tty, choose
from selfhost.core.terminal import Terminal
from selfhost.shapes.event import Event

GIB = 1024**3


class TtyText(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def event(step, state="working", text="", **more):
    return Event(step=step, state=state, text=text, **more)


def plain(clock=None):
    out = io.StringIO()
    return Plain(Terminal(out, {}, width=80), clock=clock or Clock()), out


def tty(*, width=89, stream=None):
    out = stream or TtyText()
    renderer = Tty(Terminal(out, {}, width=width, color="never"), clock=Clock())
    return renderer, out


def shown(text):
    """What stays on a terminal: an erased line is gone."""
    return "\n".join(line.split("\r\x1b[2K")[-1] for line in text.split("\n"))


@pytest.mark.parametrize(
    ("asked", "stream", "env", "kind"),
    [
        ("auto", TtyText(), {"TERM": "xterm"}, Tty),
        ("auto", TtyText(), {"TERM": "xterm", "CI": "1"}, Plain),
        ("auto", io.StringIO(), {"TERM": "xterm"}, Plain),
        ("tty", io.StringIO(), {}, Tty),
        ("json", TtyText(), {"TERM": "xterm"}, Json),
        ("quiet", TtyText(), {"TERM": "xterm"}, Quiet),
    ],
)
def test_the_renderer_follows_what_was_asked_then_the_stream(asked, stream, env, kind):
    assert isinstance(choose(asked, stream, env), kind)


def test_an_unknown_progress_is_wrong_input():
    with pytest.raises(InputError):
        choose("fancy", io.StringIO(), {})


def test_plain_says_a_step_once_per_change():
    renderer, out = plain()
    renderer.on(event("fetch"))
    for done in range(101):
        renderer.on(event("fetch", text="image", done=done * GIB // 10, total=10 * GIB))
    renderer.on(event("fetch", "done", "image 10.0 GiB", elapsed_s=192.0))
    renderer.on(event("render", "unchanged"))
    renderer.on(event("wait", "failed", "vLLM stopped", elapsed_s=31.0))
    renderer.on(event("smoke", "warning", "interrupted"))
    renderer.close()
    assert out.getvalue().splitlines() == [
        "fetch: started",
        "fetch: image 0 % (0.0 of 10.0 GiB)",
        *(f"fetch: image {tenth}0 % ({tenth}.0 of 10.0 GiB)" for tenth in range(1, 10)),
        "fetch: image 100 % (10.0 of 10.0 GiB)",
        "fetch: done in 3m 12s: image 10.0 GiB",
        "render: unchanged",
        "wait: failed after 31.0s: vLLM stopped",
        "smoke: warning: interrupted",
    ]


def test_plain_has_a_heartbeat_every_half_minute_and_no_carriage_return():
    clock = Clock()
    renderer, out = plain(clock)
    renderer.on(event("wait", text="compile"))
    for _ in range(70):
        clock.now += 1.0
        renderer.tick()
    renderer.close()
    assert out.getvalue() == "wait: compile\nwait: compile (30s so far)\nwait: compile (1m 00s so far)\n"


def test_progress_never_goes_back():
    renderer, out = plain()
    for done in (50, 20, 70, 130):
        renderer.on(event("fetch", text="weights", done=done, total=100, unit="count"))
    renderer.close()
    assert out.getvalue().splitlines() == [
        "fetch: weights 50 % (50 of 100)",
        "fetch: weights 70 % (70 of 100)",
        "fetch: weights 100 % (100 of 100)",
    ]


def test_another_phase_of_the_same_step_starts_from_its_own_beginning():
    renderer, out = plain()
    renderer.on(event("fetch", text="image", done=100, total=100, unit="count"))
    renderer.on(event("fetch", text="weights", done=10, total=100, unit="count"))
    renderer.close()
    assert out.getvalue().splitlines()[-1] == "fetch: weights 10 % (10 of 100)"


def test_json_writes_one_event_object_a_line():
    out = io.StringIO()
    renderer = Json(Terminal(out, {}), clock=Clock())
    renderer.on(event("wait", text="compile", elapsed_s=20.1))
    renderer.on(event("fetch", text="weights", done=1, total=4, unit="count"))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[0] == {
        "schema": "selfhost.event/1",
        "step": "wait",
        "state": "working",
        "text": "compile",
        "done": None,
        "total": None,
        "unit": "bytes",
        "elapsed_s": 20.1,
    }
    assert (lines[1]["done"], lines[1]["total"]) == (1, 4)


def test_json_does_not_write_a_line_a_chunk():
    out = io.StringIO()
    renderer = Json(Terminal(out, {}), clock=Clock())
    for done in range(10_001):
        renderer.on(event("fetch", done=done, total=10_000))
    assert len(out.getvalue().splitlines()) == 101  # one for each whole percent from 0 to 100


def test_finished_lines_stay_in_their_columns():
    renderer, out = tty()
    renderer.on(event("detect", text="looking"))
    renderer.on(event("detect", "done", "RTX 4090 · driver 580.95.05 · Docker 28.1.1", elapsed_s=0.3))
    renderer.on(event("fetch", "unchanged"))
    renderer.on(event("wait", "failed", "vLLM stopped after 31s"))
    renderer.close()
    first, second, third, rest = shown(out.getvalue()).split("\n")
    assert first == "  ✓ detect    RTX 4090 · driver 580.95.05 · Docker 28.1.1".ljust(84) + " 0.3s"[-4:]
    assert second == "  \N{EN DASH} fetch     unchanged"
    assert third.startswith("  ✗ wait      vLLM stopped after 31s")
    assert rest == ""


def test_the_live_line_is_cut_to_the_width_and_is_gone_after_close():
    renderer, out = tty(width=50)
    renderer.on(event("wait", text="compile 14s · load 6.1s done · then capture, serve and more"))
    live = out.getvalue().split("\r\x1b[2K")[-1]
    renderer.close()
    assert re.fullmatch(r"  [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] wait      compile 14s · load 6\.1s done…\s+0s", live)
    assert len(live) <= 49
    assert shown(out.getvalue()) == ""


def test_the_live_line_makes_room_for_other_words():
    renderer, out = tty()
    renderer.on(event("wait", text="compile"))
    with renderer.hidden():
        out.write("a note\n")
    renderer.close()
    assert shown(out.getvalue()) == "a note\n"


def test_a_reader_who_leaves_does_not_stop_the_work():
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as stream:
        for renderer in (Plain(Terminal(stream, {})), Tty(Terminal(stream, {})), Json(Terminal(stream, {}))):
            renderer.on(event("wait", text="compile"))
            renderer.on(event("wait", "done"))
            renderer.close()
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # what is buffered must go somewhere at close


def test_a_closed_stream_does_not_stop_the_work():
    out = io.StringIO()
    renderer = Plain(Terminal(out, {}))
    out.close()
    renderer.on(event("wait"))
    renderer.close()


class SlowText(io.StringIO):
    """Tells whether two threads were ever writing at once."""

    def __init__(self):
        super().__init__()
        self.writing = 0
        self.met = False

    def write(self, text):
        self.writing += 1
        time.sleep(0.00001)
        self.met |= self.writing > 1
        count = super().write(text)
        self.writing -= 1
        return count


def test_texts_that_change_faster_than_a_person_reads_are_passed_over_and_the_heartbeat_says_what_holds():
    out, clock = io.StringIO(), Clock()
    renderer = Plain(Terminal(out, {}, width=80), clock=clock)
    for second in range(60):
        clock.now = second * 0.1
        renderer.on(event("fetch", text=f"package {second}"))
    assert out.getvalue().splitlines() == ["fetch: package 0", "fetch: package 50"]
    renderer.on(event("fetch", state="done", text="all"))
    assert out.getvalue().splitlines()[-1].startswith("fetch: done in ")
    renderer.close()


def test_lines_from_many_threads_stay_whole():
    out = SlowText()
    renderer = Plain(Terminal(out, {}, width=80), clock=Clock())

    def work(name):
        for done in range(200):
            renderer.on(event(f"{name}-{done}", text=f"part {done}"))

    threads = [threading.Thread(target=work, args=(f"step{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    renderer.close()
    lines = out.getvalue().splitlines()
    assert not out.met
    assert len(lines) == 1600
    assert all(re.fullmatch(r"step\d-(\d+): part \1", line) for line in lines)


def test_a_progress_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(InputError) as refused:
        choose("loud", io.StringIO(), {})
    assert refused.value.id == "CF092"
    assert "auto, tty, plain, json, quiet" in refused.value.why
    assert "--progress auto" in refused.value.fix[0]
