"""A mixture of experts: how many, how wide, and in which layers."""

from selfhost.models.fields import Fields
from selfhost.shapes.geometry import Experts

_COUNT = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
_TOP_K = (
    "num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k", "top_k",
    "num_selected_experts",
)  # fmt: skip
"""vLLM 0.33.0: vllm/transformers_utils/config.py, CONFIG_FIELD_ALIASES."""
_INTER = (
    "moe_intermediate_size", "expert_intermediate_size", "expert_ffn_hidden_size", "expert_hidden_dim",
    "moe_ffn_hidden_size", "intermediate_size", "ffn_hidden_size",
)  # fmt: skip
_SHARED_COUNT = (
    "n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts",
)  # fmt: skip
_SHARED_INTER = ("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim")
"""All shared experts of a layer together."""


def experts_of(text: Fields, *, layers: int) -> Experts | None:
    """None for a dense model. Raises InputError for more experts at work than there are."""
    inner = text.inner("ffn_config")  # DBRX keeps them apart
    count, top_k = text.number(*_COUNT) or inner.number(*_COUNT), text.number(*_TOP_K) or inner.number(*_TOP_K)
    if count <= 1 or _switched_off(text):
        return None
    if top_k > count:
        raise text.nonsense(f"{top_k} of {count} experts at work", "A token cannot pass through more than there are.")
    inter = text.number(*_INTER) or inner.number(*_INTER)
    return Experts(
        count=count, top_k=top_k or 1, inter=inter, shared_inter=_shared(text, inter), layers=_sparse(text, layers)
    )


def _switched_off(text: Fields) -> bool:
    """Gemma 4 names experts in dense checkpoints too."""
    return text.raw.get("enable_moe_block") is False


def _shared(text: Fields, inter: int) -> int:
    own = text.number("moe_shared_expert_intermediate_size")
    count = text.number(*_SHARED_COUNT)
    if own:
        return own * max(count, 1)
    whole = text.number(*_SHARED_INTER)
    if whole:
        return whole
    if text.model_type.startswith("llama4"):
        return text.number("intermediate_size")
    if text.raw.get("enable_moe_block"):
        return text.number("intermediate_size")  # Gemma 4: the dense MLP works beside the experts
    return count * inter


def _sparse(text: Fields, layers: int) -> int:
    """Layers with experts."""
    kinds = text.words("mlp_layer_types", "layers_block_type")
    if any(kind in ("sparse", "moe") for kind in kinds):
        return sum(kind in ("sparse", "moe") for kind in kinds)
    pattern = text.raw.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return pattern.count("E")
    listed = text.numbers("moe_layers")
    if listed:
        return len(listed)
    switches = text.numbers("moe_layer_freq", "is_moe_layer")
    if switches is not None:
        return sum(map(bool, switches))
    named = text.raw.get("moe_layers_enum")
    if isinstance(named, str) and named:
        return len(named.split(","))
    return sum(_is_sparse(text, place) for place in range(layers))


def _is_sparse(text: Fields, place: int) -> bool:
    """By the rules that count from the bottom: a dense start, then each so many layers."""
    start = text.number("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", "moe_layer_num_skipped")
    end = text.raw.get("moe_layer_end_index")
    if place < start or (isinstance(end, int) and 0 <= end < place) or place in (text.numbers("mlp_only_layers") or ()):
        return False
    period = text.number("expert_layer_period")
    if period:
        return place % period == text.number("expert_layer_offset")
    if text.number("moe_layer_freq") > 1:
        return place % text.number("moe_layer_freq") == 0
    step = text.number("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval")
    return step <= 1 or (place + 1) % step == 0
