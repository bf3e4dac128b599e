"""No request asks for more than the context holds, also where nobody says how long it is."""

from dataclasses import replace

import pytest

from selfhost.smoke.runner import run
from tests.fakes.engine import FakeEngine


def smoke(bench, *faults, context, foreign=False, only=None):
    options = replace(bench.options(*faults), context=context)
    with FakeEngine(options) as engine:
        endpoint = replace(bench.endpoint(engine.url, foreign=foreign), context=None if foreign else context)
        return run(endpoint, key=bench.key, only=only or bench.quick)


def failures(report):
    return [f"{check.id}: {check.reason}" for check in report.checks if check.state in ("failed", "error")]


@pytest.mark.parametrize("context", [96, 128, 256])
def test_a_healthy_engine_of_a_small_context_fails_no_check(bench, context):
    report = smoke(bench, context=context)
    assert failures(report) == []
    assert next(check for check in report.checks if check.id == "SM202").state == "passed"


@pytest.mark.parametrize("context", [96, 128])
def test_nor_at_a_foreign_address_that_does_not_say_its_context(bench, context):
    report = smoke(bench, "no-length", context=context, foreign=True)
    assert failures(report) == []
    assert next(check for check in report.checks if check.id == "SM202").state == "passed"


def test_what_does_not_fit_at_all_is_undecided(bench):
    report = smoke(bench, "no-length", context=48, foreign=True, only=("SM101",))
    check = next(check for check in report.checks if check.id == "SM101")
    assert (check.state, "too long for the context" in check.reason) == ("undecided", True), check
