"""Each check is seen to fail on its fault, and only on its fault, against the engine that misbehaves on demand."""

import pytest

from selfhost.shapes.exit import ExitCode
from tests.fakes.engine import FAULTS

NO_FAULTS_OF_SMOKE = {"no-prompt-logprobs", "no-logprobs", "no-tokenize", "no-metrics", "reasoning-content"}
NO_FAULTS_OF_SMOKE |= {"byte-level", "capped", "no-template", "no-length"}
LIFE = {"die-load", "die-serve", "never-ready", "exit-3"}
ELSEWHERE = {"generate-hang", "refuse-client"}
"""Tested in test_runner.py."""


def failed(report):
    return {check.id for check in report.checks if check.state in ("failed", "error")}


def states(report):
    return {check.id: check.state for check in report.checks}


def shown(report):
    return "\n".join(f"{check.id} {check.state}: {check.reason}" for check in report.checks)


@pytest.mark.parametrize("plan", ["none", "on", "off", "budget", "always"])
def test_a_healthy_engine_passes_every_check(bench, plan):
    report = bench.smoke(plan=plan)
    assert report.exit_code is ExitCode.OK
    not_run = (
        {"SM301", "SM310"} if plan == "none" else set()
    )  # without thinking there is nothing to configure or exhaust
    assert {name for name, state in states(report).items() if state != "passed"} == not_run, shown(report)


# The checks that must fail on each fault; every other check must pass, be skipped for it, or not apply.
CASES = [
    ("wrong-name", "none", {"SM001"}),
    ("extra-model", "none", {"SM001"}),
    ("generate-500", "none", {"SM002"}),
    ("no-key", "none", {"SM801"}),
    ("any-key", "none", {"SM801"}),
    ("key-echo", "none", {"SM801"}),
    ("key-refused", "none", {"SM001", "SM002", "SM801"}),
    ("empty-answer", "none", {"SM101", "SM110"}),
    ("no-finish", "none", {"SM101"}),
    ("wrong-role", "none", {"SM101"}),
    ("garbage", "none", {"SM110"}),
    ("shuffled", "none", {"SM110"}),
    ("parrot", "none", {"SM110"}),
    ("decode-drift", "none", {"SM130"}),
    ("decode-other", "none", {"SM130"}),
    ("length-says-stop", "none", {"SM140"}),
    ("stop-says-length", "none", {"SM140"}),
    ("stop-included", "none", {"SM140"}),
    ("stop-ignored", "none", {"SM140"}),
    ("max-tokens-ignored", "none", {"SM140"}),
    ("usage-prompt", "none", {"SM150"}),
    ("usage-completion", "none", {"SM140", "SM150"}),
    ("no-usage", "none", {"SM150"}),
    ("no-done", "none", {"SM200"}),
    ("no-usage-chunk", "none", {"SM200"}),
    ("bad-frame", "none", {"SM200"}),
    ("not-sse", "none", {"SM200"}),
    ("stream-cut", "none", {"SM200"}),
    ("stream-differs", "none", {"SM201"}),
    ("utf8-replaced", "none", {"SM202"}),
    ("utf8-lost", "none", {"SM202"}),
    ("think-leak", "on", {"SM300"}),
    ("think-swallowed", "on", {"SM300"}),
    ("think-swallowed", "off", {"SM300"}),
    ("off-thinks", "on", {"SM300"}),
    ("off-thinks", "off", {"SM300"}),
    ("off-stream-thinks", "on", {"SM201", "SM300"}),
    ("on-silent", "on", {"SM300"}),
    ("default-flipped", "on", {"SM301"}),
    ("default-flipped", "off", {"SM301"}),
    ("budget-says-stop", "on", {"SM310"}),
    ("budget-empty", "on", {"SM310"}),
    ("budget-ignored", "budget", {"SM310"}),
    ("overlong-crash", "none", {"SM500"}),
    ("overlong-dead", "none", {"SM500"}),
    ("overlong-accept", "none", {"SM500"}),
    ("overlong-500", "none", {"SM500"}),
    ("crosstalk", "none", {"SM600"}),
    ("serial-refuse", "none", {"SM600"}),
    ("slot-leak", "none", {"SM610"}),
]


@pytest.mark.parametrize(("fault", "plan", "expected"), CASES, ids=[f"{fault}-{plan}" for fault, plan, _ in CASES])
def test_a_fault_fails_its_check_and_no_other(bench, monkeypatch, fault, plan, expected):
    monkeypatch.setattr("selfhost.smoke.checks.dropped.FREED_S", 0.4)
    report = bench.smoke(fault, plan=plan)
    assert failed(report) == expected, shown(report)
    assert report.exit_code is ExitCode.NO


def test_every_fault_of_the_fake_is_tested_somewhere():
    assert {fault for fault, _, _ in CASES} | NO_FAULTS_OF_SMOKE | LIFE | ELSEWHERE == set(FAULTS)


def test_every_check_is_seen_to_fail(bench):
    assert {name for _, _, expected in CASES for name in expected} == set(bench.quick)
