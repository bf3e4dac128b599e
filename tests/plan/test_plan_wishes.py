"""A share of each card, variables for the engine, and servers that media may come from."""

from dataclasses import replace
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.plan.decide import decide
from selfhost.shapes.host import Known
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Plan
from tests.fakes.planning import QWEN3_4B, a_card, a_host, a_model, a_service, smollm2

CARD = a_host(accelerators=(a_card(),))
SEEING = a_model("Qwen/Qwen3-VL-4B", geometry=Known(replace(QWEN3_4B, vision=400_000_000), "config.json"))


def plan(model: Model | None = None, *, host: Any = CARD, **wish: Any) -> Plan:
    return decide(host=host, model=model or a_model(), service=a_service(**wish), port=8000)


def values(made: Plan, flag: str) -> list[str]:
    words = list(made.argv)
    if flag not in words:
        return []
    rest = words[words.index(flag) + 1 :]
    return rest[: next((n for n, word in enumerate(rest) if word.startswith("--")), len(rest))]


@pytest.mark.parametrize(
    ("engine", "flag"), [("vllm", "--gpu-memory-utilization"), ("sglang", "--mem-fraction-static")]
)
def test_a_share_is_the_engines_own_flag_and_is_computed_with(engine: str, flag: str) -> None:
    whole, half = plan(engine=engine), plan(engine=engine, share=0.6)
    assert values(half, flag) == ["0.6"]
    assert values(whole, flag) == []
    assert 0 < half.memory.kv_tokens < whole.memory.kv_tokens
    decision = half.decision("share")
    assert decision is not None
    assert (decision.value, decision.by) == ("60 % of each card", "--share 0.6")
    assert half.decision("engine flag") is None


def test_vllms_share_is_of_the_whole_card() -> None:
    # 0.6 of 23.52 GiB less 0.92 of it: 7.53 GiB less for the KV cache
    whole, part = plan(precision="bf16"), plan(precision="bf16", share=0.6)
    assert whole.memory.kv_cache - part.memory.kv_cache == pytest.approx(0.32 * 23.52 * 2**30, rel=0.01)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.01, 2.0])
def test_a_share_that_cannot_be_is_refused(share: float) -> None:
    with pytest.raises(InputError) as caught:
        plan(share=share)
    assert caught.value.id == "PL082"


def test_the_processor_has_no_share_of_a_card() -> None:
    with pytest.raises(InputError) as caught:
        plan(smollm2(), host=a_host(), share=0.5)
    assert caught.value.id == "PL082"


def test_what_stands_behind_the_dashes_counts_before_the_share() -> None:
    made = plan(share=0.5, engine_args=("--gpu-memory-utilization", "0.8"))
    assert values(made, "--gpu-memory-utilization") == ["0.8"]
    decision = made.decision("share")
    assert decision is not None
    assert decision.reason.startswith("not used")


@pytest.mark.parametrize("runtime", ["process", "docker"])
def test_variables_reach_the_engine_with_the_user_named(runtime: str) -> None:
    made = plan(engine_env={"VLLM_LOGGING_LEVEL": "DEBUG"}, runtime=runtime)
    assert made.env["VLLM_LOGGING_LEVEL"] == "DEBUG"
    decision = made.decision("engine variable")
    assert decision is not None
    assert (decision.value, decision.source) == ("VLLM_LOGGING_LEVEL=DEBUG", "user")


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("CUDA_VISIBLE_DEVICES", "PL084"),
        ("HIP_VISIBLE_DEVICES", "PL084"),
        ("ROCR_VISIBLE_DEVICES", "PL084"),
        ("ZE_AFFINITY_MASK", "PL084"),
        ("NVIDIA_VISIBLE_DEVICES", "PL084"),
        ("CUDA_DEVICE_ORDER", "PL084"),
        ("VLLM_API_KEY", "PL085"),
        ("HF_TOKEN", "PL085"),
        ("HUGGING_FACE_HUB_TOKEN", "PL085"),
        ("AWS_SECRET_ACCESS_KEY", "PL085"),
        ("A B", "PL083"),
    ],
)
def test_a_variable_that_chooses_cards_or_holds_a_secret_is_refused_by_name(name: str, id: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(engine_env={name: "canary-7"})
    assert caught.value.id == id
    assert name in caught.value.what
    assert "canary" not in f"{caught.value.what}{caught.value.why}{caught.value.fix}{caught.value.evidence}"


def test_a_value_that_is_a_token_is_refused_whatever_its_name() -> None:
    with pytest.raises(InputError) as caught:
        plan(engine_env={"NOTE": "hf_" + "a" * 34})
    assert caught.value.id == "PL085"


@pytest.mark.parametrize(("engine", "runtime"), [("vllm", "process"), ("vllm", "docker"), ("sglang", "docker")])
def test_a_model_that_sees_asks_no_server_unless_one_is_named(engine: str, runtime: str) -> None:
    wish = {"engine": engine, "runtime": runtime}
    closed = plan(SEEING, **wish)
    assert values(closed, "--allowed-media-domains") == ["none.invalid"]
    decision = closed.decision("media")
    assert decision is not None
    assert decision.value == "data: URLs only"
    opened = plan(SEEING, media_domains=("images.example.org", "192.0.2.7"), **wish)
    assert values(opened, "--allowed-media-domains") == ["images.example.org", "192.0.2.7"]


def test_a_model_of_text_alone_has_no_such_list() -> None:
    assert values(plan(), "--allowed-media-domains") == []
    assert plan().decision("media") is None


def test_the_users_own_list_behind_the_dashes_is_the_one_that_counts() -> None:
    made = plan(SEEING, engine_args=("--allowed-media-domains", "a.example"))
    assert made.argv.count("--allowed-media-domains") == 1
    assert values(made, "--allowed-media-domains") == ["a.example"]


@pytest.mark.parametrize("name", ["https://a.example", "a.example/x", "a.example:80", "", "--x"])
def test_a_server_is_named_by_its_host_name_alone(name: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(SEEING, media_domains=(name,))
    assert caught.value.id == "PL086"
