"""How many tokens a network takes, with what its RoPE scaling makes of them; as vLLM 0.33.0 derives it.

Source: vllm/config/model.py, _get_and_verify_max_len; vllm/transformers_utils/model_arch_config_convertor.py.
"""

from collections.abc import Iterator
from typing import Any

from selfhost.models.fields import Fields
from selfhost.shapes.host import Fact, Known, Unknown

_NAMES = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "max_target_positions",
    "max_sequence_length", "max_seq_length", "seq_len", "n_ctx",
)  # fmt: skip
_COUNTED = ("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling")
"""RoPE scalings whose factor is in max_position_embeddings already."""
_MOST = 10**9


def native_context(text: Fields) -> Fact[int]:
    """Tokens that need no further flag. Raises InputError (MD031) for what is no length."""
    given = {name: count for name in _NAMES if (count := text.number(name, limit=_MOST))}
    if not given:
        return Unknown(f"config.json gives none of {', '.join(_NAMES[:6])}")
    own = text.number("model_max_length", limit=_MOST)
    name = "model_max_length" if own else min(given, key=lambda one: given[one])
    length = given[name]
    scalings = [one for one in _scalings(text.raw) if _kind(one) not in ("", "default", "mrope")]
    if not scalings or "gemma3" in text.model_type:  # Gemma 3 writes the scaled length although it names a factor
        return Known(length, "config.json")
    scaling = scalings[-1]
    kind, factor = _kind(scaling), scaling.get("factor")
    if kind in _COUNTED:
        return Known(length, f"config.json, {kind_words(text, scaling)}")
    if isinstance(factor, int | float) and not isinstance(factor, bool) and 0 < factor <= 1024:
        return Known(int(length * factor), f"config.json, RoPE scaling {kind} by {factor:g}")
    return Known(length, "config.json")


def kind_words(text: Fields, scaling: dict[str, Any]) -> str:
    """`RoPE scaling yarn from 32,768`: what was trained, where the config says it."""
    before = Fields(scaling, text.path).number("original_max_position_embeddings", limit=_MOST) or text.number(
        "original_max_position_embeddings", limit=_MOST
    )
    return f"RoPE scaling {_kind(scaling)}" + (f" from {before:,}" if before else "")


def _scalings(raw: Any) -> Iterator[dict[str, Any]]:
    """One for all layers, or one for each kind of layer."""
    for name in ("rope_scaling", "rope_parameters"):
        value = raw.get(name)
        if isinstance(value, dict) and value:
            if "rope_type" in value or "type" in value or "factor" in value:
                yield value
            else:
                yield from (one for one in value.values() if isinstance(one, dict))


def _kind(scaling: dict[str, Any]) -> str:
    return str(scaling.get("rope_type") or scaling.get("type") or "")
