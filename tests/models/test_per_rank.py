"""Bytes of one device, by hand."""

from dataclasses import replace

import pytest

from selfhost.models.per_rank import Cut, per_rank, stages
from selfhost.shapes.geometry import Experts, Geometry, Latent
from selfhost.shapes.tensors import Kind, Part, Tensors

# Qwen3-4B: 36 layers, 32 query and 8 KV heads of 128, hidden 2560, MLP 9728, 151,936 tokens, one matrix for both ends
QWEN = Geometry(
    layers=36,
    full_layers=36,
    hidden=2560,
    heads=32,
    kv_heads=8,
    head_dim=128,
    vocab=151936,
    intermediate=9728,
    tie=True,
)
EMBEDDING, Q, KV, OUT = 151936 * 2560 * 2, 2560 * 4096 * 2, 2 * 2560 * 1024 * 2, 4096 * 2560 * 2
MLP, LAYER_NORMS, LAST_NORM = 3 * 2560 * 9728 * 2, (2 * 2560 + 2 * 128) * 2, 2560 * 2
LAYER = Q + KV + OUT + MLP + LAYER_NORMS


def part(kind: Kind, size: int, *, layer: int = -1, dtype: str = "BF16", scale: bool = False) -> Part:
    return Part(kind=kind, layer=layer, dtype=dtype, scale=scale, bytes=size, count=1)


def qwen() -> Tensors:
    each = [(Kind.QUERY, Q), (Kind.KEY_VALUE, KV), (Kind.OUTPUT, OUT), (Kind.MLP, MLP), (Kind.NORM, LAYER_NORMS)]
    layers = [part(kind, size, layer=number) for number in range(36) for kind, size in each]
    return Tensors(parts=(part(Kind.EMBEDDING, EMBEDDING), part(Kind.NORM, LAST_NORM), *layers), files=3)


def test_one_device_holds_everything() -> None:
    # 4,022,468,096 parameters (https://huggingface.co/Qwen/Qwen3-4B), two bytes each
    assert per_rank(qwen(), QWEN, Cut()) == qwen().total == 2 * 4_022_468_096


def test_two_devices_halve_all_but_the_norms() -> None:
    norms = 36 * LAYER_NORMS + LAST_NORM
    assert per_rank(qwen(), QWEN, Cut(tp=2)) == (qwen().total - norms) // 2 + norms


def test_more_devices_than_kv_heads_repeat_them() -> None:
    single = KV // 8  # of 16 devices each holds one of 8 heads
    layer = Q // 16 + single + OUT // 16 + MLP // 16 + LAYER_NORMS
    assert per_rank(qwen(), QWEN, Cut(tp=16)) == EMBEDDING // 16 + LAST_NORM + 36 * layer


def test_a_joint_qkv_tensor_is_divided_by_its_heads() -> None:
    whole = Tensors(parts=(part(Kind.QKV, Q + KV, layer=0),), files=1)
    assert per_rank(whole, replace(QWEN, layers=1, full_layers=1), Cut(tp=16)) == Q // 16 + KV // 8


def test_a_vocabulary_is_padded_to_a_multiple_of_64() -> None:
    odd = replace(QWEN, vocab=49155)  # Granite 3.1: padded to 49,216
    whole = Tensors(parts=(part(Kind.EMBEDDING, 49155 * 2560 * 2),), files=1)
    assert per_rank(whole, odd, Cut(tp=2)) == 49216 * 2560


def test_pipeline_stages_hold_their_layers_and_the_ends() -> None:
    assert [len(one) for one in stages(36, 4)] == [9, 9, 9, 9]
    assert [len(one) for one in stages(61, 4)] == [15, 15, 16, 15]  # vLLM get_pp_indices: not the last one
    tied = per_rank(qwen(), QWEN, Cut(pp=2))
    assert tied == EMBEDDING + LAST_NORM + 18 * LAYER


