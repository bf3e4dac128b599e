"""Arguments and environment of one vLLM server."""

import json

import pytest

from selfhost.core.errors import InputError
from selfhost.engines import sglang, vllm
from selfhost.engines.base import engine
from selfhost.engines.builds import rows
from selfhost.engines.since import too_new
from selfhost.shapes.plan import EngineBuild, Parallel, ReasoningPlan
from selfhost.shapes.service import ReasoningMode
from tests.engines.launches import CARD, SWITCHED_OFF, launch


def value(argv: tuple[str, ...], flag: str) -> str:
    assert argv.count(flag) == 1, f"{flag} in {argv}"
    return argv[argv.index(flag) + 1]


def test_a_cpu_server_listens_where_it_was_told_and_holds_what_was_planned() -> None:
    argv = vllm.argv(launch())
    assert argv[:4] == ("--host", "127.0.0.1", "--port", "8000")
    assert value(argv, "--model") == "/models/smollm2"
    assert value(argv, "--served-model-name") == "smollm2"
    assert value(argv, "--max-model-len") == "2048"
    assert value(argv, "--max-num-seqs") == "4"
    assert value(argv, "--dtype") == "bfloat16"
    assert value(argv, "--kv-cache-memory-bytes") == "500000000"
    assert "--enforce-eager" in argv
    assert "--kv-cache-dtype" not in argv


def test_a_card_compiles_and_measures_its_own_kv_cache() -> None:
    argv = vllm.argv(launch(**CARD))
    assert "--enforce-eager" not in argv
    assert "--kv-cache-memory-bytes" not in argv
    assert "--tensor-parallel-size" not in argv


def test_two_cards_share_the_model() -> None:
    argv = vllm.argv(launch(**{**CARD, "devices": ("GPU-a", "GPU-b")}))
    assert value(argv, "--tensor-parallel-size") == "2"


def test_fp8_is_per_channel_and_the_kv_cache_is_a_decision_of_its_own() -> None:
    argv = vllm.argv(launch(weights_precision="fp8", kv_precision="fp8"))
    assert value(argv, "--quantization") == "fp8_per_channel"
    assert value(argv, "--kv-cache-dtype") == "fp8"
    assert "--dtype" not in argv


def test_a_checkpoint_as_published_gets_no_precision_flag() -> None:
    argv = vllm.argv(launch(weights_precision="checkpoint"))
    assert not {"--dtype", "--quantization"} & set(argv)


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        vllm.argv(launch(weights_precision="fp7"))
    assert caught.value.id == "PL065"


def test_the_mode_is_a_default_of_the_server_and_the_parser_stays_when_thinking_is_off() -> None:
    argv = vllm.argv(launch(reasoning=SWITCHED_OFF, tool_parser="hermes"))
    assert value(argv, "--reasoning-parser") == "qwen3"
    assert json.loads(value(argv, "--default-chat-template-kwargs")) == {"enable_thinking": False, "thinking": False}
    assert value(argv, "--tool-call-parser") == "hermes"
    assert "--enable-auto-tool-choice" in argv


def test_the_same_launch_gives_the_same_arguments() -> None:
    other = launch(reasoning=SWITCHED_OFF)
    assert vllm.argv(launch(reasoning=SWITCHED_OFF)) == vllm.argv(other)


def test_no_key_and_no_token_is_in_the_arguments_or_the_environment() -> None:
    everything = " ".join((*vllm.argv(launch()), *vllm.env(launch())))
    assert "key" not in everything.lower().replace("keep", "")
    assert "HF_TOKEN" not in everything
    assert vllm.KEY_VARIABLE == "VLLM_API_KEY"


def test_the_engine_works_offline_and_reports_nothing() -> None:
    variables = vllm.env(launch())
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_DO_NOT_TRACK"):
        assert variables[name] == "1"
    assert "CUDA_VISIBLE_DEVICES" not in vllm.env(launch(**CARD))
    assert vllm.env(launch(**CARD))["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


@pytest.mark.parametrize(("cores", "threads"), [(2.0, "1"), (8.0, "7"), (1.0, "1"), (0.5, "1"), (3.9, "2")])
def test_threads_follow_the_cores_granted_less_one_for_the_scheduler(cores: float, threads: str) -> None:
    variables = vllm.env(launch(cores=cores))
    assert variables["OMP_NUM_THREADS"] == threads
    assert variables["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"


def test_unknown_cores_leave_the_binding_to_the_engine() -> None:
    assert "VLLM_CPU_OMP_THREADS_BIND" not in vllm.env(launch())


def test_the_module_is_found_by_its_name_and_others_are_refused() -> None:
    assert engine("vllm") is vllm
    assert engine("sglang") is sglang
    assert engine("vllm").PHASES[-1] == "ready"
    with pytest.raises(InputError):
        engine("ollama")


def test_a_share_of_the_card_is_given_when_it_was_planned_beside_bytes_too() -> None:
    """vLLM 0.33.0, v1/worker/utils.py: it starts only where that share is free, whatever the cache's size."""
    assert value(vllm.argv(launch(**CARD, gpu_memory_utilization=0.88)), "--gpu-memory-utilization") == "0.88"
    unified = vllm.argv(launch(**{**CARD, "kv_cache_bytes": 4 * 2**30}, gpu_memory_utilization=0.9))
    assert value(unified, "--kv-cache-memory-bytes") == "4294967296"
    assert value(unified, "--gpu-memory-utilization") == "0.9"


def test_a_model_is_cut_as_it_was_planned() -> None:
    eight = {**CARD, "devices": tuple(f"GPU-{number}" for number in range(8))}
    argv = vllm.argv(launch(**eight, parallel=Parallel(tensor=2, pipeline=2, data=2, expert=True)))
    assert value(argv, "--tensor-parallel-size") == "2"
    assert value(argv, "--pipeline-parallel-size") == "2"
    assert value(argv, "--data-parallel-size") == "2"
    assert "--enable-expert-parallel" in argv
    assert not [word for word in vllm.argv(launch(**CARD)) if "parallel" in word]


def test_flags_of_the_precision_follow_it_and_give_way_to_the_users_own() -> None:
    words = ("--linear-backend", "triton", "--kv-cache-dtype-skip-layers", "0", "sliding_window")
    argv = vllm.argv(launch(**CARD, quantization_flags=words))
    start = argv.index("--linear-backend")
    assert argv[start : start + 5] == words
    mine = vllm.argv(launch(**CARD, quantization_flags=words, extra=("--linear-backend", "marlin")))
    assert value(mine, "--linear-backend") == "marlin"
    assert "sliding_window" in mine


def test_what_a_reasoning_plan_needs_beside_its_parser_is_handed_on() -> None:
    plan = ReasoningPlan(mode=ReasoningMode.ON, server_flags=("--enable-force-include-usage",), env={"A_LIMIT": "7"})
    assert "--enable-force-include-usage" in vllm.argv(launch(reasoning=plan))
    assert vllm.env(launch(reasoning=plan))["A_LIMIT"] == "7"


@pytest.mark.parametrize("build", [row for row in rows() if row.engine == "vllm"], ids=lambda row: row.version)
def test_no_planned_flag_is_newer_than_a_build_that_it_is_given_to(build: EngineBuild) -> None:
    everything = launch(
        **{**CARD, "devices": ("a", "b")},
        reasoning=SWITCHED_OFF,
        tool_parser="hermes",
        weights_precision="fp8",
        kv_precision="fp8",
        gpu_memory_utilization=0.9,
        parallel=Parallel(tensor=2, expert=True),
    )
    assert too_new("vllm", build.version, vllm.argv(everything)) == ()
