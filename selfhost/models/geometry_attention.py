"""Heads and their widths: plain, grouped, compressed, or different on full and on windowed layers."""

from dataclasses import dataclass

from selfhost.models.architectures import Architecture
from selfhost.models.fields import Fields
from selfhost.shapes.geometry import Latent

_KV_HEADS = (
    "n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups", "kv_n_heads",
)  # fmt: skip
"""vLLM 0.33.0: vllm/transformers_utils/config.py, CONFIG_FIELD_ALIASES."""
_QUANT_BLOCK = 128
"""Values of the indexer's cache that share a float32 (vLLM 0.33.0: vllm/model_executor/models/deepseek_v2.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """As in Geometry; `note` says why the widths are only near."""

    kv: int
    dim: int
    value_dim: int = 0
    full_kv: int = 0
    full_dim: int = 0
    latent: Latent | None = None
    note: str = ""


def heads_of(text: Fields, row: Architecture, *, heads: int, hidden: int) -> Heads:
    """Raises InputError where the numbers cannot be a network's."""
    if row.attention == "none":
        return Heads(kv=0, dim=0)
    rank = text.number("kv_lora_rank")
    if row.attention == "expanded" and rank:
        return Heads(kv=heads, dim=text.number("qk_nope_head_dim") + text.number("qk_rope_head_dim"))
    if rank:
        return _compressed(text, row, rank)
    if row.attention == "latent":
        raise text.nonsense(f"model_type {text.model_type} without kv_lora_rank", "It is the width of its cache.")
    return _plain(text, heads=heads, hidden=hidden)


def _compressed(text: Fields, row: Architecture, rank: int) -> Heads:
    """One head of the compressed width for all (DeepSeek-V2 report, §2.1)."""
    rope, index = text.number("qk_rope_head_dim"), text.number("index_head_dim")
    latent = Latent(
        rank=rank,
        rope=rope,
        nope=text.number("qk_nope_head_dim"),
        value=text.number("v_head_dim"),
        q_rank=text.number("q_lora_rank"),
        indexer_bytes=index + index // _QUANT_BLOCK * 4,
    )
    note = "" if row.attention == "latent" else f"a {text.model_type or 'nameless type'} that compresses its cache"
    if "shared" in text.words("indexer_types"):
        note = "some of its layers share the cache of their indexer"
    return Heads(kv=1, dim=rank + rope, latent=latent, note=note)


def _plain(text: Fields, *, heads: int, hidden: int) -> Heads:
    kv, note = _kv_heads(text, heads)
    dim = text.number("head_dim", "hidden_size_per_head", "attention_head_dim", "kv_channels")
    if not dim and hidden % heads:
        raise text.nonsense(
            f"hidden_size {hidden:,} is no multiple of its {heads} attention heads",
            "Without head_dim each head gets an equal part of it.",
        )
    dim = dim or hidden // heads
    if kv > heads or heads % kv:
        raise text.nonsense(
            f"{heads} attention heads over {kv} KV heads",
            "Each KV head serves the same number of attention heads.",
        )
    window_kv, window_dim = text.number("swa_num_key_value_heads"), text.number("swa_head_dim")
    if window_kv or window_dim:  # MiMo-V2: the plain names are those of the full layers
        return Heads(
            kv=window_kv or kv, dim=window_dim or dim, value_dim=_value_dim(text, dim), full_kv=kv, full_dim=dim,
        )  # fmt: skip
    full_kv, full_dim = _of_full_layers(text, kv=kv)
    if full_kv or full_dim:
        return Heads(kv=kv, dim=dim, full_kv=full_kv or kv, full_dim=full_dim or dim)
    return Heads(kv=kv, dim=dim, value_dim=_value_dim(text, dim), note=note)


def _value_dim(text: Fields, dim: int) -> int:
    value = text.number("v_head_dim")
    return value if value != dim else 0


def _of_full_layers(text: Fields, *, kv: int) -> tuple[int, int]:
    """Gemma 4: wider heads, and fewer of them where keys serve as values; 0 where they are as the others."""
    dim = text.number("global_head_dim")
    global_kv = text.number("num_global_key_value_heads") if text.raw.get("attention_k_eq_v") else 0
    layers = text.raw.get("per_layer_config")
    if not dim and isinstance(layers, dict) and layers:
        one = Fields(next((value for value in layers.values() if isinstance(value, dict)), {}), text.path)
        dim, global_kv = one.number("head_dim"), one.number("num_key_value_heads") or global_kv
    return (global_kv or kv, dim) if dim else (0, 0)


def _kv_heads(text: Fields, heads: int) -> tuple[int, str]:
    """Their number, and why it is only near."""
    if text.raw.get("new_decoder_architecture") is not True and text.raw.get("multi_query") is True:
        return 1, ""  # Falcon 7B and StarCoder
    blocks = text.raw.get("block_configs")
    if isinstance(blocks, list):
        found = {heads // group for group in map(_group, blocks) if group and group <= heads}
        return (max(found), "" if len(found) == 1 else "its layers differ in their KV heads") if found else (heads, "")
    found_here = text.number(*_KV_HEADS) or text.inner("attn_config").number(*_KV_HEADS)
    if not found_here and any(text.raw.get(name) == 0 for name in _KV_HEADS):
        raise text.nonsense("0 KV heads", "Attention needs at least one.")
    return found_here or heads, ""


def _group(block: object) -> int:
    """Attention heads that share one KV head in a block of Nemotron-NAS; 0 without attention."""
    attention = block.get("attention") if isinstance(block, dict) else None
    size = attention.get("n_heads_in_group") if isinstance(attention, dict) else None
    return size if isinstance(size, int) and size > 0 else 0
