"""What a server or a model lacks is found out by asking, and leads to a reason, never to a pass or a false alarm."""

import json

import pytest

from selfhost.core.errors import InputError
from selfhost.shapes.exit import ExitCode
from selfhost.smoke.probes_file import brought
from selfhost.smoke.prose import shuffle

PROBES = {"schema": "selfhost.probes/1", "questions": [{"ask": "Say apple", "expect": "apple"}]}


def outcome(report, name):
    check = next(check for check in report.checks if check.id == name)
    return check.state, check.reason


def write_probes(folder, body):
    (folder / "selfhost-probes.json").write_text(json.dumps(body))
    return str(folder)


def no_failures(report):
    return not [f"{check.id}: {check.reason}" for check in report.checks if check.state in ("failed", "error")]


def test_without_likelihoods_clear_answers_decide(bench):
    report = bench.smoke("no-prompt-logprobs", only=("SM110", "SM130"))
    assert outcome(report, "SM110")[0] == "passed"
    assert "8 of 8 plain questions" in outcome(report, "SM110")[1]
    assert outcome(report, "SM130") == ("undecided", "the server gives no log-probabilities by token id")


def test_without_likelihoods_no_right_answer_is_garbage(bench):
    report = bench.smoke("no-logprobs", "garbage", only=("SM110",))
    assert outcome(report, "SM110")[0] == "failed"


def test_a_vocabulary_of_bytes_is_not_judged_by_prose(bench):
    report = bench.smoke("byte-level", only=("SM110",))
    state, reason = outcome(report, "SM110")
    assert state == "undecided"
    assert "1.0 characters a token" in reason
    assert "selfhost-probes.json" in reason
    assert "the garbage check could not judge this model" in report.summary()
    assert report.exit_code is ExitCode.OK  # the other checks that ran have passed; this one is said to be open


def test_a_model_that_brings_probes_is_judged_by_them(bench, tmp_path):
    folder = write_probes(tmp_path, PROBES)
    report = bench.smoke("byte-level", only=("SM110",), model_dir=folder)
    assert outcome(report, "SM110") == ("passed", "by its own probes: 1 of 1 questions")


def test_a_model_that_fails_its_own_probes_is_garbage(bench, tmp_path):
    folder = write_probes(tmp_path, PROBES)
    report = bench.smoke("byte-level", "garbage", only=("SM110",), model_dir=folder)
    assert outcome(report, "SM110")[0] == "failed"


def test_brought_texts_are_compared_with_their_shuffled_words(bench, tmp_path):
    text = "The kitchen was warm and quiet. A pot of soup stood on the stove."
    folder = write_probes(tmp_path, {"schema": "selfhost.probes/1", "likelihood": [{"text": text}]})
    assert outcome(bench.smoke(only=("SM110",), model_dir=folder), "SM110")[0] == "passed"
    assert outcome(bench.smoke("shuffled", only=("SM110",), model_dir=folder), "SM110")[0] == "failed"


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"schema": "selfhost.probes/2"},
        {"schema": "selfhost.probes/1"},
        {"schema": "selfhost.probes/1", "questions": [{}]},
    ],
)
def test_a_file_of_probes_that_is_not_one_is_an_error_with_its_path(bench, tmp_path, body):
    folder = write_probes(tmp_path, body)
    with pytest.raises(InputError) as caught:
        brought(folder)
    assert folder in caught.value.what
    report = bench.smoke(only=("SM110",), model_dir=folder)
    assert outcome(report, "SM110")[0] == "error"
    assert report.exit_code is ExitCode.NO


def test_shuffling_keeps_the_words_and_is_the_same_everywhere():
    # random.Random(3).shuffle of CPython 3.11, 3.12 and 3.13
    assert sorted(shuffle("a b c d e f", seed=3).split()) == ["a", "b", "c", "d", "e", "f"]
    assert shuffle("a b c d e f", seed=3) == shuffle("a b c d e f", seed=3) != "a b c d e f"


def test_a_server_without_tokenize_or_metrics_skips_what_needs_them(bench):
    report = bench.smoke("no-tokenize", "no-metrics")
    assert outcome(report, "SM150") == ("skipped", "the server has no /tokenize (HTTP 404)")
    assert outcome(report, "SM610")[0] == "skipped"
    assert no_failures(report)


@pytest.mark.parametrize("plan", ["on", "off"])
def test_the_other_name_of_the_thinking_field_is_read_too(bench, plan):
    report = bench.smoke("reasoning-content", plan=plan)
    assert no_failures(report)
    assert outcome(report, "SM300")[0] == outcome(report, "SM310")[0] == "passed"


@pytest.mark.parametrize("plan", ["none", "on", "off"])
def test_a_foreign_address_is_measured_instead_of_planned(bench, plan):
    report = bench.smoke(plan=plan, foreign=True)
    assert no_failures(report)
    assert outcome(report, "SM301") == ("skipped", "which mode was configured is not known for a foreign address")
    assert outcome(report, "SM310")[0] == ("skipped" if plan == "none" else "passed")


def test_thinking_without_a_parser_is_found_at_a_foreign_address(bench):
    report = bench.smoke("think-leak", plan="on", foreign=True)
    assert outcome(report, "SM300") == ("failed", "thinking leaks into message.content (<think>)")


def test_a_foreign_server_may_list_more_models(bench):
    assert outcome(bench.smoke("extra-model", only=("SM001",), foreign=True), "SM001")[0] == "passed"


def test_an_exhausted_budget_is_explained_and_is_no_failure(bench):
    report = bench.smoke("capped", plan="on")
    assert no_failures(report)
    finding = next(finding for finding in report.findings if finding.id == "SM310")
    assert finding.severity == "info"
    assert finding.title == "the answer was empty: all 8 tokens went into thinking"
    assert "the server itself is healthy" in finding.why
    assert any("--reasoning off" in action for action in finding.fix)
    assert outcome(report, "SM300") == ("undecided", "all tokens went into thinking, twice")


def test_a_model_that_always_thinks_is_offered_no_switch(bench):
    report = bench.smoke(plan="always", only=("SM310",))
    finding = next(finding for finding in report.findings if finding.id == "SM310")
    assert not any("enable_thinking" in action for action in finding.fix)


def test_an_official_client_without_an_answer_gets_the_same_explanation(bench):
    report = bench.smoke("capped", plan="on", only=("SM020",))
    assert outcome(report, "SM020") == ("undecided", "the line works; all tokens went into thinking")
    assert "SM310" in {finding.id for finding in report.findings}
