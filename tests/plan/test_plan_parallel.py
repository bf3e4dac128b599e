"""How a model is spread over cards. Divisions are shown; their rules are those of both engines' code."""

from dataclasses import replace
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.plan.devices import Devices
from selfhost.plan.fp8 import Form, Native
from selfhost.plan.memory.question import Spread
from selfhost.plan.parallel import choose_parallel, parallel_decision
from selfhost.plan.parallel_cut import cut
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision import CHECKPOINT, Precision
from selfhost.shapes.geometry import Experts, Geometry, Latent, Recurrence, State
from selfhost.shapes.host import Known, Link, Unknown
from tests.fakes.planning import QWEN3_4B, a_card, a_host, a_model, a_service

BF16 = Precision(weights="bf16", kv="auto", own="bf16")
BLOCKS = Precision(weights=CHECKPOINT, kv="auto", own="fp8", form=Form.BLOCK)
WIDENED = replace(BLOCKS, native=Native.MEMORY_ONLY)

# Qwen3-30B-A3B: https://huggingface.co/Qwen/Qwen3-30B-A3B/blob/main/config.json
SPARSE = Geometry(
    layers=48, full_layers=48, hidden=2048, heads=32, kv_heads=4, head_dim=128, vocab=151936,
    experts=Experts(count=128, top_k=8, inter=768, layers=48),
)  # fmt: skip
# DeepSeek-V3: https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/config.json
LATENT = Geometry(
    layers=61, full_layers=61, hidden=7168, heads=128, kv_heads=1, head_dim=576, vocab=129280, intermediate=18432,
    latent=Latent(rank=512, rope=64, nope=128, value=128),
    experts=Experts(count=256, top_k=8, inter=2048, shared_inter=2048, layers=58),
)  # fmt: skip


def devices(count: int, *, link_group: str = "") -> Devices:
    cards = tuple(replace(a_card(index), link_group=link_group) for index in range(count))
    return Devices(cards=cards, backend="cuda", device="it", name="it")


def spreads(
    count: int, shape: Geometry | None = QWEN3_4B, *, precision: Precision = BF16, engine: str = "vllm",
    flags: dict[str, str] | None = None,
) -> list[Spread]:  # fmt: skip
    geometry: Any = Unknown("no config.json") if shape is None else Known(shape, "config.json")
    return list(
        choose_parallel(
            model=a_model(geometry=geometry), devices=devices(count), precision=precision, engine=engine,
            service=a_service(engine_args=("--x",)), passed=PassedOn(flags=flags or {}),
        )
    )  # fmt: skip


def test_one_card_needs_no_cut() -> None:
    assert spreads(1) == [Spread()]
    assert spreads(0) == [Spread()]


def test_two_cards_cut_every_layer_before_they_stand_in_a_row_or_copy() -> None:
    assert spreads(2) == [Spread(tensor=2), Spread(pipeline=2), Spread(data=2)]


def test_what_heads_do_not_allow_stands_in_a_row() -> None:
    assert spreads(3) == [Spread(pipeline=3), Spread(data=3)]  # 32 heads / 3
    assert spreads(6)[0] == Spread(tensor=2, pipeline=3)


def test_every_way_uses_every_card() -> None:
    for count in (2, 3, 4, 6, 8):
        for shape in (QWEN3_4B, SPARSE, LATENT):
            for engine in ("vllm", "sglang"):
                assert {spread.ranks for spread in spreads(count, shape, engine=engine)} == {count}


def test_few_kv_heads_are_held_more_than_once() -> None:
    assert spreads(8, SPARSE)[0] == Spread(tensor=8)  # 4 KV heads, each twice
    decision = parallel_decision(
        devices(8), passed=PassedOn(), spread=Spread(tensor=8), model=a_model(geometry=Known(SPARSE, "config.json"))
    )
    assert "its 4 KV heads are held 2 times" in decision.reason


