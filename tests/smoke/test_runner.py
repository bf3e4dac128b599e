"""Order, dependencies, time, what is said and what is never said."""

import json
import xml.etree.ElementTree as ET
from io import StringIO
from pathlib import Path

import pytest

from selfhost.core.errors import InputError
from selfhost.core.terminal import Terminal
from selfhost.shapes.exit import ExitCode
from selfhost.smoke import describe
from selfhost.smoke.client_line import curl_line, openai_line
from selfhost.smoke.probe import Clock
from selfhost.smoke.runner import catalog, run
from tests.fakes.engine import FakeEngine

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "smoke.md"


def state(report, name):
    return next(check for check in report.checks if check.id == name)


class Recorder:
    def __init__(self):
        self.events = []

    def on(self, event):
        self.events.append(event)

    def close(self):
        pass


def test_every_check_is_documented_with_its_title():
    text = DOCS.read_text()
    for spec, _ in catalog():
        assert f"| {spec.id} | {spec.title.replace('{model}', 'MODEL')} |" in text


def test_needs_name_checks_that_run_before():
    order = [spec.id for spec, _ in catalog()]
    for spec, _ in catalog():
        assert all(order.index(needed) < order.index(spec.id) for needed in spec.needs), spec


def test_only_runs_what_is_named_and_what_that_needs(bench):
    report = bench.smoke(only=("SM201",))
    assert [check.id for check in report.checks] == ["SM002", "SM101", "SM200", "SM201"]


def test_an_unknown_id_is_refused_with_the_known_ones(bench):
    with pytest.raises(InputError, match="SM999") as caught:
        bench.smoke(only=("SM999",))
    assert "SM110" in caught.value.why


def test_a_check_whose_ground_failed_is_skipped_with_that_reason(bench):
    report = bench.smoke("garbage", plan="on")
    for name in ("SM300", "SM301", "SM310", "SM600"):
        assert (state(report, name).state, state(report, name).reason) == ("skipped", "SM110 failed")


def test_without_a_server_the_reach_fails_and_the_rest_is_skipped(bench):
    endpoint = bench.endpoint("http://127.0.0.1:9/v1")  # discard: nothing listens
    report = run(endpoint, key=bench.key, only=("SM001", "SM110", "SM200"))
    assert [(check.id, check.state) for check in report.checks] == [
        ("SM001", "failed"), ("SM002", "failed"), ("SM101", "skipped"), ("SM110", "skipped"), ("SM200", "skipped"),
    ]  # fmt: skip
    assert report.exit_code is ExitCode.NO


def test_green_health_without_a_generation_is_not_ready(bench, monkeypatch):
    monkeypatch.setattr(Clock, "left_s", lambda _: 0.3)
    report = bench.smoke("generate-hang", only=("SM002", "SM200"))
    ready = state(report, "SM002")
    assert ready.state == "failed"
    assert "no answer in time" in ready.reason
    assert "/health answers 200" in ready.finding.why
    assert state(report, "SM200").reason == "SM002 failed"


def test_only_skips_are_undecided(bench):
    endpoint = bench.endpoint("http://127.0.0.1:9/v1", foreign=True)
    report = run(endpoint, key="", only=("SM801",))
    assert state(report, "SM801").state == "skipped"
    assert report.exit_code is ExitCode.UNDECIDED


def test_the_summary_says_what_was_shown_and_no_more(bench):
    report = bench.smoke()
    assert report.summary() == (
        "15 of 17 checks passed, 2 not run; for this driver, image, model and plan; answer quality not tested"
    )
    failing = bench.smoke("no-done")
    assert failing.summary().startswith("11 of 17 checks passed, 1 failed, 5 not run; ")


def test_events_tell_the_check_that_runs(bench):
    sink = Recorder()
    with FakeEngine(bench.options()) as engine:
        run(bench.endpoint(engine.url), key=bench.key, only=("SM101",), sink=sink)
    assert [(event.step, event.text.split()[0], event.done, event.total) for event in sink.events] == [
        ("smoke", "SM002", 0, 2),
        ("smoke", "SM101", 1, 2),
    ]


def test_the_printed_python_line_works_and_holds_no_key(bench):
    report = bench.smoke(only=("SM020",))
    assert state(report, "SM020").state == "passed"
    line = openai_line(bench.endpoint("http://127.0.0.1:8000/v1"))
    assert bench.key not in line
    assert str(bench.key_file) in line
    compile(line, "line", "exec")


def test_a_gateway_that_refuses_the_official_client_is_found(bench):
    report = bench.smoke("refuse-client", only=("SM020",))
    assert {check.id for check in report.checks if check.state == "failed"} == {"SM020"}
    assert "403" in state(report, "SM020").finding.evidence


def test_the_curl_line_reads_the_key_from_its_header_file(bench):
    line = curl_line(bench.endpoint("http://127.0.0.1:8000/v1"))
    assert f"@{bench.key_file}.header" in line
    assert bench.key not in line


def test_the_key_is_in_no_finding_even_when_the_server_repeats_it(bench):
    report = bench.smoke("key-echo", "generate-500")
    assert bench.key not in json.dumps(report.to_json())
    assert bench.key not in describe.junit(report)


def test_json_is_the_schema_of_findings_with_every_check(bench):
    body = bench.smoke("stop-included").to_json()
    assert (body["schema"], body["ok"], body["exit_code"]) == ("selfhost.findings/1", False, 1)
    assert [finding["id"] for finding in body["findings"]] == ["SM140"]
    assert body["summary"] == {"error": 1, "warning": 0, "info": 0}
    assert {check["id"]: check["state"] for check in body["checks"]}["SM140"] == "failed"
    assert all(set(check) >= {"id", "title", "state", "seconds", "reason"} for check in body["checks"])


def test_junit_counts_failures_and_skips(bench):
    suite = ET.fromstring(describe.junit(bench.smoke("no-done")).encode()).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("17", "1", "5")
    failed = [case.get("name").split()[0] for case in suite if case.find("failure") is not None]
    assert failed == ["SM200"]


def test_on_a_pipe_every_check_is_one_line_without_symbols(bench):
    report = bench.smoke("no-done")
    lines = describe.lines(report, Terminal(StringIO(), {}))
    assert len(lines) == len(report.checks)
    assert any(line.startswith("SM200 FAIL the stream ended without [DONE] (") for line in lines)
    assert "SM201 skipped: SM200 failed" in lines
