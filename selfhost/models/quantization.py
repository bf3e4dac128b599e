"""What the weights of a checkpoint are stored in, by whichever tool wrote them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from selfhost.shapes.host import Fact, Known, Unknown
from selfhost.shapes.precision import short_name

_MXFP4_GROUP = 32
"""Values that share a scale in the Microscaling formats; NVFP4 has groups of 16."""
_REACH = {"channel": "per channel", "tensor": "per tensor", "block": "block", "per_channel": "per channel",
          "per_tensor": "per tensor", "per_block": "block"}  # fmt: skip
"""compressed-tensors and Quark on the left, the words of Model.quant_form on the right."""
_MODELOPT = {
    "FP8": ("fp8", "fp8", "per tensor"),
    "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", "fp8", "per channel"),
    "FP8_PB_WO": ("fp8", "fp8_block", "block"),
    "NVFP4": ("nvfp4", "nvfp4", ""),
    "NVFP4_AWQ": ("nvfp4", "nvfp4", ""),
    "W4A16_NVFP4": ("nvfp4", "nvfp4", ""),
    "MXFP8": ("mxfp8", "mxfp8", ""),
    "W4A16_AWQ": ("int4", "awq", ""),
    "INT4_AWQ": ("int4", "awq", ""),
    "W4A8_AWQ": ("int4", "awq", ""),
    "W8A16": ("int8", "int8", ""),
    "INT8_SQ": ("int8", "int8", ""),
    "MIXED_PRECISION": ("mixed", "mixed", ""),
}
"""Names of ModelOpt (vLLM 0.33.0: vllm/model_executor/layers/quantization/modelopt.py) → dtype, scheme, reach."""
_KV = {"fp8": "fp8", "fp8_e4m3": "fp8", "nvfp4": "nvfp4", "int8": "int8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """`scheme` is finer than `dtype`: `fp8_block` of fp8, `awq` of int4. `reach` is Model.quant_form."""

    dtype: Fact[str]
    scheme: str = ""
    reach: str = ""
    kv: str = ""
    """What the shipped scales for the KV cache are for; empty without any."""
    left_out: tuple[str, ...] = ()
    """Modules that stay in 16 bits, as the checkpoint names them."""


def stored_in(raw: Mapping[str, Any], text: Mapping[str, Any], beside: Mapping[str, Any]) -> Stored:
    """`beside` is hf_quant_config.json, which ModelOpt writes next to an unchanged config.json; empty without it."""
    plain = _plain(raw, text)
    for source, where in ((raw, "config.json"), (text, "config.json"), (beside, "hf_quant_config.json")):
        quantized = source.get("quantization_config") or source.get("compression_config")
        if not quantized and source is beside and beside:
            quantized = {"quant_method": "modelopt", **beside}
        if isinstance(quantized, dict) and quantized:
            return _quantized(quantized, where=f"{where}, quantization_config" if source is not beside else where)
    return Stored(dtype=plain, scheme=plain.value if isinstance(plain, Known) else "")


def _plain(raw: Mapping[str, Any], text: Mapping[str, Any]) -> Fact[str]:
    for source in (text, raw):
        for key in ("dtype", "torch_dtype"):
            name = source.get(key)
            if isinstance(name, str) and name:
                return Known(short_name(name), f"config.json, {key}")
    return Unknown("config.json names no dtype")


def _quantized(quantized: Mapping[str, Any], *, where: str) -> Stored:
    inner = quantized.get("quantization")
    flat = {**quantized, **inner} if isinstance(inner, dict) else dict(quantized)  # ModelOpt nests its own
    dtype, scheme, reach = _form(flat)
    if not dtype:
        return Stored(dtype=Unknown(f"{where} does not say what the weights are stored in"), kv=_kv(flat))
    return Stored(dtype=Known(dtype, where), scheme=scheme, reach=reach, kv=_kv(flat), left_out=tuple(_left_out(flat)))


def _form(quantized: Mapping[str, Any]) -> tuple[str, str, str]:
    """dtype, scheme and reach."""
    method = str(quantized.get("quant_method") or "").lower().replace("_", "-")
    algo = str(quantized.get("quant_algo") or "").upper()
    if algo:
        return _MODELOPT.get(algo, (algo.lower(), algo.lower(), ""))
    found = _of_groups(quantized) or _of_quark(quantized)
    if found:
        return found
    for signs, reader in _BY_METHOD:
        if any(sign in method for sign in signs):
            return reader(quantized, method)
    named = {"modelopt": "fp8", "modelopt-fp4": "nvfp4", "experts-int8": "int8"}.get(method, method)
    return named, named, ""


def _of_bitsandbytes(quantized: Mapping[str, Any], _method: str) -> tuple[str, str, str]:
    kind = "int4" if quantized.get("load_in_4bit") or quantized.get("_load_in_4bit") else "int8"
    return kind, kind, ""


def _of_fp8(quantized: Mapping[str, Any], method: str) -> tuple[str, str, str]:
    if quantized.get("weight_block_size"):
        return "fp8", "fp8_block", "block"
    channel = method in ("fbgemm-fp8", "ptpc-fp8")
    return "fp8", "fp8", "per channel" if channel else "per tensor"


def _of_bits(quantized: Mapping[str, Any], method: str) -> tuple[str, str, str]:
    bits = quantized.get("bits") or quantized.get("w_bit") or quantized.get("weight_bits")
    scheme = "awq" if "awq" in method else "gptq"
    return (f"int{bits}", scheme if bits == 4 else f"int{bits}", "") if isinstance(bits, int) else ("", "", "")


def _of_torchao(quantized: Mapping[str, Any], _method: str) -> tuple[str, str, str]:
    named = str(quantized.get("quant_type") or "").lower()
    for sign, dtype in (("float8", "fp8"), ("fp8", "fp8"), ("int4", "int4"), ("int8", "int8")):
        if sign in named:
            return dtype, dtype, "per channel" if dtype == "fp8" else ""
    return "", "", ""


_BY_METHOD: tuple[tuple[tuple[str, ...], Callable[[Mapping[str, Any], str], tuple[str, str, str]]], ...] = (
    (("gptq", "awq", "auto-round", "inc"), _of_bits),
    (("bitsandbytes",), _of_bitsandbytes),
    (("torchao",), _of_torchao),
    (("fp8",), _of_fp8),
)
"""By a part of the method's name, the first that fits."""


