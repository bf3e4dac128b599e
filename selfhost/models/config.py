"""A model's own description: config.json and its neighbours → geometry, precision, context, chat template."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfhost.core.errors import InputError
from selfhost.models import folder as folders
from selfhost.shapes.finding import Place
from selfhost.shapes.host import Fact, Known, Unknown
from selfhost.shapes.model import Geometry
from selfhost.shapes.precision import short_name

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_FULL = {"full_attention", "attention", "global_attention", "full", "global"}
_SLIDING = {"sliding_attention", "chunked_attention", "local_attention", "sliding", "local", "swa"}
_CARRYING = ("yarn", "linear", "dynamic")
"""RoPE scalings that lengthen the context beyond max_position_embeddings; the others are already counted in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the files of one model say. `template` is empty when there is none."""

    model_type: str
    architectures: tuple[str, ...]
    geometry: Fact[Geometry]
    dtype: Fact[str]
    context_native: Fact[int]
    remote_code: bool
    template: str


def read(folder: str | Path) -> Config:
    """Read a model's directory. Raises InputError (MD003 to MD006) when it is not one."""
    root = Path(folder)
    folders.check_is_model(root)
    raw = _read_object(root / "config.json")
    text = _text_part(raw)
    return Config(
        model_type=str(text.get("model_type") or raw.get("model_type") or ""),
        architectures=_architectures(raw, text),
        geometry=_geometry(text),
        dtype=_dtype(raw, text),
        context_native=_context(text),
        remote_code=bool(raw.get("auto_map")),
        template=_template(root),
    )


def _read_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file that must be one."""
    try:
        raw = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not JSON",
            why=f"The parser stopped: {error}. The download may have been cut, or a web page was saved instead.",
            fix=("fetch the file again from where the model came from",),
            evidence=path.read_bytes()[:200].decode("utf-8", "replace"),
            id="MD004",
            place=Place(path=str(path), line=getattr(error, "lineno", None)),
        ) from None
    if not isinstance(raw, dict):
        raise InputError(
            f"{path} holds a JSON {_word(raw)}, expected an object",
            why="config.json describes the network as named values.",
            fix=("fetch the file again from where the model came from",),
            id="MD004",
            place=Place(path=str(path)),
        )
    return raw


def _word(value: object) -> str:
    if value is None:
        return "null"
    return {list: "array", str: "string", bool: "boolean"}.get(type(value), "number")


def _text_part(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The language model inside a multimodal config, with what the outer level alone says behind it."""
    for name in _NESTED:
        inner = raw.get(name)
        if isinstance(inner, dict):
            return {**_scalars(raw), **_text_part(inner)}
    return dict(raw)


