"""config.json and its neighbours, as published models write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.models import config
from selfhost.shapes.host import Known, Unknown
from selfhost.shapes.model import Geometry

TINY = Path(__file__).parents[1] / "assets" / "tiny-reasoner"
BASE = {"num_hidden_layers": 28, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 151936}
QWEN3 = BASE | {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_key_value_heads": 8, "head_dim": 128,
    "max_position_embeddings": 40960, "torch_dtype": "bfloat16", "sliding_window": None, "use_sliding_window": False,
    "intermediate_size": 3072, "tie_word_embeddings": True,
}  # fmt: skip


def written(folder: Path, raw: object, **others: object) -> Path:
    (folder / "config.json").write_text(json.dumps(raw), encoding="utf-8")
    for name, value in others.items():
        text = value if isinstance(value, str) else json.dumps(value)
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def geometry(folder: Path, raw: dict[str, Any]) -> Geometry:
    found = config.read(written(folder, raw)).geometry
    assert isinstance(found, Known)
    return found.value


def test_a_dense_model_is_read_exactly(tmp_path: Path) -> None:
    said = config.read(written(tmp_path, QWEN3))
    assert said.geometry == Known(
        Geometry(
            layers=28,
            full_layers=28,
            hidden=1024,
            heads=16,
            kv_heads=8,
            head_dim=128,
            vocab=151936,
            intermediate=3072,
            tie=True,
        ),
        "config.json",
    )
    assert said.dtype == Known("bf16", "config.json, torch_dtype")
    assert said.context_native == Known(40960, "config.json")
    assert (said.architectures, said.remote_code) == (("Qwen3ForCausalLM",), False)


def test_the_tiny_reasoner_is_read_from_its_real_files() -> None:
    said = config.read(TINY)
    assert isinstance(said.geometry, Known)
    found = said.geometry.value
    assert (found.layers, found.full_layers, found.kv_heads, found.head_dim, found.exact) == (4, 4, 2, 32, True)
    assert said.context_native == Known(2048, "config.json")
    assert "enable_thinking" in said.template


def test_a_multimodal_config_is_read_through_its_text_part(tmp_path: Path) -> None:
    raw = {
        "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "torch_dtype": "bfloat16",
        "text_config": {
            "model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560, "num_attention_heads": 8,
            "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, "sliding_window": 1024,
            "max_position_embeddings": 131072, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        },
        "vision_config": {"num_hidden_layers": 27, "hidden_size": 1152},
    }  # fmt: skip
    said = config.read(written(tmp_path, raw))
    assert isinstance(said.geometry, Known)
    found = said.geometry.value
    assert (found.full_layers, found.sliding_layers) == (5, 29)  # every sixth of 34 layers is global
    assert said.context_native == Known(131072, "config.json")  # Gemma's factor is already in it
    assert said.dtype == Known("bf16", "config.json, torch_dtype")
    assert said.architectures == ("Gemma3ForConditionalGeneration",)


@pytest.mark.parametrize(
    ("change", "full", "sliding", "linear", "exact"),
    [
        ({"layer_types": ["sliding_attention", "full_attention"] * 14, "sliding_window": 512}, 14, 14, 0, True),
        ({"layer_types": ["sliding_attention", "full_attention"] * 14}, 14, 14, 0, False),
        ({"layer_types": ["linear_attention"] * 21 + ["full_attention"] * 7}, 7, 0, 21, False),
        ({"layers_block_type": ["mamba"] * 24 + ["attention"] * 4}, 4, 0, 24, False),
        ({"hybrid_override_pattern": "M-M*-" * 5 + "M-*"}, 6, 0, 11, False),
        ({"full_attention_interval": 4}, 7, 0, 21, False),
        ({"model_type": "gemma2", "sliding_window": 4096, "use_sliding_window": None}, 14, 14, 0, True),
        ({"model_type": "mistral", "sliding_window": 4096, "use_sliding_window": None}, 0, 28, 0, True),
        ({"sliding_window": 4096, "use_sliding_window": False}, 28, 0, 0, True),
        ({"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 21}, 21, 7, 0, True),
        ({"num_kv_shared_layers": 10}, 18, 0, 0, False),
    ],
)
def test_layers_are_counted_by_the_cache_they_keep(
    tmp_path: Path, change: dict[str, Any], full: int, sliding: int, linear: int, *, exact: bool
) -> None:
    found = geometry(tmp_path, QWEN3 | change)
    assert (found.full_layers, found.sliding_layers, found.linear_layers, found.exact) == (full, sliding, linear, exact)


def test_compressed_attention_is_one_head_of_the_compressed_width_and_not_exact(tmp_path: Path) -> None:
    found = geometry(tmp_path, QWEN3 | {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "head_dim": None})
    assert (found.kv_heads, found.head_dim, found.exact) == (1, 576, False)  # DeepSeek-V3: 576 values per token


def test_the_old_names_of_gpt2_are_understood(tmp_path: Path) -> None:
    found = geometry(tmp_path, {"n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024})
    assert (found.layers, found.hidden, found.kv_heads, found.head_dim) == (12, 768, 12, 64)
    assert config.read(tmp_path).context_native == Known(1024, "config.json")


def test_what_the_config_does_not_say_stays_unknown_with_its_name(tmp_path: Path) -> None:
    said = config.read(written(tmp_path, {"architectures": ["T"], "hidden_size": 8}))
    assert said.geometry == Unknown("config.json gives no num_hidden_layers, num_attention_heads, vocab_size")
    assert said.dtype == Unknown("config.json names no dtype")
    assert isinstance(said.context_native, Unknown)


@pytest.mark.parametrize(
    ("scaling", "tokens", "word"),
    [
        (
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
            40960,
            "RoPE scaling yarn from 32,768",
        ),
        ({"type": "linear", "factor": 2}, 81920, "RoPE scaling linear by 2"),
        ({"type": "dynamic", "factor": 2.0}, 81920, "RoPE scaling dynamic by 2"),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 40960, "from 8,192"),
        ({"type": "longrope", "long_factor": [1.0], "short_factor": [1.0]}, 40960, "RoPE scaling longrope"),
        ({"type": "su", "long_factor": [1.0]}, 40960, "RoPE scaling su"),
        ({"rope_type": "default"}, 40960, "config.json"),
        ({"type": "mrope", "mrope_section": [16, 24, 24]}, 40960, "config.json"),
        ({"rope_type": "linear", "factor": None}, 40960, "config.json"),
        ({"rope_type": "linear", "factor": 1e9}, 40960, "config.json"),
        ({"full_attention": {"rope_type": "linear", "factor": 2.0}, "sliding_attention": {"rope_type": "default"}},
         81920, "by 2"),
    ],
)  # fmt: skip
def test_the_context_is_the_one_that_the_engine_derives_and_its_scaling_is_said(
    tmp_path: Path, scaling: dict[str, Any], tokens: int, word: str
) -> None:
    # vLLM 0.33.0: vllm/config/model.py multiplies by the factor except for yarn, llama3 and longrope
    found = config.read(written(tmp_path, QWEN3 | {"rope_scaling": scaling})).context_native
    assert isinstance(found, Known)
    assert found.value == tokens
    assert word in found.how


@pytest.mark.parametrize(
    ("lengths", "tokens"),
    [
        ({"max_position_embeddings": 131072, "model_max_length": 8192}, 8192),
        ({"max_position_embeddings": 8192, "model_max_length": 131072}, 131072),  # Command R
        ({"max_position_embeddings": 4096, "max_seq_len": 2048}, 2048),
        ({"max_position_embeddings": None, "seq_length": 32768}, 32768),
    ],
)
def test_of_several_lengths_the_one_that_binds_counts(tmp_path: Path, lengths: dict[str, Any], tokens: int) -> None:
    found = config.read(written(tmp_path, QWEN3 | lengths)).context_native
    assert isinstance(found, Known)
    assert found.value == tokens


@pytest.mark.parametrize("length", [-1, 10**12, "long", 1.5])
def test_a_length_that_is_none_is_refused(tmp_path: Path, length: object) -> None:
    with pytest.raises(InputError, match="max_position_embeddings") as refused:
        config.read(written(tmp_path, QWEN3 | {"max_position_embeddings": length}))
    assert refused.value.id == "MD031"


def test_recommended_sampling_is_read_and_other_fields_are_left(tmp_path: Path) -> None:
    others = {"generation_config__json": {"temperature": 0.6, "top_k": 20, "do_sample": True, "eos_token_id": [1, 2]}}
    assert config.read(written(tmp_path, QWEN3, **others)).generation == {"temperature": 0.6, "top_k": 20}
    (tmp_path / "generation_config.json").unlink()
    assert config.read(tmp_path).generation == {}


def test_a_pointer_in_place_of_the_config_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 700\n")
    with pytest.raises(InputError, match="Git LFS pointer") as refused:
        config.read(tmp_path)
    assert refused.value.fix == (f"in the clone:\ngit -C {tmp_path} lfs pull",)


def test_the_quantization_file_that_modelopt_writes_beside_counts(tmp_path: Path) -> None:
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    stored = config.read(written(tmp_path, QWEN3, hf_quant_config__json=beside)).stored
    assert stored.dtype == Known("nvfp4", "hf_quant_config.json")
    assert stored.kv == "fp8"


def test_code_in_the_repository_is_noticed(tmp_path: Path) -> None:
    assert config.read(written(tmp_path, QWEN3 | {"auto_map": {"AutoModel": "m.py--M"}})).remote_code


@pytest.mark.parametrize(
    "others",
    [
        {"chat_template__jinja": "T"},
        {"tokenizer_config__json": {"chat_template": "T"}},
        {"chat_template__json": {"chat_template": "T"}},
        {
            "tokenizer_config__json": {
                "chat_template": [{"name": "rag", "template": "R"}, {"name": "default", "template": "T"}]
            }
        },
    ],
)
def test_the_chat_template_is_found_where_models_keep_it(tmp_path: Path, others: dict[str, Any]) -> None:
    assert config.read(written(tmp_path, QWEN3, **others)).template == "T"


def test_a_directory_without_config_is_refused_and_shows_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "weights.safetensors").touch()
    with pytest.raises(InputError, match=r"has no config\.json") as refused:
        config.read(tmp_path)
    assert refused.value.id == "MD003"
    assert "weights.safetensors" in refused.value.evidence


def test_a_model_one_folder_deeper_is_pointed_at(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    written(tmp_path / "inner", QWEN3)
    with pytest.raises(InputError) as refused:
        config.read(tmp_path)
    assert refused.value.fix == (f"perhaps {tmp_path / 'inner'}",)


@pytest.mark.parametrize(
    ("files", "id", "word"),
    [
        ([], "MD003", "is empty"),
        (["model.Q4_K_M.gguf"], "MD005", "GGUF"),
        (["adapter_config.json", "adapter_model.safetensors"], "MD006", "adapter"),
        (["params.json", "consolidated.safetensors", "tekken.json"], "MD032", "Mistral's own format"),
        (["params.json", "consolidated.00.pth"], "MD032", "Mistral's own format"),
    ],
)
def test_what_looks_like_a_model_and_is_none_is_called_by_its_name(
    tmp_path: Path, files: list[str], id: str, word: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=word) as refused:
        config.read(tmp_path)
    assert refused.value.id == id
    assert refused.value.fix


@pytest.mark.parametrize("text", ["", "{", "<!doctype html>", "[]", "null", '"x"', "\ufffd\x00"])
def test_a_config_that_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        config.read(tmp_path)
    assert refused.value.id == "MD004"


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(QWEN3).encode())
    assert isinstance(config.read(tmp_path).geometry, Known)


def test_a_file_is_no_model_and_a_gguf_file_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").touch()
    (tmp_path / "m.txt").touch()
    for name, expected in (("m.gguf", "MD005"), ("m.txt", "MD002"), ("nothing", "MD002")):
        with pytest.raises(InputError) as refused:
            config.read(tmp_path / name)
        assert refused.value.id == expected
