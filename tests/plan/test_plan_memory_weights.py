"""Weights on one rank: against `Model loading took` of public logs, and by hand."""

from dataclasses import replace

import pytest

from selfhost.models.catalog import by_id
from selfhost.plan.memory.question import Question, Room, Spread, Weights
from selfhost.plan.memory.weights import weights_on_rank
from selfhost.shapes.units import GIB


def ask(model: str, weights: Weights, spread: Spread | None = None) -> Question:
    row = by_id(model)
    assert row is not None
    if weights.parameters == 0:
        weights = replace(weights, parameters=row.params_b * 1e9)
    return Question(
        engine="vllm", version="0.19.0", backend="cuda", geometry=row.geometry, weights=weights,
        room=Room(name="NVIDIA H100 80GB HBM3", total=int(79.19 * GIB)), spread=spread or Spread(),
    )  # fmt: skip


def rank_gib(model: str, scheme: str, **spread: int) -> float:
    cut = Spread(**{"tensor": 1, "pipeline": 1, **spread})
    return weights_on_rank(ask(model, Weights(parameters=0, scheme=scheme), cut)).rank / GIB


@pytest.mark.parametrize(
    ("model", "scheme", "tensor", "pipeline", "seen"),
    [  # https://github.com/llm-d-incubation/llm-d-planner/pull/205, vLLM 0.19.0
        ("meta-llama/Llama-3.1-8B-Instruct", "bf16", 1, 1, 14.99),
        ("meta-llama/Llama-3.1-8B-Instruct", "fp8", 1, 1, 8.49),
        ("meta-llama/Llama-3.1-8B-Instruct", "gptq", 1, 1, 5.38),
        ("meta-llama/Llama-3.1-8B-Instruct", "fp32", 1, 1, 29.98),
        ("meta-llama/Llama-3.1-8B-Instruct", "bf16", 4, 1, 3.77),
        ("meta-llama/Llama-3.1-8B-Instruct", "bf16", 1, 4, 4.26),
        ("meta-llama/Llama-3.3-70B-Instruct", "fp8", 2, 1, 33.88),
        ("google/gemma-3-12b-it", "bf16", 1, 1, 23.31),
        ("openai/gpt-oss-20b", "mxfp4", 1, 1, 13.64),
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", "bf16", 1, 1, 29.43),
        ("Qwen/Qwen3-30B-A3B", "bf16", 1, 1, 56.88),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "bf16", 2, 1, 43.51),
    ],
)
def test_parameters_give_what_loading_took(model: str, scheme: str, tensor: int, pipeline: int, seen: float) -> None:
    assert rank_gib(model, scheme, tensor=tensor, pipeline=pipeline) == pytest.approx(seen, rel=0.02)


def test_what_is_known_best_counts() -> None:
    known = Weights(resident=1, by_rule=2, checkpoint=3, parameters=4.0)
    assert weights_on_rank(ask("Qwen/Qwen3-8B", known)).rank == 1
    assert weights_on_rank(ask("Qwen/Qwen3-8B", replace(known, resident=None))).rank == 2
    assert weights_on_rank(ask("Qwen/Qwen3-8B", Weights())).rank == 0


def test_a_checkpoint_served_as_it_is_counts_in_full() -> None:
    size = 16_381_516_800
    whole = weights_on_rank(ask("Qwen/Qwen3-8B", Weights(checkpoint=size)))
    assert whole.rank == pytest.approx(size, rel=1e-6)
    half = weights_on_rank(ask("Qwen/Qwen3-8B", Weights(checkpoint=size), Spread(tensor=2)))
    assert half.rank == pytest.approx(size / 2, rel=1e-6)


def test_converting_while_loading_leaves_embeddings_as_they_are() -> None:
    size = 16_381_516_800
    asked = ask("Qwen/Qwen3-8B", Weights(checkpoint=size, published="bf16", scheme="fp8"))
    kept = 2 * 151_936 * 4096 * 2
    assert weights_on_rank(asked).rank == pytest.approx(kept + (size - kept) / 2, rel=0.001)


def test_experts_alone_are_divided_with_dp_attention_and_expert_ranks() -> None:
    model = "deepseek-ai/DeepSeek-R1"
    cut = rank_gib(model, "fp8_block", tensor=8)
    attention_whole = rank_gib(model, "fp8_block", tensor=8, attention_data=8)
    assert attention_whole > cut + 8  # attention and the dense layers are on every rank
    over_data = weights_on_rank(
        ask(model, Weights(parameters=0, scheme="fp8_block"), Spread(tensor=1, data=8, expert=True))
    )
    assert over_data.rank / GIB == pytest.approx(attention_whole, rel=0.05)


def test_latent_attention_keeps_a_second_copy() -> None:
    with_copy = rank_gib("deepseek-ai/DeepSeek-V2-Lite-Chat", "bf16")
    assert with_copy - 15.706e9 * 2 / GIB == pytest.approx(27 * 16 * 256 * 512 * 2 / GIB, rel=0.01)