def _scalars(raw: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("torch_dtype", "dtype", "quantization_config", "vocab_size", "max_position_embeddings")
    return {name: raw[name] for name in kept if raw.get(name) is not None}


def _architectures(raw: Mapping[str, Any], text: Mapping[str, Any]) -> tuple[str, ...]:
    named = raw.get("architectures") or text.get("architectures") or ()
    return tuple(str(name) for name in named) if isinstance(named, list) else ()


def _number(text: Mapping[str, Any], *names: str) -> int | None:
    """The first of `names` that is a positive whole number (transformers spells the same thing in several ways)."""
    for name in names:
        value = text.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _geometry(text: Mapping[str, Any]) -> Fact[Geometry]:
    layers = _number(text, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    hidden = _number(text, "hidden_size", "n_embd", "d_model", "dim")
    heads = _number(text, "num_attention_heads", "n_head", "n_heads", "num_heads")
    vocab = _number(text, "vocab_size")
    found = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads, "vocab_size": vocab}
    if layers is None or hidden is None or heads is None or vocab is None:
        missing = ", ".join(name for name, value in found.items() if value is None)
        return Unknown(f"config.json gives no {missing}")
    kv_heads, head_dim = _heads(text, heads=heads, hidden=hidden)
    kinds = _kinds(text, layers)
    linear = kinds["linear"]
    return Known(
        Geometry(
            layers=layers,
            full_layers=kinds["full"],
            sliding_layers=kinds["sliding"],
            linear_layers=linear,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            vocab=vocab,
            exact=linear == 0 and sum(kinds.values()) == layers and not _is_special(text),
        ),
        "config.json",
    )


def _heads(text: Mapping[str, Any], *, heads: int, hidden: int) -> tuple[int, int]:
    """KV heads and head size; with MLA one head of the compressed width (DeepSeek-V2 report, §2.1)."""
    rank = _number(text, "kv_lora_rank")
    if rank is not None:
        return 1, rank + (_number(text, "qk_rope_head_dim") or 0)
    kv_heads = _number(text, "num_key_value_heads", "num_kv_heads", "n_head_kv")
    if kv_heads is None:
        kv_heads = 1 if text.get("multi_query") else heads
    return kv_heads, _number(text, "head_dim", "attention_head_dim", "kv_channels") or hidden // heads


def _is_special(text: Mapping[str, Any]) -> bool:
    """Caches that the generic form does not describe: compressed, shared between layers, or of mixed head sizes."""
    special = ("kv_lora_rank", "num_kv_shared_layers", "global_head_dim", "num_global_key_value_heads", "block_configs")
    return any(text.get(name) for name in special) or bool(text.get("is_encoder_decoder"))


def _kinds(text: Mapping[str, Any], layers: int) -> Counter[str]:
    """How many layers keep a full, a windowed or a fixed-size (linear) cache."""
    listed = text.get("layer_types") or text.get("layers_block_type")
    if isinstance(listed, list):
        return Counter(_kind(str(name)) for name in listed)
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str):  # NemotronH: M Mamba-2, * attention, - and E have no cache
        return Counter(full=pattern.count("*"), linear=pattern.count("M"))
    interval = _number(text, "full_attention_interval")
    if interval is not None:  # Qwen3-Next: every fourth layer is full, the others Gated DeltaNet
        return Counter(full=layers // interval, linear=layers - layers // interval)
    full = _full_beside_windows(text, layers)
    return Counter(full=full, sliding=layers - full)


def _kind(name: str) -> str:
    return "full" if name in _FULL else "sliding" if name in _SLIDING else "linear"


def _full_beside_windows(text: Mapping[str, Any], layers: int) -> int:
    """Full layers of a model that says its window but not each layer."""
    if _number(text, "sliding_window") is None or text.get("use_sliding_window") is False:
        return layers
    kind = str(text.get("model_type") or "")
    if kind == "gemma2":  # every other layer, the first one sliding
        return layers // 2
    every = _number(text, "sliding_window_pattern", "_sliding_window_pattern")
    if every is None and kind.startswith("gemma3"):
        every = 6  # Gemma 3 report: five local layers for one global
    if every is not None:
        return layers // every
    if text.get("use_sliding_window") is True:  # Qwen2: the first max_window_layers stay full
        return min(layers, _number(text, "max_window_layers") or 0)
    return 0


def _dtype(raw: Mapping[str, Any], text: Mapping[str, Any]) -> Fact[str]:
    quantized = raw.get("quantization_config") or text.get("quantization_config")
    if isinstance(quantized, dict) and quantized:
        return Known(_quantized(quantized), "config.json, quantization_config")
    for source in (text, raw):
        for key in ("dtype", "torch_dtype"):
            name = str(source.get(key) or "")
            if name:
                return Known(short_name(name), f"config.json, {key}")
    return Unknown("config.json names no dtype")


def _quantized(quantized: Mapping[str, Any]) -> str:
    """`fp8`, `mxfp4`, `int4`…: what the weights are stored in, whatever the method is called."""
    method = str(quantized.get("quant_method") or quantized.get("quant_algo") or "quantized").lower().replace("_", "-")
    groups = quantized.get("config_groups")
    if isinstance(groups, dict) and groups:
        weights = next((group.get("weights") for group in groups.values() if isinstance(group, dict)), None)
        if isinstance(weights, dict) and weights.get("num_bits"):
            return f"{'fp' if weights.get('type') == 'float' else 'int'}{weights['num_bits']}"
    bits = quantized.get("bits") or quantized.get("w_bit") or quantized.get("weight_bits")
    if method in ("gptq", "awq", "auto-round") and isinstance(bits, int):
        return f"int{bits}"
    if method == "bitsandbytes":
        return "int4" if quantized.get("load_in_4bit") else "int8"
    return {"fbgemm-fp8": "fp8", "modelopt": "fp8", "modelopt-fp4": "nvfp4", "nvfp4": "nvfp4"}.get(method, method)


def _context(text: Mapping[str, Any]) -> Fact[int]:
    """Tokens that the network takes without further flags, as vLLM derives it."""
    names = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length", "seq_length")
    length = _number(text, *names, "model_max_length")
    if length is None:
        return Unknown(f"config.json gives none of {', '.join(names)}")
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    if not isinstance(scaling, dict) or str(text.get("model_type") or "").startswith("gemma3"):
        return Known(length, "config.json")  # Gemma 3 writes the scaled length although it names a factor
    kind, factor = str(scaling.get("rope_type") or scaling.get("type") or ""), scaling.get("factor")
    if kind not in _CARRYING or not isinstance(factor, int | float):
        return Known(length, "config.json")
    base = _number(scaling, "original_max_position_embeddings") if kind == "yarn" else length
    return Known(max(length, int((base or length) * factor)), f"config.json, RoPE scaling {kind} by {factor:g}")


def _template(root: Path) -> str:
    """The chat template; several named ones are read as their default."""
    own = root / "chat_template.jinja"
    if own.is_file():
        return own.read_text(encoding="utf-8", errors="replace")
    for name in ("chat_template.json", "tokenizer_config.json"):
        path = root / name
        if not path.is_file():
            continue
        template = _read_object(path).get("chat_template")
        if isinstance(template, str) and template:
            return template
        if isinstance(template, list):
            return _default_of(template)
    return ""


def _default_of(templates: Sequence[object]) -> str:
    named = {str(one.get("name")): str(one.get("template") or "") for one in templates if isinstance(one, dict)}
    return named.get("default") or next(iter(named.values()), "")