@pytest.mark.parametrize(
    ("shape", "tensor", "words"),
    [
        (replace(QWEN3_4B, heads=40), 16, "40 attention heads"),
        (replace(QWEN3_4B, heads=24, kv_heads=6), 4, "6 KV heads"),
        (replace(QWEN3_4B, heads=48, kv_heads=3, vocab=32000), 3, "a vocabulary of 32,000"),  # 500 × 64
        (replace(QWEN3_4B, intermediate=9728 + 2), 4, "9,730"),
        (replace(QWEN3_4B, state=State(kind=Recurrence.GDN, heads=48, head_dim=128, key_heads=2)), 4, "key heads"),
    ],
)
def test_what_stands_against_a_cut(shape: Geometry, tensor: int, words: str) -> None:
    assert words in cut(shape, tensor, engine="vllm", precision=BF16).dense


def test_sglang_pads_the_vocabulary_further() -> None:
    shape = replace(QWEN3_4B, heads=48, kv_heads=3, vocab=32000, intermediate=9600)
    assert cut(shape, 3, engine="sglang", precision=BF16).possible
    assert not cut(shape, 3, engine="vllm", precision=BF16).possible


def test_blocks_of_an_expert_need_whole_experts_with_sglang() -> None:
    """768 / 4 = 192, no multiple of 128: SGLang stops, vLLM refines the scales where the card computes FP8."""
    assert cut(SPARSE, 2, engine="sglang", precision=BLOCKS).possible  # 384 = 3 × 128
    assert "768 / 4 = 192" in cut(SPARSE, 4, engine="sglang", precision=BLOCKS).experts
    assert spreads(4, SPARSE, precision=BLOCKS, engine="sglang")[0] == Spread(tensor=4, expert=True)
    refined = cut(SPARSE, 4, engine="vllm", precision=BLOCKS)
    assert refined.possible
    assert "refines the scales to 64" in refined.note  # the largest that divides 128, 192 and 2,048
    assert "768 / 4 = 192" in cut(SPARSE, 4, engine="vllm", precision=WIDENED).experts
    assert spreads(4, SPARSE, precision=WIDENED)[0] == Spread(tensor=4, expert=True)


def test_dense_blocks_leave_no_way_around() -> None:
    shape = replace(QWEN3_4B, intermediate=9728)  # 9,728 / 4 = 2,432 = 19 × 128; / 8 = 1,216 = 9.5 × 128
    assert cut(shape, 4, engine="vllm", precision=BLOCKS).possible
    assert "9,728 / 8 = 1,216" in cut(shape, 8, engine="vllm", precision=BLOCKS).dense
    assert cut(shape, 8, engine="vllm", precision=BF16).possible
    assert spreads(8, shape, precision=BLOCKS)[0] == Spread(tensor=4, pipeline=2)


def test_latent_attention_offers_its_cure() -> None:
    assert spreads(8, LATENT, engine="sglang")[:2] == [
        Spread(tensor=8),
        Spread(tensor=8, attention_data=8, expert=True),
    ]
    assert Spread(data=8, expert=True) in spreads(8, LATENT)
    decision = parallel_decision(
        devices(8), passed=PassedOn(), spread=Spread(tensor=8), model=a_model(geometry=Known(LATENT, "config.json"))
    )
    assert "latent KV cache is whole on every device" in decision.reason


def test_an_unknown_shape_is_not_judged() -> None:
    assert spreads(2, None) == [Spread(tensor=2), Spread(pipeline=2), Spread(data=2)]


@pytest.mark.parametrize(
    ("flags", "spread"),
    [
        ({"--tensor-parallel-size": "2", "--pipeline-parallel-size": "2"}, Spread(tensor=2, pipeline=2)),
        ({"--tp-size": "4", "--ep-size": "4"}, Spread(tensor=4, expert=True)),
        ({"--data-parallel-size": "2", "--enable-expert-parallel": "true"}, Spread(data=2, expert=True)),
        ({"--tp-size": "8", "--attn-dp-size": "8"}, Spread(tensor=8, attention_data=8)),
        (
            {"--tp-size": "8", "--dp-size": "8", "--enable-dp-attention": "true"},
            Spread(tensor=8, attention_data=8),
        ),
    ],
)
def test_what_the_user_passes_on_is_the_spread(flags: dict[str, str], spread: Spread) -> None:
    assert spreads(8, SPARSE, flags=flags) == [spread]


