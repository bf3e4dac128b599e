"""Layers, heads, states and experts from config.json; expected values from transformers 5.19's configuration classes
and from vLLM 0.33.0's models."""

from pathlib import Path
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.models.fields import Fields
from selfhost.models.geometry import completed, geometry_of
from selfhost.shapes.geometry import Experts, Geometry, Recurrence, Window
from selfhost.shapes.host import Known, Unknown

BASE: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 32000,
    "num_key_value_heads": 8,
}  # fmt: skip


def found(**change: Any) -> Geometry:
    raw = {name: value for name, value in (BASE | change).items() if value is not None}
    fact = geometry_of(Fields(raw, Path("config.json")), raw)
    assert isinstance(fact, Known)
    return fact.value


def refusal(**change: Any) -> InputError:
    with pytest.raises(InputError) as refused:
        found(**change)
    assert refused.value.id == "MD031"
    assert refused.value.exit_code == 2
    return refused.value


def counts(shape: Geometry) -> tuple[int, int, int]:
    return shape.full_layers, shape.sliding_layers, shape.linear_layers


# model_type, layers, what else → full, windowed: the layer_types that transformers 5.19 makes of it
PATTERNS = [
    ("gemma2", 26, {"sliding_window": 4096}, (13, 13)),
    ("gemma2", 27, {"sliding_window": 4096}, (13, 14)),  # the first one slides
    ("gemma3_text", 26, {"sliding_window": 4096}, (4, 22)),
    ("gemma3n_text", 35, {"sliding_window": 512}, (7, 28)),
    ("gemma4_text", 30, {"sliding_window": 512}, (5, 25)),
    ("gpt_oss", 36, {"sliding_window": 128}, (18, 18)),
    ("llama4_text", 48, {"attention_chunk_size": 8192}, (12, 36)),
    ("cohere2", 40, {"sliding_window": 4096}, (10, 30)),
    ("exaone4", 32, {"sliding_window": 4096}, (8, 24)),
    ("exaone4", 32, {"sliding_window": 4096, "sliding_window_pattern": "LLLG"}, (8, 24)),
    ("olmo3", 32, {"sliding_window": 4096}, (8, 24)),
    ("afmoe", 32, {"sliding_window": 1024}, (8, 24)),
    ("mistral", 32, {"sliding_window": 4096, "max_position_embeddings": 32768}, (0, 32)),
    ("mistral", 32, {"sliding_window": None}, (32, 0)),
    ("mistral", 32, {"sliding_window": 0}, (32, 0)),
    ("mistral", 32, {"sliding_window": -1}, (32, 0)),
    ("phi3", 32, {"sliding_window": 262144, "max_position_embeddings": 131072}, (32, 0)),
    ("dots1", 62, {"sliding_window": 4096, "max_window_layers": 62}, (62, 0)),
    ("mimo_v2_flash", 4, {"sliding_window": 128, "hybrid_layer_pattern": [0, 1, 1, 1]}, (1, 3)),
]


@pytest.mark.parametrize(("kind", "layers", "change", "expected"), PATTERNS)
def test_windows_follow_the_familys_pattern(
    kind: str, layers: int, change: dict[str, Any], expected: tuple[int, int]
) -> None:
    shape = found(model_type=kind, num_hidden_layers=layers, **change)
    assert (shape.full_layers, shape.sliding_layers) == expected
    assert shape.exact


def test_a_window_is_told_with_its_kind() -> None:
    chunked = found(model_type="llama4_text", num_hidden_layers=48, attention_chunk_size=8192)
    assert (chunked.window, chunked.window_kind) == (8192, Window.CHUNKED)
    command = found(model_type="cohere2", num_hidden_layers=40, sliding_window=4096)
    assert (command.window, command.window_kind) == (4097, Window.SLIDING)  # vLLM commandr.py adds the token itself
    assert found().window == 0


