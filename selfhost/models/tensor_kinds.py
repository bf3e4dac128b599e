"""What a tensor is for, by its name."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from selfhost.models.headers import Tensor
from selfhost.shapes.tensors import Kind, Part, Tensors

_NUMBER = re.compile(r"\.\d+(?=\.|$)")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block|layer)\.(\d+)\.")
_SCALE = re.compile(
    r"(?:scales?|scale_inv|scale_2|qzeros|zero_point|absmax|quant_map|g_idx|weight_shape|quant_state\S*)$"
)
_TOWERS = (
    "vision\\w*", "visual", "vit", "image_\\w+", "img_\\w+", "audio\\w*", "speech\\w*", "multi_modal_projector",
    "mm_\\w+", "embed_vision", "embed_audio", "resampler", "patch_\\w+", "sam_model", "aligner", "vpm", "apm",
    "connector", "mlp1", "projector",
)  # fmt: skip
_STATES = (
    "linear_attn", "mamba", "mamba2", "ssm", "conv", "short_conv", "kda", "in_proj", "in_proj_\\w+", "conv1d", "x_proj",
    "dt_proj", "A_log", "dt_bias", "D",
)  # fmt: skip
_MLP = (
    "mlp", "ffn", "feed_forward", "shared_experts?", "shared_mlp", "mixer", "dense_h_to_4h", "dense_4h_to_h", "fc1",
    "fc2", "up_proj", "down_proj", "gate_proj", "w[123]",
)  # fmt: skip


def _inside(*names: str) -> str:
    """One of these between the dots of a name."""
    return rf"(?:^|\.)(?:{'|'.join(names)})(?:\.|$)"


_NAMES: tuple[tuple[Kind, str], ...] = (
    (Kind.VISION, _inside(*_TOWERS)),
    (Kind.DRAFT, _inside("mtp\\w*", "nextn\\w*", "draft\\w*")),
    (Kind.LAYER_EMBEDDING, "embed_tokens_per_layer"),
    (Kind.NORM, r"norm|(?:^|\.)ln_|\.ln\d?\."),
    (Kind.EMBEDDING, r"embed_tokens|(?:^|\.)(?:wte|word_embeddings|tok_embeddings|embed_in|embeddings?)\.\w+$"),
    (Kind.HEAD, r"^(?:output|head)\.|" + _inside("lm_head", "embed_out", "output_layer")),
    (Kind.EXPERT, r"\.experts?[._]"),
    (Kind.ROUTER, r"e_score_correction|\.expert_bias|" + _inside("gate", "router\\w*", "wg", "shared_expert_gate")),
    (Kind.INDEXER, _inside("indexer")),
    (Kind.DOWN, _inside("q_a_proj", "kv_a_proj\\w*", "fused_qkv_a\\w*", "wkv_a\\w*", "wq_a")),
    (Kind.UP, _inside("q_b_proj", "kv_b_proj", "wq_b", "wkv_b", "k_b_proj", "v_b_proj")),
    (Kind.QKV, _inside("qkv_proj", "qkv", "query_key_value", "c_attn", "Wqkv", "W_pack", "wqkv")),
    (Kind.QUERY, _inside("q_proj", "wq", "query", "q", "sinks")),
    (Kind.KEY_VALUE, _inside("k_proj", "v_proj", "wk", "wv", "key", "value", "k", "v")),
    (Kind.RECURRENT, r"\.mixer\.out_proj|" + _inside(*_STATES)),
    (Kind.OUTPUT, r"attn\w*\.(?:c_proj|dense|proj)\.|attention\.dense\.|" + _inside("o_proj", "wo", "out_proj", "o")),
    (Kind.MLP, _inside(*_MLP)),
)
"""The first that fits; the order keeps `shared_experts` out of the experts, and norms out of what they are inside."""
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _NAMES)


def summed(files: Iterable[Iterable[Tensor]]) -> Tensors:
    """All files of a checkpoint, summed by kind, layer and type."""
    sizes: Counter[tuple[Kind, int, str, bool]] = Counter()
    counts: Counter[tuple[Kind, int, str, bool]] = Counter()
    number = 0
    for number, file in enumerate(files, 1):  # noqa: B007  # it is the count afterwards
        for name, dtype, size, _ in file:
            layer = _LAYER.search(name)
            kind, scale = _kind_of(_NUMBER.sub(".N", name))
            key = (kind, int(layer[1]) if layer and kind is not Kind.VISION else -1, dtype, scale)
            sizes[key] += size
            counts[key] += 1
    parts = (
        Part(kind=key[0], layer=key[1], dtype=key[2], scale=key[3], bytes=size, count=counts[key])
        for key, size in sorted(sizes.items())
    )
    return Tensors(parts=tuple(parts), files=number)


def kind_of(name: str) -> Kind:
    return _kind_of(_NUMBER.sub(".N", name))[0]


@lru_cache(maxsize=4096)
def _kind_of(name: str) -> tuple[Kind, bool]:
    """Of a name whose numbers are replaced: a network of 90,000 tensors has some dozens of such names."""
    found = next((kind for kind, pattern in _PATTERNS if pattern.search(name)), Kind.OTHER)
    return found, _SCALE.search(name) is not None
