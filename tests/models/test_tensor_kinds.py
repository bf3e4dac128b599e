"""What a tensor is for, by the names that published checkpoints use."""

import pytest

from selfhost.models.headers import Tensor
from selfhost.models.tensor_kinds import kind_of, summed
from selfhost.shapes.tensors import Kind, Part

NAMES = {
    Kind.EMBEDDING: [
        "model.embed_tokens.weight",
        "backbone.embeddings.weight",
        "transformer.wte.weight",
        "tok_embeddings.weight",
        "transformer.embedding.word_embeddings.weight",
    ],
    Kind.LAYER_EMBEDDING: ["model.language_model.embed_tokens_per_layer.weight"],
    Kind.HEAD: ["lm_head.weight", "output.weight", "transformer.output_layer.weight", "language_model.lm_head.weight"],
    Kind.NORM: [
        "model.norm.weight",
        "model.layers.3.self_attn.q_norm.weight",
        "model.layers.3.self_attn.kv_a_layernorm.weight",
        "model.layers.1.linear_attn.norm.weight",
        "transformer.h.0.ln_1.weight",
    ],
    Kind.ROUTER: [
        "model.layers.3.mlp.gate.weight",
        "model.layers.3.mlp.gate.e_score_correction_bias",
        "model.layers.3.block_sparse_moe.gate.weight",
        "model.layers.3.mlp.router.weight",
        "model.layers.3.mlp.shared_expert_gate.weight",
        "language_model.model.layers.0.feed_forward.router.weight",
    ],
    Kind.EXPERT: [
        "model.layers.3.mlp.experts.7.gate_proj.weight",
        "model.layers.3.mlp.experts.gate_up_proj_blocks",
        "model.layers.3.block_sparse_moe.experts.1.w1.weight",
        "backbone.layers.3.mixer.experts.3.up_proj.weight",
    ],
    Kind.QUERY: [
        "model.layers.3.self_attn.q_proj.weight",
        "layers.0.attention.wq.weight",
        "model.layers.0.self_attn.sinks",
    ],
    Kind.KEY_VALUE: ["model.layers.3.self_attn.k_proj.weight_scale", "model.layers.3.self_attn.v_proj.qweight"],
    Kind.QKV: [
        "model.layers.3.self_attn.qkv_proj.weight",
        "transformer.h.0.attn.c_attn.weight",
        "transformer.encoder.layers.0.self_attention.query_key_value.weight",
    ],
    Kind.OUTPUT: [
        "model.layers.3.self_attn.o_proj.qweight",
        "transformer.h.0.attn.c_proj.weight",
        "model.layers.0.self_attn.dense.bias",
    ],
    Kind.DOWN: ["model.layers.3.self_attn.kv_a_proj_with_mqa.weight", "model.layers.3.self_attn.q_a_proj.weight"],
    Kind.UP: ["model.layers.3.self_attn.kv_b_proj.weight_scale_inv", "model.layers.3.self_attn.q_b_proj.weight"],
    Kind.INDEXER: [
        "model.layers.3.self_attn.indexer.wk.weight",
        "model.layers.3.self_attn.indexer.weights_proj.weight",
    ],
    Kind.MLP: [
        "model.layers.3.mlp.gate_proj.weight",
        "model.layers.3.mlp.shared_experts.up_proj.weight",
        "transformer.h.0.mlp.c_fc.weight",
        "layers.0.feed_forward.w1.weight",
        "backbone.layers.3.mixer.up_proj.weight",
    ],
    Kind.RECURRENT: [
        "model.layers.1.linear_attn.in_proj_qkvz.weight",
        "model.layers.1.linear_attn.A_log",
        "backbone.layers.3.mixer.in_proj.weight",
        "backbone.layers.3.mixer.D",
        "model.layers.0.conv.in_proj.weight",
    ],
    Kind.VISION: [
        "model.visual.blocks.3.attn.qkv.weight",
        "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight",
        "multi_modal_projector.linear.weight",
        "model.audio_tower.conformer.0.ffw.weight",
    ],
    Kind.DRAFT: ["mtp.layers.0.self_attn.q_proj.weight"],
    Kind.OTHER: ["model.layers.61.eh_proj.weight", "transformer.wpe.weight"],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names])
def test_a_name_tells_what_a_tensor_is_for(kind: Kind, name: str) -> None:
    assert kind_of(name) is kind


def test_tensors_are_summed_by_kind_layer_and_type_over_all_files() -> None:
    first = [Tensor("model.layers.0.mlp.up_proj.weight", "F8_E4M3", 100, 100),
             Tensor("model.layers.0.mlp.up_proj.weight_scale_inv", "F32", 4, 104)]  # fmt: skip
    second = [Tensor("model.layers.0.mlp.down_proj.weight", "F8_E4M3", 50, 50), Tensor("lm_head.weight", "BF16", 8, 58)]
    whole = summed([first, second])
    assert (whole.files, whole.total) == (2, 162)
    assert Part(kind=Kind.MLP, layer=0, dtype="F8_E4M3", scale=False, bytes=150, count=2) in whole.parts
    assert Part(kind=Kind.MLP, layer=0, dtype="F32", scale=True, bytes=4, count=1) in whole.parts
    assert Part(kind=Kind.HEAD, layer=-1, dtype="BF16", scale=False, bytes=8, count=1) in whole.parts


def test_layers_of_a_tower_are_not_those_of_the_language_model() -> None:
    (part,) = summed([[Tensor("visual.blocks.30.attn.qkv.weight", "BF16", 8, 8)]]).parts
    assert part.layer == -1