def test_layers_that_borrow_a_cache_are_counted_in_the_network_only() -> None:
    shape = found(model_type="gemma3n_text", num_hidden_layers=35, sliding_window=512, num_kv_shared_layers=15)
    # the first 20 layers own one: every fifth is full
    assert (shape.layers, *counts(shape)) == (35, 4, 16, 0)
    assert shape.exact
    foreign = found(num_kv_shared_layers=15)
    assert (foreign.full_layers, foreign.exact) == (17, False)


def test_full_layers_with_other_heads() -> None:
    types = (["sliding_attention"] * 5 + ["full_attention"]) * 5
    common = {"model_type": "gemma4_text", "num_hidden_layers": 30, "layer_types": types, "sliding_window": 1024,
              "num_attention_heads": 16, "head_dim": 256, "global_head_dim": 512}  # fmt: skip
    plain = found(**common, num_global_key_value_heads=2)
    assert (plain.kv_heads, plain.head_dim, plain.full_kv_heads, plain.full_head_dim) == (8, 256, 8, 512)
    shared = found(**common, num_global_key_value_heads=2, attention_k_eq_v=True)
    assert (shared.full_kv_heads, shared.full_head_dim) == (2, 512)
    newer = found(**{**common, "global_head_dim": None}, per_layer_config={"05": {"head_dim": 512}})
    assert (newer.full_kv_heads, newer.full_head_dim) == (8, 512)


def test_narrow_values_and_other_windowed_heads_of_mimo() -> None:
    shape = found(
        model_type="mimo_v2_flash", num_attention_heads=64, head_dim=192, v_head_dim=128, num_key_value_heads=4,
        swa_num_key_value_heads=8, swa_head_dim=192, sliding_window=128, hybrid_layer_pattern=[0] + [1] * 31,
    )  # fmt: skip
    assert (shape.kv_heads, shape.full_kv_heads, shape.head_dim, shape.v_head_dim) == (8, 4, 192, 128)


@pytest.mark.parametrize(
    ("change", "kv", "dim"),
    [
        ({"model_type": "falcon", "multi_query": True, "num_attention_heads": 71, "hidden_size": 4544,
          "num_key_value_heads": None}, 1, 64),
        ({"model_type": "falcon", "multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 8,
          "num_attention_heads": 64, "hidden_size": 8192, "num_key_value_heads": None}, 8, 128),
        ({"model_type": "chatglm", "multi_query_group_num": 2, "kv_channels": 128, "num_key_value_heads": None},
         2, 128),
        ({"model_type": "dbrx", "attn_config": {"kv_n_heads": 8}, "num_key_value_heads": None}, 8, 128),
        ({"num_key_value_heads": None}, 32, 128),
        ({"head_dim": 256}, 8, 256),
        ({"head_dim": 0}, 8, 128),
        ({"model_type": "minicpm3", "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
          "num_attention_heads": 40, "hidden_size": 2560, "num_key_value_heads": 40}, 40, 96),
    ],
)  # fmt: skip
def test_heads_are_read_in_every_spelling(change: dict[str, Any], kv: int, dim: int) -> None:
    shape = found(**change)
    assert (shape.kv_heads, shape.head_dim) == (kv, dim)
    assert shape.exact


def test_compressed_attention_with_its_indexer() -> None:
    widths = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
              "q_lora_rank": 1536}  # fmt: skip
    shape = found(model_type="deepseek_v32", index_head_dim=128, **widths)
    assert shape.latent is not None
    assert (shape.latent.indexer_bytes, shape.latent.q_rank) == (132, 1536)  # 128 of FP8 and one float32 scale
    assert (shape.kv_heads, shape.head_dim, shape.exact) == (1, 576, True)
    strange = found(model_type="llama", **widths)
    assert (strange.head_dim, strange.exact) == (576, False)
    assert "compresses" in strange.note


