"""A model without a chat template: chats are skipped with that reason, everything else is judged by completions."""

from dataclasses import replace

import pytest

from selfhost.smoke.client_line import curl_line, openai_line
from selfhost.smoke.runner import run
from tests.fakes.engine import FakeEngine

REASON = "the model has no chat template"
CHATS = {"SM101", "SM140", "SM150", "SM200", "SM201", "SM202", "SM300", "SM301", "SM310"}


def states(report):
    return {check.id: (check.state, check.reason) for check in report.checks}


def smoke(bench, *faults, only, foreign=False):
    with FakeEngine(bench.options("no-template", *faults)) as engine:
        endpoint = replace(bench.endpoint(engine.url, foreign=foreign), chat=foreign)
        return run(endpoint, key=bench.key, only=only)


def test_a_healthy_one_passes_what_applies(bench):
    seen = states(smoke(bench, only=bench.quick))
    assert {name for name, state in seen.items() if state == ("skipped", REASON)} == CHATS
    open_ones = {"SM600"}  # the toy goes on with no word that it was not trained on
    assert {name for name, (state, _) in seen.items() if state != "passed"} == CHATS | open_ones, seen


def test_its_prose_is_still_judged(bench):
    assert states(smoke(bench, "shuffled", only=("SM110",)))["SM110"][0] == "failed"
    assert states(smoke(bench, "no-prompt-logprobs", only=("SM110",)))["SM110"][0] == "undecided"


def test_at_a_foreign_address_the_refusal_tells(bench):
    seen = states(smoke(bench, only=bench.quick, foreign=True))
    assert seen["SM002"][0] == "passed"
    assert seen["SM101"] == ("skipped", REASON)
    assert not [name for name, (state, _) in seen.items() if state in ("failed", "error")]


def test_the_printed_lines_are_completions_and_the_python_line_works(bench):
    endpoint = replace(bench.endpoint("http://127.0.0.1:8000/v1"), chat=False)
    assert "http://127.0.0.1:8000/v1/completions" in curl_line(endpoint)
    assert '"prompt"' in curl_line(endpoint)
    assert "messages" not in openai_line(endpoint) + curl_line(endpoint)
    assert states(smoke(bench, only=("SM020",)))["SM020"][0] == "passed"


@pytest.mark.parametrize(("fault", "id"), [("overlong-dead", "SM500"), ("slot-leak", "SM610"), ("any-key", "SM801")])
def test_its_faults_are_found_by_completions(bench, monkeypatch, fault, id):
    monkeypatch.setattr("selfhost.smoke.checks.dropped.FREED_S", 0.4)
    assert states(smoke(bench, fault, only=(id,)))[id][0] == "failed"
