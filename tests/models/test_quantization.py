"""What the weights are stored in, as the tools that quantize write it."""

from typing import Any

import pytest

from selfhost.models.quantization import stored_in
from selfhost.shapes.host import Known, Unknown


def group(**weights: Any) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


# quantization_config → dtype, scheme, reach
STORED = [
    ({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}, "fp8", "fp8_block",
     "block"),
    ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8", "fp8", "per tensor"),
    ({"quant_method": "fbgemm_fp8"}, "fp8", "fp8", "per channel"),
    ({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}, "mxfp4", "mxfp4", ""),
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4", "awq", ""),
    ({"quant_method": "awq", "w_bit": 4}, "int4", "awq", ""),
    ({"quant_method": "gptq", "bits": 4, "desc_act": False}, "int4", "gptq", ""),
    ({"quant_method": "gptq", "bits": 8}, "int8", "int8", ""),
    ({"quant_method": "auto-round", "bits": 4, "group_size": 128}, "int4", "gptq", ""),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", "int4", ""),
    ({"quant_method": "bitsandbytes", "_load_in_8bit": True}, "int8", "int8", ""),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", "fp8", "per tensor"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", "nvfp4", ""),
    ({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, "fp8", "fp8_block", "block"),
    ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"}}, "fp8", "fp8",
     "per channel"),
    ({"quant_method": "modelopt_fp4"}, "nvfp4", "nvfp4", ""),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_channel"}}},
     "fp8", "fp8", "per channel"),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group",
                                                                  "group_size": 32}}}, "mxfp4", "mxfp4", ""),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "uint4"}}}, "int4", "int4", ""),
    ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Float8DynamicActivationFloat8WeightConfig"}}},
     "fp8", "fp8", "per channel"),
    ({"quant_method": "torchao", "quant_type": "int4_weight_only"}, "int4", "int4", ""),
    ({"quant_method": "exl3", "bits": 4.0}, "exl3", "exl3", ""),
    (group(num_bits=8, type="float", strategy="channel"), "fp8", "fp8", "per channel"),
    (group(num_bits=8, type="float", strategy="tensor"), "fp8", "fp8", "per tensor"),
    (group(num_bits=8, type="float", strategy="block", block_structure=[128, 128]), "fp8", "fp8_block", "block"),
    (group(num_bits=4, type="float", strategy="tensor_group", group_size=16), "nvfp4", "nvfp4", ""),
    (group(num_bits=4, type="float", strategy="group", group_size=32), "mxfp4", "mxfp4", ""),
    (group(num_bits=8, type="float", strategy="group", group_size=32), "mxfp8", "mxfp8", ""),
    (group(num_bits=4, type="int", strategy="group", group_size=128), "int4", "int4", ""),
    (group(num_bits=8, type="int", strategy="channel"), "int8", "int8", ""),
    ({"quant_method": "compressed-tensors", "config_groups": {
        "group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}},
        "group_1": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}}}, "nvfp4", "nvfp4", ""),
]  # fmt: skip


@pytest.mark.parametrize(("quantized", "dtype", "scheme", "reach"), STORED)
def test_a_quantized_checkpoint_is_named_by_what_it_is_stored_in(
    quantized: dict[str, Any], dtype: str, scheme: str, reach: str
) -> None:
    stored = stored_in({"torch_dtype": "bfloat16", "quantization_config": quantized}, {}, {})
    assert isinstance(stored.dtype, Known)
    assert (stored.dtype.value, stored.scheme, stored.reach) == (dtype, scheme, reach)


@pytest.mark.parametrize(
    ("quantized", "kv"),
    [
        (group(num_bits=8, type="float") | {"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8"),
        (group(num_bits=8, type="float") | {"kv_cache_scheme": None}, ""),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"num_bits": 4, "type": "float"}},
         "nvfp4"),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, "fp8"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}},
          "export": {"kv_cache_group": ["*k_proj", "*v_proj"]}}, "fp8"),
        ({"quant_method": "fp8"}, ""),
    ],
)  # fmt: skip
def test_shipped_scales_of_the_kv_cache_are_noticed(quantized: dict[str, Any], kv: str) -> None:
    assert stored_in({"quantization_config": quantized}, {}, {}).kv == kv


def test_a_nested_quantization_counts_and_an_empty_one_does_not() -> None:
    inner = {"quantization_config": group(num_bits=4, type="int", group_size=32)}
    assert stored_in({"torch_dtype": "bfloat16"}, inner, {}).scheme == "int4"
    plain = stored_in({"torch_dtype": "torch.float16", "quantization_config": {}}, {}, {})
    assert (plain.dtype, plain.scheme) == (Known("fp16", "config.json, torch_dtype"), "fp16")
    assert stored_in({}, {}, {}).dtype == Unknown("config.json names no dtype")


def test_the_older_key_of_compressed_tensors_is_read() -> None:
    assert stored_in({"compression_config": group(num_bits=8, type="int")}, {}, {}).scheme == "int8"


def test_modules_that_stay_16_bit_are_kept_by_name() -> None:
    quantized = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.embed_tokens", "lm_head"]}
    assert stored_in({"quantization_config": quantized}, {}, {}).left_out == ("model.embed_tokens", "lm_head")


@pytest.mark.parametrize(
    "quantized",
    [
        {"bits": "four", "quant_method": "gptq"},
        {"quant_method": "torchao", "quant_type": 7},
        {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": "8"}}}},
        {"quant_method": "compressed-tensors", "config_groups": []},
        {"quant_method": ["x"], "quant_algo": {}},
        {"quant_method": "quark", "global_quant_config": {"weight": []}},
        {"bits": 4},
    ],
)
def test_nonsense_is_no_crash(quantized: dict[str, Any]) -> None:
    stored_in({"quantization_config": quantized}, {}, {})