def test_blocks_without_attention_keep_no_cache() -> None:
    blocks = [
        {"attention": {"no_op": place % 2 == 1, "n_heads_in_group": None if place % 2 else 8}} for place in range(32)
    ]
    shape = found(model_type="nemotron-nas", num_key_value_heads=None, block_configs=blocks)
    assert (shape.full_layers, shape.layers, shape.kv_heads) == (16, 32, 4)  # 32 heads in groups of 8


# model_type, fields → kind, heads, head_dim, state, groups or key heads, kernel, bytes; counts of layers
STATES = [
    ({"model_type": "jamba", "attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4,
      "mamba_expand": 2, "num_hidden_layers": 32},
     (Recurrence.MAMBA1, 8192, 1, 16, 0, 4, 2), (4, 0, 28)),
    ({"model_type": "bamba", "attn_layer_indices": [9, 18, 27], "mamba_n_heads": 128, "mamba_d_head": 64,
      "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_n_groups": 1},
     (Recurrence.MAMBA2, 128, 64, 256, 1, 4, 2), (3, 0, 29)),
    ({"model_type": "falcon_h1", "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_d_ssm": 1536, "mamba_d_state": 256,
      "mamba_n_groups": 1, "mamba_d_conv": 4},
     (Recurrence.MAMBA2, 24, 64, 256, 1, 4, 2), (32, 0, 32)),
    ({"model_type": "zamba2", "layers_block_type": (["mamba"] * 5 + ["hybrid"]) * 9, "num_hidden_layers": 54,
      "n_mamba_heads": 80, "mamba_headdim": 64, "mamba_d_state": 64, "mamba_ngroups": 1, "mamba_d_conv": 4,
      "mamba_expand": 2, "hidden_size": 2560, "attention_head_dim": 160, "num_key_value_heads": 32},
     (Recurrence.MAMBA2, 80, 64, 64, 1, 4, 2), (9, 0, 54)),
    ({"model_type": "mamba2", "num_attention_heads": None, "num_heads": 128, "head_dim": 64, "state_size": 128,
      "n_groups": 8, "expand": 2, "conv_kernel": 4},
     (Recurrence.MAMBA2, 128, 64, 128, 8, 4, 2), (0, 0, 32)),
    ({"model_type": "falcon_mamba", "num_attention_heads": None, "intermediate_size": 8192, "state_size": 16,
      "conv_kernel": 4},
     (Recurrence.MAMBA1, 8192, 1, 16, 0, 4, 2), (0, 0, 32)),
    ({"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*M-ME" * 4, "mamba_num_heads": 128,
      "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4},
     (Recurrence.MAMBA2, 128, 64, 128, 8, 4, 4), (4, 0, 16)),
    ({"model_type": "qwen3_5_text", "full_attention_interval": 4, "linear_num_value_heads": 48,
      "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
      "linear_conv_kernel_dim": 4, "mamba_ssm_dtype": "float32"},
     (Recurrence.GDN, 48, 128, 128, 16, 4, 4), (8, 0, 24)),
    ({"model_type": "minimax_text_01", "attn_type_list": [0, 0, 0, 1] * 8, "head_dim": 128},
     (Recurrence.LIGHTNING, 32, 128, 128, 32, 1, 2), (8, 0, 24)),
    ({"model_type": "lfm2_moe", "layer_types": ["conv", "conv", "full_attention", "conv"] * 8, "conv_L_cache": 3},
     (Recurrence.CONV, 0, 4096, 0, 0, 3, 2), (8, 0, 24)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "state", "layers"), STATES, ids=lambda one: one.get("model_type", "") if isinstance(one, dict) else ""
)
def test_recurrent_states_are_laid_out_as_the_engine_does(
    change: dict[str, Any], state: tuple[Any, ...], layers: tuple[int, int, int]
) -> None:
    shape = found(**change)
    one = shape.state
    assert one is not None
    assert (
        one.kind,
        one.heads,
        one.head_dim,
        one.state,
        one.groups or one.key_heads,
        one.kernel,
        one.ssm_bytes,
    ) == state
    assert counts(shape) == layers
    assert shape.exact


def test_a_state_of_unknown_size_is_said() -> None:
    shape = found(model_type="qwen3_next", full_attention_interval=4)
    assert (shape.state, shape.exact) == (None, False)
    assert "recurrent state" in shape.note


# fields → count, top_k, inter, shared, sparse layers of 32
EXPERTS = [
    ({"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "intermediate_size": 6144,
      "decoder_sparse_step": 1, "mlp_only_layers": [0, 1]}, (128, 8, 768, 0, 30)),
    ({"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
      "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 2}, (60, 4, 1408, 5632, 16)),
    ({"n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1,
      "first_k_dense_replace": 3, "moe_layer_freq": 1}, (256, 8, 2048, 2048, 29)),
    ({"num_local_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 14336}, (8, 2, 14336, 0, 32)),
    ({"model_type": "llama4_text", "num_local_experts": 128, "num_experts_per_tok": 1, "intermediate_size": 8192,
      "intermediate_size_mlp": 16384, "interleave_moe_layer_step": 2}, (128, 1, 8192, 8192, 16)),
    ({"model_type": "jamba", "num_experts": 16, "num_experts_per_tok": 2, "intermediate_size": 14336,
      "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 8}, (16, 2, 14336, 0, 16)),
    ({"moe_num_experts": 64, "moe_k": 6, "moe_intermediate_size": 1536, "moe_num_shared_experts": 2,
      "moe_layer_start_index": 1, "moe_layer_end_index": 31, "moe_layer_interval": 1}, (64, 6, 1536, 3072, 31)),
    ({"num_experts": 64, "num_experts_per_tok": 6, "moe_intermediate_size": 1024, "num_dense_layers": 2},
     (64, 6, 1024, 0, 30)),
    ({"num_experts": 64, "moe_topk": [8] * 32, "moe_intermediate_size": [3072] * 32, "num_shared_expert": [1] * 32},
     (64, 8, 3072, 3072, 32)),
    ({"n_routed_experts": 288, "num_experts_per_tok": 8, "moe_intermediate_size": 1280, "share_expert_dim": 1280,
      "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 29}, (288, 8, 1280, 1280, 29)),
    ({"n_routed_experts": 64, "num_experts_per_tok": 4, "moe_intermediate_size": 512,
      "moe_layer_freq": [0] + [1] * 31}, (64, 4, 512, 0, 31)),
    ({"model_type": "dbrx", "ffn_config": {"moe_num_experts": 16, "moe_top_k": 4, "ffn_hidden_size": 10752}},
     (16, 4, 10752, 0, 32)),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), EXPERTS)
def test_experts_are_counted_where_they_are(change: dict[str, Any], expected: tuple[int, ...]) -> None:
    count, top_k, inter, shared, layers = expected
    assert found(**change).experts == Experts(count=count, top_k=top_k, inter=inter, shared_inter=shared, layers=layers)


@pytest.mark.parametrize("change", [{"num_experts": 0}, {"num_experts": 1}, {"num_local_experts": None},
                                    {"num_experts": 128, "enable_moe_block": False}])  # fmt: skip
def test_a_dense_model_has_no_experts(change: dict[str, Any]) -> None:
    assert found(**change).experts is None


def test_per_layer_embeddings_towers_and_draft_heads_are_marked() -> None:
    raw = {"vision_config": {"depth": 27}, "text_config": {}}
    text = BASE | {"model_type": "gemma3n_text", "hidden_size_per_layer_input": 256, "sliding_window": 512,
                   "vocab_size_per_layer_input": 262144, "num_nextn_predict_layers": 1}  # fmt: skip
    fact = geometry_of(Fields(text, Path("config.json")), raw)
    assert isinstance(fact, Known)
    assert fact.value.layer_embeddings == 262144 * 256 * 32
    assert (fact.value.vision, fact.value.mtp_layers, fact.value.tie) == (1, 1, True)


def test_what_a_nested_config_leaves_out_is_transformers_own_and_said_so() -> None:
    # google/gemma-3-4b-it writes six fields; transformers fills in 8 heads, 4 KV heads of 256 and 262,208 tokens
    short = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024}
    text, how = completed(Fields(short, Path("config.json")))
    fact = geometry_of(text, {"text_config": short}, how=how)
    assert isinstance(fact, Known)
    shape = fact.value
    assert (shape.heads, shape.kv_heads, shape.head_dim, shape.vocab) == (8, 4, 256, 262208)
    assert "transformers' own" in fact.how
    assert "num_attention_heads" in fact.how


def test_an_unknown_architecture_is_computed_and_marked() -> None:
    shape = found(model_type="brandnew_v9")
    assert (shape.full_layers, shape.exact) == (32, False)
    assert shape.note == "brandnew_v9 is in no table: computed as a plain transformer"
    assert not found(model_type=None).exact
    odd = found(layer_types=["full_attention", "holographic"] * 16)
    assert (odd.full_layers, odd.exact) == (32, False)
    assert "holographic" in odd.note


@pytest.mark.parametrize("kind", ["deepseek_v4", "mllama_text_model", "whisper", "kimi_k3", "qwen4_exp"])
def test_what_the_generic_form_does_not_describe_is_marked(kind: str) -> None:
    shape = found(model_type=kind, kv_lora_rank=512, qk_rope_head_dim=64)
    assert not shape.exact
    assert shape.note


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"num_hidden_layers": -3}, "num_hidden_layers is -3"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers is 1,000,000"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"hidden_size": "4096"}, 'hidden_size is "4096"'),
        ({"hidden_size": 4096.5}, "hidden_size is 4096.5"),
        ({"hidden_size": True}, "hidden_size is true"),
        ({"vocab_size": 10**12}, "vocab_size is 1,000,000,000,000"),
        ({"num_attention_heads": 33}, "no multiple of its 33 attention heads"),
        ({"num_key_value_heads": 64}, "32 attention heads over 64 KV heads"),
        ({"num_key_value_heads": 5}, "32 attention heads over 5 KV heads"),
        ({"num_key_value_heads": 0}, "0 KV heads"),
        ({"num_key_value_heads": -1}, "num_key_value_heads is -1"),
        ({"layer_types": ["full_attention"] * 31}, "lists 31 layers"),
        ({"num_kv_shared_layers": 32}, "num_kv_shared_layers is 32 of 32"),
        ({"num_experts": 8, "num_experts_per_tok": 9}, "9 of 8 experts"),
        ({"model_type": "deepseek_v3"}, "without kv_lora_rank"),
        ({"head_dim": {"a": 1}}, 'head_dim is {"a": 1}'),
    ],
)
def test_numbers_that_no_network_has_are_refused_by_name(change: dict[str, Any], word: str) -> None:
    assert word in refusal(**change).what


def test_whole_numbers_written_as_floats_are_read() -> None:
    assert found(num_hidden_layers=32.0).layers == 32


@pytest.mark.parametrize("name", ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"])
def test_a_missing_size_is_unknown_by_its_name(name: str) -> None:
    raw = {key: value for key, value in BASE.items() if key != name}
    assert geometry_of(Fields(raw, Path("config.json")), raw) == Unknown(f"config.json gives no {name}")


def test_a_network_of_states_without_their_sizes_is_unknown() -> None:
    raw = BASE | {"layer_types": ["linear_attention"] * 32}
    fact = geometry_of(Fields(raw, Path("config.json")), raw)
    assert isinstance(fact, Unknown)
    assert "recurrent state" in fact.reason


def test_an_absurd_value_is_shown_by_its_beginning() -> None:
    assert len(refusal(hidden_size=10**300).what) < 120


@pytest.mark.parametrize("named", [True, 5, ["llama"], {"a": 1}])
def test_a_model_type_that_is_no_text_is_none(named: object) -> None:
    assert "a model without model_type" in found(model_type=named).note