def _of_groups(quantized: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """compressed-tensors: groups of layers, each with its own form; the smallest one names the checkpoint."""
    groups = quantized.get("config_groups")
    if not isinstance(groups, dict):
        return None
    found = [_of_weights(weights) for weights in _weights_of(groups)]
    return min((one for one in found if one[0]), key=lambda one: _narrow(one[0]), default=None)


def _weights_of(groups: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for group in groups.values():
        weights = group.get("weights") if isinstance(group, dict) else None
        if isinstance(weights, dict):
            yield weights


def _narrow(dtype: str) -> int:
    return 4 if "4" in dtype else 8


def _of_weights(weights: Mapping[str, Any]) -> tuple[str, str, str]:
    bits, is_float = weights.get("num_bits"), weights.get("type") == "float"
    strategy, size = str(weights.get("strategy") or ""), weights.get("group_size")
    if not isinstance(bits, int):
        return "", "", ""
    if is_float and bits == 4:
        kind = "mxfp4" if size == _MXFP4_GROUP else "nvfp4"
        return kind, kind, ""
    if is_float:
        if size == _MXFP4_GROUP:
            return "mxfp8", "mxfp8", ""
        reach = _REACH.get(strategy, "")
        return f"fp{bits}", "fp8_block" if reach == "block" else f"fp{bits}", reach
    return f"int{bits}", f"int{bits}", ""


def _of_quark(quantized: Mapping[str, Any]) -> tuple[str, str, str] | None:
    whole = quantized.get("global_quant_config")
    weight = whole.get("weight") if isinstance(whole, dict) else None
    if isinstance(weight, list):  # two steps: the last one is what is stored
        weight = weight[-1] if weight and isinstance(weight[-1], dict) else None
    if not isinstance(weight, dict):
        return None
    name, reach = str(weight.get("dtype") or ""), _REACH.get(str(weight.get("qscheme") or ""), "")
    if name.startswith("fp8"):
        return "fp8", "fp8", reach
    if name.startswith("fp4"):
        kind = "mxfp4" if weight.get("group_size") == _MXFP4_GROUP else "nvfp4"
        return kind, kind, ""
    short = name.removeprefix("u")
    return (short, short, "") if short.startswith("int") else (name, name, "")


def _kv(quantized: Mapping[str, Any]) -> str:
    """What shipped scales of the KV cache make of it; engines then round it without being asked."""
    scheme = quantized.get("kv_cache_scheme") or quantized.get("kv_cache_quant_algo")
    if isinstance(scheme, dict):
        kind = f"{scheme.get('type')}{scheme.get('num_bits')}"
        return {"float8": "fp8", "float4": "nvfp4", "int8": "int8"}.get(kind, "")
    if isinstance(scheme, str):
        return _KV.get(scheme.lower(), "")
    exported = quantized.get("export")
    group = exported.get("kv_cache_group") if isinstance(exported, dict) else None
    return "fp8" if group or quantized.get("kv_cache_quant_config") else ""


def _left_out(quantized: Mapping[str, Any]) -> Iterator[str]:
    for name in ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude"):
        listed = quantized.get(name)
        if isinstance(listed, list):
            yield from (one for one in listed if isinstance(one, str))
