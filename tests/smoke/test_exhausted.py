"""A spent budget is explained with ways out that work: the user's own model and name, never more than the context."""

from selfhost.shapes.endpoint import Endpoint
from selfhost.shapes.plan import ReasoningPlan
from selfhost.shapes.service import ReasoningMode
from selfhost.smoke.exhausted import exhausted
from selfhost.smoke.wire import Answer, Usage

SWITCH = ReasoningPlan(mode=ReasoningMode.ON, can_think=True, can_switch=True)


def spent(*, prompt: int, made: int) -> Answer:
    usage = Usage(prompt=prompt, completion=made, total=prompt + made, reasoning=made)
    return Answer(reasoning="hm", finish="length", usage=usage)


def endpoint(**more) -> Endpoint:
    return Endpoint(name="mine", base_url="http://127.0.0.1:8000/v1", model="qwen3-4b", **more)


def test_the_command_names_the_model_and_the_deployment_as_the_user_did():
    ours = endpoint(reasoning=SWITCH, model_ref="./my models/qwen", context=32768)
    fix = exhausted(spent(prompt=20, made=512), ours).fix
    assert "or switch thinking off for every client:\nselfhost up './my models/qwen' --name mine --reasoning off" in fix


def test_the_room_that_is_advised_fits_into_the_context():
    def advice(context: int | None) -> str:
        return exhausted(spent(prompt=24, made=512), endpoint(context=context)).fix[0]

    assert "max_tokens ≥ 4096;" in advice(None)
    assert "max_tokens ≥ 4096;" in advice(32768)
    assert "max_tokens ≥ 2024;" in advice(2048)  # 2048 less the prompt's 24


def test_where_the_context_itself_is_spent_a_longer_one_is_advised():
    ours = endpoint(reasoning=SWITCH, model_ref="Qwen/Qwen3-4B", context=1024)
    fix = exhausted(spent(prompt=24, made=1000), ours).fix
    assert "max_tokens" not in fix[0]
    assert fix[0].endswith(":\nselfhost up Qwen/Qwen3-4B --name mine --context 2048")


def test_at_a_foreign_address_no_command_of_ours_is_advised():
    fix = exhausted(spent(prompt=24, made=1000), endpoint(context=1024)).fix
    assert not any("selfhost up" in action for action in fix)
    assert any("enable_thinking" in action for action in fix)


def test_a_model_that_always_thinks_is_offered_no_switch():
    always = ReasoningPlan(mode=ReasoningMode.ON, can_think=True, can_switch=False)
    fix = exhausted(spent(prompt=24, made=512), endpoint(reasoning=always, context=4096)).fix
    assert len(fix) == 1
