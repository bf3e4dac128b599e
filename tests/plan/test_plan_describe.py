"""A plan as a person reads it, and what to do when it does not fit."""

from selfhost.models.catalog import by_alias
from selfhost.plan.again import again_on
from selfhost.plan.command_line import command_line
from selfhost.plan.decide import decide
from selfhost.plan.describe import EXIT, arithmetic, describe
from selfhost.plan.fit import next_steps, refusal
from selfhost.plan.reasoning import parse
from selfhost.plan.ways_out import Door, Way, ways_out
from selfhost.shapes.exit import ExitCode
from selfhost.shapes.plan import MemoryPlan, Plan, Verdict
from selfhost.shapes.service import Service
from tests.fakes.planning import GIB, a_host, a_model, a_service, smollm2


def test_columns_are_aligned_and_the_last_line_is_the_verdict() -> None:
    text = describe(decide(host=a_host(), model=smollm2(), service=a_service(), port=8000))
    lines = text.splitlines()
    assert lines[0] == "smollm2-135m-instruct on Test CPU"
    assert lines[-1] == "fits · nothing was changed"
    table = [line for line in lines if line.startswith("  ") and not line.startswith("  memory")]
    starts = {line.index(line[4:].split("  ", 1)[1].lstrip().split("  ")[0]) for line in table if len(line) > 40}
    assert len(starts) == 1


def test_a_line_that_the_user_changed_says_so_even_when_it_is_usually_left_out() -> None:
    plain = decide(host=a_host(), model=smollm2(), service=a_service(), port=8000)
    assert "execution" not in describe(plain)
    args = ("--no-enforce-eager",)
    changed = decide(host=a_host(), model=smollm2(), service=a_service(context=2048, engine_args=args), port=8000)
    text = describe(changed)
    assert "you: --context 2048" in text
    assert "you: -- --no-enforce-eager" in text


def test_explain_opens_every_decision() -> None:
    plan = decide(host=a_host(), model=smollm2(), service=a_service(), port=8000)
    text = describe(plan, explain=True)
    for decision in plan.decisions:
        assert decision.field in text
    assert "evidence:" in text
    assert "23,040 bytes of KV cache per token" in text


def test_what_differs_from_the_published_model_is_said() -> None:
    plan = decide(host=a_host(gib=64), model=a_model(), service=a_service(precision="fp8"), port=8000)
    assert "differs from the published model: precision FP8 per channel" in describe(plan)


def test_a_demonstration_is_called_one() -> None:
    plan = decide(host=a_host(), model=smollm2(demonstration=True), service=a_service(), port=8000)
    assert "a demonstration model" in describe(plan)
    assert "because I say so" in describe(plan, chosen="because I say so")


def test_the_sum_shown_is_the_sum_of_what_is_shown() -> None:
    # 0.26, 2.06 and 1.06 GiB are 3.38 together, but 0.3 + 2.1 + 1.1 is 3.5
    parts = {"weights": int(0.26 * GIB), "overhead": int(2.06 * GIB), "kv_cache": int(1.06 * GIB)}
    memory = MemoryPlan(**parts, kv_bytes_per_token=1, kv_tokens=1, available=1, where="here")
    assert arithmetic(memory) == "0.3 weights + 2.1 engine + 1.1 KV = 3.5"


def test_the_next_command_repeats_the_users_own_words() -> None:
    service = a_service(
        "./my model", reasoning=parse("budget=64"), port=8001, engine_args=("--hf-overrides", '{"a": 1}')
    )
    expected = "selfhost up './my model' --reasoning budget=64 --port 8001 -- --hf-overrides '{\"a\": 1}'"
    assert command_line("up", service) == expected


def ways(plan: Plan, service: Service, *, gib: float) -> tuple[Way, ...]:
    again = again_on(host=a_host(gib=gib), model=plan.model, port=8000)
    return tuple(ways_out(plan, service, again=again, door=Door(verb="up")))


def test_what_does_not_fit_leads_to_the_arithmetic_and_exit_1() -> None:
    service = a_service()
    plan = decide(host=a_host(gib=8), model=a_model(), service=service, port=8000)
    assert EXIT[plan.verdict] is ExitCode.NO
    found = ways(plan, service, gib=8)
    steps = next_steps(plan, service, found)
    assert steps[-1] == "see the arithmetic:\nselfhost fit Qwen/Qwen3-4B --explain"
    assert steps[:-1] == refusal(plan, service, found).fix


def test_what_fits_leads_to_up() -> None:
    service = a_service("m")
    plan = decide(host=a_host(), model=smollm2(), service=service, port=8000)
    assert next_steps(plan, service, ()) == ("selfhost up m",)


def test_what_fits_another_machine_is_started_there() -> None:
    service = a_service("m")
    plan = decide(host=a_host(), model=smollm2(), service=service, port=8000)
    assert next_steps(plan, service, (), place=("--host", "m.json")) == ("on that machine:\nselfhost up m",)


def test_the_refusal_gives_figures_and_ways_out_that_fit() -> None:
    service = a_service(context=40960)
    plan = decide(host=a_host(gib=12.4), model=a_model(), service=service, port=8000)
    error = refusal(plan, service, ways(plan, service, gib=12.4))
    assert error.id == "PL001"
    assert error.exit_code is ExitCode.NO
    assert "qwen3-4b (BF16) needs" in error.what
    assert "7.5 GiB weights" in error.why
    assert "an estimate: " in error.why
    assert "does not fit" not in error.why
    context = next(fix for fix in error.fix if "--context 4" not in fix and "--context" in fix).rpartition(" ")[2]
    shorter = decide(host=a_host(gib=12.4), model=a_model(), service=a_service(context=int(context)), port=8000)
    assert EXIT[shorter.verdict] is ExitCode.OK


def test_a_model_whose_weights_are_too_large_leads_to_smaller_ones() -> None:
    service = a_service()
    plan = decide(host=a_host(gib=8), model=a_model(), service=service, port=8000)
    found = ways(plan, service, gib=8)
    assert {way.kind for way in found} <= {"smaller weights", "smaller model"}
    assert all(way.plan.verdict is Verdict.FITS for way in found)
    alias = found[-1].command.rpartition("selfhost up ")[2]
    row = by_alias(alias)
    assert row is not None
    assert row.params_b < 4