def test_a_head_that_is_the_embedding_is_loaded_once() -> None:
    twice = Tensors(parts=(part(Kind.EMBEDDING, EMBEDDING), part(Kind.HEAD, EMBEDDING)), files=1)
    assert per_rank(twice, QWEN, Cut()) == EMBEDDING
    assert per_rank(twice, replace(QWEN, tie=False), Cut()) == 2 * EMBEDDING


def test_experts_are_cut_or_divided_and_the_router_is_whole() -> None:
    sparse = replace(QWEN, experts=Experts(count=128, top_k=8, inter=768, layers=36))
    whole = Tensors(parts=(part(Kind.EXPERT, 8000, layer=0), part(Kind.ROUTER, 10, layer=0)), files=1)
    assert per_rank(whole, sparse, Cut(tp=2)) == 4010
    assert per_rank(whole, sparse, Cut(tp=2, data=4)) == 4010
    assert per_rank(whole, sparse, Cut(tp=2, data=4, expert=True)) == 1010


def test_compressed_attention_keeps_its_expansion_twice() -> None:
    latent = Latent(rank=512, rope=64, nope=128, value=128, q_rank=1536)
    shape = Geometry(layers=1, full_layers=1, hidden=7168, heads=128, kv_heads=1, head_dim=576, vocab=64, latent=latent)
    down, up = 7168 * 576, 512 * 128 * 256
    parts = (part(Kind.DOWN, down, layer=0, dtype="F8_E4M3"), part(Kind.UP, up, layer=0, dtype="F8_E4M3"))
    second = 128 * 256 * 512 * 2  # 16 bits whatever the checkpoint has
    assert per_rank(Tensors(parts=parts, files=1), shape, Cut(tp=8)) == down + (up + second) // 8


def test_four_bit_experts_of_gpt_oss_grow_by_their_padding() -> None:
    shape = replace(QWEN, hidden=2880)  # padded to 3,072
    parts = (part(Kind.EXPERT, 2880_000, layer=0, dtype="U8"), part(Kind.QUERY, 1000, layer=0))
    assert per_rank(Tensors(parts=parts, files=1), shape, Cut(scheme="mxfp4")) == 3072_000 + 1000
    assert per_rank(Tensors(parts=parts, files=1), shape, Cut()) == 2880_000 + 1000


def test_rounding_to_fp8_while_loading_spares_what_engines_leave_in_16_bits() -> None:
    kept = EMBEDDING + LAST_NORM + 36 * LAYER_NORMS
    assert per_rank(qwen(), QWEN, Cut(scheme="fp8")) == kept + 36 * (Q + KV + OUT + MLP) // 2


def test_what_is_stored_wide_is_loaded_as_it_is_computed() -> None:
    parts = (part(Kind.MLP, 400, layer=0, dtype="F32"), part(Kind.MLP, 4, layer=0, dtype="F32", scale=True))
    assert per_rank(Tensors(parts=parts, files=1), QWEN, Cut()) == 204
    assert per_rank(Tensors(parts=parts, files=1), QWEN, Cut(computed="fp32")) == 404


@pytest.mark.parametrize(("cut", "expected"), [(Cut(), 1000), (Cut(draft=True), 1130), (Cut(multimodal=False), 500)])
def test_draft_heads_and_towers_count_when_they_are_loaded(cut: Cut, expected: int) -> None:
    parts = (
        part(Kind.MLP, 500, layer=35), part(Kind.VISION, 500), part(Kind.DRAFT, 100), part(Kind.MLP, 30, layer=36),
    )  # fmt: skip
    assert per_rank(Tensors(parts=parts, files=1), QWEN, cut) == expected


def test_towers_are_divided_unless_asked_to_be_whole() -> None:
    whole = Tensors(parts=(part(Kind.VISION, 1000),), files=1)
    assert per_rank(whole, QWEN, Cut(tp=2)) == 500
    assert per_rank(whole, QWEN, Cut(tp=2, vision_whole=True)) == 1000
