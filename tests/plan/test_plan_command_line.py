"""The user's own words behind another command: what is proposed replaces, everything else stays."""

import pytest

from selfhost.core.errors import InputError
from selfhost.plan.again import again_on
from selfhost.plan.command_line import command_line
from selfhost.plan.decide import decide
from selfhost.plan.reasoning import parse
from selfhost.plan.ways_out import Door, ways_out
from selfhost.shapes.plan import Verdict
from tests.fakes.planning import a_host, a_model, a_service, smollm2


def test_a_changed_option_takes_the_place_of_the_former_one() -> None:
    service = a_service("m", context=40960, name="foo", device="cpu")
    assert command_line("up", service, change={"context": "8192"}) == (
        "selfhost up m --context 8192 --name foo --device cpu"
    )
    assert command_line("up", service, change={"context": None}) == "selfhost up m --name foo --device cpu"
    assert command_line("up", service, change={"precision": "bf16"}).endswith("--device cpu --precision bf16")


def test_an_engine_flag_that_would_overrule_the_change_goes_and_others_stay() -> None:
    service = a_service("m", engine_args=("--max_model_len=40960", "--seed", "7", "--dtype", "float16"))
    assert command_line("up", service, change={"context": "8192"}) == (
        "selfhost up m --context 8192 -- --seed 7 --dtype float16"
    )
    assert command_line("up", service, change={"precision": "bf16"}).endswith("-- --max_model_len=40960 --seed 7")


def test_another_model_takes_over_the_place_and_nothing_that_was_said_about_the_first() -> None:
    service = a_service(
        "m", name="foo", device="cpu", port=8001, context=40960, precision="fp8", reasoning=parse("budget=64"),
        engine_args=("--seed", "7"),
    )  # fmt: skip
    assert command_line("up", service, model="other") == "selfhost up other --name foo --device cpu --port 8001"


def test_a_model_that_nobody_named_is_not_written_out() -> None:
    service = a_service("m", context=2048)
    chosen = type(service)(**{**{f: getattr(service, f) for f in service.__slots__}, "origins": {"model": "chosen"}})
    assert command_line("plan", chosen, "--explain") == "selfhost plan --explain"


def test_ways_out_of_what_does_not_fit_keep_name_and_device() -> None:
    host, service = a_host(gib=12.4), a_service(name="foo", device="cpu", context=40960)
    plan = decide(host=host, model=a_model(), service=service, port=8000)
    assert plan.verdict is Verdict.DOES_NOT_FIT
    again = again_on(host=host, model=plan.model, port=8000)
    commands = [way.command for way in ways_out(plan, service, again=again, door=Door(verb="up"))]
    assert len(commands) >= 2
    for command in commands:
        assert command.count("--context") <= 1
        assert "--name foo" in command
        assert "--device cpu" in command


@pytest.mark.parametrize(
    ("wish", "id", "kept"),
    [
        ({"context": 16384}, "PL002", "--context 8192 --name foo"),
        ({"context": 3}, "PL003", "--context 4096 --name foo"),
        ({"concurrency": 0}, "PL004", "--concurrency 4 --name foo"),
        ({"precision": "fp4"}, "PL005", "up Qwen/Qwen3-4B --name foo"),
        ({"kv_cache": "int3"}, "PL007", "up Qwen/Qwen3-4B --name foo"),
        ({"reasoning": parse("on")}, "PL021", "up Qwen/Qwen3-4B --name foo"),
    ],
)
def test_refusals_keep_the_users_other_options(wish: dict[str, object], id: str, kept: str) -> None:
    with pytest.raises(InputError) as caught:
        decide(host=a_host(), model=smollm2(), service=a_service(**wish, name="foo"), port=8000)
    assert caught.value.id == id
    assert kept in caught.value.fix[0]
    assert caught.value.why


def test_what_runs_foreign_code_is_asked_for_with_everything_else_as_it_was() -> None:
    service = a_service("Qwen/Qwen3-4B", name="foo", device="cpu")
    with pytest.raises(InputError) as caught:
        decide(host=a_host(), model=a_model(pickled=True), service=service, port=8000)
    line = caught.value.fix[1].partition("\n")[2]
    assert line.startswith("selfhost up Qwen/Qwen3-4B@0123456789abcdef0123456789abcdef01234567 --name foo")
    assert line.endswith("--device cpu --allow-pickle")