def test_a_size_of_the_users_that_cannot_be_cut_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        spreads(8, replace(QWEN3_4B, heads=40), flags={"--tensor-parallel-size": "16"})
    assert caught.value.id == "PL011"
    assert "40 attention heads" in caught.value.what
    assert "2, 4, 8" in caught.value.fix[0]
    with pytest.raises(InputError) as experts:
        spreads(4, SPARSE, precision=WIDENED, flags={"--tensor-parallel-size": "4"})
    assert any("--enable-expert-parallel" in fix for fix in experts.value.fix)
    whole = {"--tensor-parallel-size": "4", "--enable-expert-parallel": "true"}
    assert spreads(4, SPARSE, precision=WIDENED, flags=whole) == [Spread(tensor=4, expert=True)]


def reason(count: int, spread: Spread, *, links: tuple[Link, ...] = (), link_group: str = "") -> str:
    made = parallel_decision(
        devices(count, link_group=link_group), passed=PassedOn(), spread=spread, host=a_host(links=links)
    )
    return made.reason


@pytest.mark.parametrize(
    ("link", "words"),
    [
        (Link(a=0, b=1, kind="NV4"), "linked directly (NV4)"),
        (Link(a=1, b=0, kind="XGMI"), "linked directly (XGMI)"),
        (Link(a=0, b=1, kind="PHB"), "across PCIe (PHB): what that costs is unknown until measured"),
        (Link(a=0, b=1, kind="NODE"), "across PCIe (NODE)"),
        (Link(a=0, b=1, kind="SYS"), "across PCIe (SYS)"),
        (Link(a=0, b=1, kind="PIX", peer_access="OK"), "share a PCIe switch"),
        (Link(a=0, b=1, kind="PIX", peer_access="GNS"), "no peer access: GNS"),
    ],
)
def test_what_a_link_costs_is_not_promised(link: Link, words: str) -> None:
    assert words in reason(2, Spread(tensor=2), links=(link,))
    assert words in reason(2, Spread(pipeline=2), links=(link,))
    assert words not in reason(2, Spread(data=2), links=(link,))


def test_one_slow_pair_among_fast_ones_is_said() -> None:
    links = (Link(a=0, b=1, kind="NV4"), Link(a=2, b=3, kind="NV4"), *(
        Link(a=a, b=b, kind="SYS") for a in (0, 1) for b in (2, 3)
    ))  # fmt: skip
    assert "across PCIe (SYS)" in reason(4, Spread(tensor=4), links=links)


def test_without_links_nobody_knows() -> None:
    assert "how the cards are joined is unknown" in reason(2, Spread(tensor=2))
    assert "linked directly" in reason(2, Spread(tensor=2), link_group="hive-0")
    assert reason(1, Spread()) == "one device is allocated"


@pytest.mark.parametrize(
    ("spread", "value"),
    [
        (Spread(), "none"),
        (Spread(tensor=2), "tensor parallel 2"),
        (Spread(tensor=2, pipeline=2), "tensor parallel 2, pipeline parallel 2"),
        (Spread(tensor=4, expert=True), "tensor parallel 4, whole experts"),
        (Spread(tensor=8, attention_data=8), "tensor parallel 8, attention data parallel 8"),
    ],
)
def test_a_spread_in_words(spread: Spread, value: str) -> None:
    assert parallel_decision(devices(8), passed=PassedOn(), spread=spread).value == value


def test_a_network_without_attention_has_no_heads_to_hold() -> None:
    shape = replace(QWEN3_4B, full_layers=0, linear_layers=36, heads=0, kv_heads=0, head_dim=0)
    made = parallel_decision(
        devices(2), passed=PassedOn(), spread=Spread(tensor=2), host=a_host(),
        model=a_model(geometry=Known(shape, "config.json")),
    )  # fmt: skip
    assert "KV heads" not in made.reason
