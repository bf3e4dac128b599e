"""A plan written down and read back."""

import json
from typing import Any

import pytest

from selfhost.plan.decide import decide
from selfhost.plan.reasoning import parse
from selfhost.plan.to_json import from_json, to_json
from selfhost.shapes.plan import Plan
from tests.fakes.planning import a_card, a_host, a_model, a_service, smollm2, without_facts


def plans() -> list[Plan]:
    wish = a_service(reasoning=parse("budget=64"), precision="fp8", engine_args=("--seed", "1"))
    return [
        decide(host=a_host(), model=smollm2(), service=a_service(), port=8000),
        decide(host=a_host(gib=64), model=a_model(), service=wish, port=8001),
        decide(host=a_host(gib=8), model=a_model(), service=a_service(), port=8000),
        decide(
            host=a_host(accelerators=(a_card(0), a_card(1))),
            model=without_facts(
                a_model(), "revision", "weights_bytes", "params_b", "geometry", "dtype", "context_native"
            ),
            service=a_service(),
            port=8000,
        ),
    ]


@pytest.mark.parametrize("number", range(4))
def test_a_plan_comes_back_without_loss(number: int) -> None:
    plan = plans()[number]
    assert from_json(json.loads(json.dumps(to_json(plan)))) == plan


def test_the_document_says_what_a_script_needs() -> None:
    body: Any = to_json(plans()[1])
    assert body["schema"] == "selfhost.plan/1"
    assert (body["ok"], body["verdict"], body["name"]) == (True, "fits", "it")
    assert body["argv"][:3] == ["python", "-m", "vllm.entrypoints.openai.api_server"]
    assert body["env"]["VLLM_NO_USAGE_STATS"] == "1"
    precision = next(one for one in body["decisions"] if one["field"] == "precision")
    assert precision["by"] == "--precision fp8"
    assert precision["changes_behaviour"] is True
    assert {"reason", "source", "evidence", "enforced_by", "alternatives", "value"} <= set(precision)
    assert body["memory"]["need"] == sum(body["memory"][part] for part in ("weights", "overhead", "kv_cache"))


def test_a_plan_answers_for_its_address_its_need_and_one_decision() -> None:
    plan = plans()[1]
    assert plan.base_url == "http://127.0.0.1:8001/v1"
    assert plan.memory.need == plan.memory.weights + plan.memory.overhead + plan.memory.kv_cache
    precision, other = plan.decision("precision"), plan.decision("nonsense")
    assert precision is not None
    assert precision.by == "--precision fp8"
    assert other is None


def test_what_does_not_fit_is_not_ok() -> None:
    body: Any = to_json(plans()[2])
    assert (body["ok"], body["verdict"]) == (False, "does not fit")


def damaged(path: str, value: object) -> dict[str, object]:
    body: Any = to_json(plans()[0])
    *parents, last = path.split(".")
    inner = body
    for name in parents:
        inner = inner[name]
    inner[last] = value
    return body


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("plan.port", "8000", "port"),
        ("plan.port", None, "port"),
        ("plan.argv", "--x", "argv"),
        ("plan.verdict", "maybe", "verdict"),
        ("plan.nonsense", 1, "plan.nonsense"),
        ("plan.memory.nonsense", 1, "plan.memory.nonsense"),
        ("plan.model.family.reasoning_class", "Z9", "reasoning_class"),
        ("argv", ["rm", "-rf"], "argv"),
        ("context", 1, "context"),
        ("plan", [], "plan"),
    ],
)
def test_a_mistake_in_a_stored_plan_names_its_field(path: str, value: object, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        from_json(damaged(path, value))


def test_a_plan_without_its_body_is_refused() -> None:
    body = to_json(plans()[0])
    del body["plan"]
    with pytest.raises(ValueError, match="plan"):
        from_json(body)
