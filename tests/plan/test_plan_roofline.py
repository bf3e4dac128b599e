"""The decode roofline: active bytes, expert coverage of a batch, what a claimed rate implies. Sums by hand."""

import pytest

from selfhost.models.catalog import by_alias
from selfhost.plan.roofline import Traffic, claim, floor, reached, routed_bytes, traffic
from selfhost.shapes.geometry import Experts, Geometry
from selfhost.shapes.units import GIB

# 75 sparse layers, 8 of 256 experts, 6144 to 2048, NVFP4 (0.5625 bytes a parameter): a public report claims 14 tok/s.
SPARSE = Geometry(
    layers=78, full_layers=78, hidden=6144, heads=64, kv_heads=1, head_dim=576, vocab=154_880,
    experts=Experts(count=256, top_k=8, inter=2048, layers=75),
)  # fmt: skip


def test_a_public_claim_implies_the_bandwidth_that_its_report_computed() -> None:
    read = routed_bytes(SPARSE, per_parameter=0.5625)
    assert read == 12_740_198_400
    said = claim(14, read=read, bandwidth=273e9)
    assert said.implied / 1e9 == pytest.approx(178.4, abs=0.1)
    assert said.share == pytest.approx(0.653, abs=0.001)
    assert said.possible is True


def test_a_claim_above_the_data_sheet_is_impossible_and_one_without_a_sheet_is_unknown() -> None:
    assert claim(60, read=8 * GIB, bandwidth=273e9).possible is False
    assert claim(60, read=8 * GIB, bandwidth=None).possible is None


def test_a_batch_touches_more_experts_but_never_all_of_them() -> None:
    read = Traffic(dense=0, experts=1_000_000, count=128, top_k=8)
    assert read.weights(1) == 62_500  # 8 of 128
    assert read.weights(8) == pytest.approx(1_000_000 * (1 - 0.9375**8), abs=1)
    assert read.weights(1) < read.weights(8) < read.weights(1000) <= 1_000_000


def test_a_dense_model_reads_everything_but_its_input_embedding() -> None:
    row = by_alias("qwen3-14b")
    assert row is not None
    weights = int(14.768e9 * 2)
    read = traffic(row.geometry, weights=weights, expert_parameter=2.0, kv_per_token=163_840)
    assert read.experts == 0
    assert read.dense == weights - 151_936 * 5120 * 2
    # Measured: 53.2 tok/s on 1792 GB/s is 83 % of the sheet (https://treeru.com/en/blog/awq-quantization-speed-comparison).
    assert claim(53.2, read=read.weights(), bandwidth=1792e9).share == pytest.approx(0.83, abs=0.01)


def test_a_tied_embedding_is_the_output_head_and_is_read() -> None:
    row = by_alias("qwen3-4b")
    assert row is not None
    read = traffic(row.geometry, weights=8_044_000_000, expert_parameter=2.0, kv_per_token=147_456)
    assert read.dense == 8_044_000_000


def test_the_floor_grows_with_batch_and_context_and_its_range_is_that_of_the_table() -> None:
    read = Traffic(dense=10 * GIB, experts=0, kv_per_token=100_000)
    share = reached(unified=False)
    one = floor(read, bandwidth=1e12, share=share, batch=1, context=1000)
    assert one.read == 10 * GIB + 100_000_000
    assert one.worst / one.best == pytest.approx(share.high / share.low)
    more = floor(read, bandwidth=1e12, share=share, batch=4, context=1000)
    assert more.read == 10 * GIB + 400_000_000
    assert more.rates[1] < one.rates[1]


def test_memory_shared_with_the_host_is_expected_to_reach_less() -> None:
    assert reached(unified=True).low < reached(unified=False).low
