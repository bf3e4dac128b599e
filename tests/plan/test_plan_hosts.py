"""One model on every kind of machine: what a person asks of a plan, from recorded machines and the catalog alone.

KV tokens by hand: 92 % of what the driver reports, less weights (8.044 GB in BF16; FP8 keeps the embedding, 0.39 B
parameters, in 16 bits: 4.41 GB) and the engine's own, by 147,456 B a token: 36 layers, 2 of keys and values, 8 heads,
128 wide, 2 bytes. Cards that share the machine's memory leave it a tenth, and the estimate's error.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from selfhost.core.recorded import Recorded
from selfhost.hosts.detect import detect, with_links
from selfhost.models.catalog import by_alias
from selfhost.models.listed import listed
from selfhost.plan.decide import decide
from selfhost.plan.describe import describe
from selfhost.plan.reasoning import parse
from selfhost.shapes.host import Host
from selfhost.shapes.plan import Decision, Plan, Verdict
from tests.fakes.planning import a_service

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    precision: str
    form: str
    """Of FP8, taken or not; empty where there is none."""
    fp8: str
    gained: tuple[float, float]
    """Requests at once with FP8 and without, at the context planned; (0, 0) where FP8 is not possible."""
    context: int
    kv_tokens: int
    runtime: str = "process"


HOSTS = {
    "rtx3060": Expected(
        precision="BF16", form="per tensor", fp8="memory only, not taken", gained=(5.2, 2.2), context=8192,
        kv_tokens=18_000,
    ),
    "rtx4090": Expected(
        precision="FP8 per channel", form="per channel", fp8="expected native", gained=(3.7, 3.0), context=32768,
        kv_tokens=122_288,
    ),
    "rtx5090": Expected(
        precision="FP8 per channel", form="per channel", fp8="expected native", gained=(5.3, 4.6), context=32768,
        kv_tokens=174_800,
    ),
    "two-3090-nvml": Expected(
        precision="BF16", form="per tensor", fp8="memory only, not taken", gained=(3.7, 3.0), context=32768,
        kv_tokens=97_984,
    ),
    "a100-mig-slice": Expected(
        precision="BF16", form="per tensor", fp8="memory only, not taken", gained=(6.9, 6.2), context=32768,
        kv_tokens=203_040, runtime="container",
    ),
    "l40s": Expected(
        precision="FP8 per channel", form="per channel", fp8="expected native", gained=(8.0, 7.2), context=32768,
        kv_tokens=262_096,
    ),
    "h100": Expected(
        precision="FP8 per channel", form="per channel", fp8="expected native", gained=(15.0, 14.3), context=32768,
        kv_tokens=492_864,
    ),
    "dgx-spark": Expected(
        precision="BF16", form="per channel", fp8="unproven, not taken", gained=(19.7, 18.9), context=32768,
        kv_tokens=619_184,
    ),
    "amd-mi300x": Expected(
        precision="FP8 per channel", form="per channel", fp8="expected native", gained=(38.0, 37.2), context=32768,
        kv_tokens=1_243_888, runtime="container",
    ),
    "rx7900xtx": Expected(
        precision="BF16", form="", fp8="not possible", gained=(0, 0), context=32768, kv_tokens=100_768,
        runtime="container",
    ),
    "strix-halo": Expected(
        precision="BF16", form="", fp8="not possible", gained=(0, 0), context=32768, kv_tokens=569_824,
        runtime="container",
    ),
    "arc-b580": Expected(
        precision="BF16", form="per channel", fp8="memory only, not taken", gained=(5.4, 2.4), context=8192,
        kv_tokens=19_968, runtime="container",
    ),
    # 2,592 MiB by 147,456 B: as much as is useful to eight requests, not what is left
    "bare-no-cards": Expected(
        precision="BF16", form="in blocks of 128", fp8="memory only, not taken", gained=(2.2, 2.2), context=8192,
        kv_tokens=18_432,
    ),
}  # fmt: skip

on_every_host = pytest.mark.parametrize("name", HOSTS)


@cache
def host_of(name: str) -> Host:
    seen = Recorded.load(str(SNAPSHOTS / f"{name}.json"))
    return with_links(detect(seen), seen)


@cache
def plan_on(name: str, **wish: Any) -> Plan:
    row = by_alias("qwen3-4b")
    assert row is not None
    return decide(host=host_of(name), model=listed(row), service=a_service("qwen3-4b", **wish), port=8000)


def of(plan: Plan, field: str) -> Decision:
    found = plan.decision(field)
    assert found is not None, field
    return found


def value(plan: Plan, flag: str) -> str | None:
    return plan.argv[plan.argv.index(flag) + 1] if flag in plan.argv else None


@on_every_host
def test_precision_and_what_fp8_is_on_this_card(name: str) -> None:
    plan, expected = plan_on(name), HOSTS[name]
    assert of(plan, "precision").value == expected.precision
    assert of(plan, "FP8").value == expected.fp8
    if expected.form and expected.precision == "BF16":
        assert f"FP8 {expected.form} " in of(plan, "precision").reason
    if not expected.form:
        assert "RDNA3" in of(plan, "FP8").reason


@on_every_host
def test_tokens_that_are_left_for_the_cache(name: str) -> None:
    plan, expected = plan_on(name), HOSTS[name]
    assert plan.verdict is Verdict.FITS
    assert plan.context == expected.context
    assert plan.memory.kv_tokens == pytest.approx(expected.kv_tokens, rel=0.01)
    assert f"{plan.memory.kv_tokens:,} tokens of KV cache" in of(plan, "context").reason


@on_every_host
def test_requests_gained_by_fp8(name: str) -> None:
    plan, expected = plan_on(name), HOSTS[name]
    found = re.search(r"([+-][\d.]+) requests at once .*\(([\d.]+) against ([\d.]+) in BF16\)", of(plan, "FP8").reason)
    if not any(expected.gained):
        assert found is None
        return
    assert found is not None
    gained, with_fp8, without = (float(number) for number in found.groups())
    assert (with_fp8, without) == pytest.approx(expected.gained, rel=0.01, abs=0.06)
    assert gained == pytest.approx(with_fp8 - without, abs=0.11)


@on_every_host
def test_how_it_runs_and_what_a_silent_client_gets(name: str) -> None:
    plan = plan_on(name)
    assert plan.runtime == HOSTS[name].runtime
    assert plan.reasoning.unsent == "served"
    assert "served to a client that sends nothing" in of(plan, "reasoning").reason
    assert value(plan, "--reasoning-parser") == "qwen3"
    assert value(plan, "--default-chat-template-kwargs") == '{"enable_thinking":true,"thinking":true}'


@on_every_host
def test_a_budget_is_only_for_a_client_that_asks(name: str) -> None:
    plan = plan_on(name, reasoning=parse("budget=2048"))
    assert plan.reasoning.unsent == "only when asked"
    assert "only when the client asks (thinking_token_budget=2048" in of(plan, "reasoning").reason


@on_every_host
def test_all_five_stand_in_the_plan_that_is_shown(name: str) -> None:
    shown = describe(plan_on(name))
    for field in ("precision", "FP8", "KV cache", "context", "reasoning"):
        assert re.search(rf"^  {field}  ", shown, re.MULTILINE), field
    assert ("\n  image" in shown) == (HOSTS[name].runtime == "container")


def test_a_card_is_asked_for_in_the_flags_of_the_engine() -> None:
    ada, ampere = plan_on("rtx4090"), plan_on("rtx3060")
    assert value(ada, "--quantization") == "fp8_per_channel"
    assert value(ada, "--dtype") is None
    assert value(ampere, "--quantization") is None
    assert value(ampere, "--dtype") == "bfloat16"
    assert value(ampere, "--max-model-len") == "8192"
    assert value(ampere, "--gpu-memory-utilization") is None


@pytest.mark.parametrize("name", ["dgx-spark", "strix-halo"])
def test_memory_that_the_host_uses_too_is_asked_for_in_bytes_and_no_start_waits_for_92_percent(name: str) -> None:
    """vLLM 0.33.0, v1/worker/utils.py (request_memory): without the share, 92 % must be free whatever is asked for."""
    plan = plan_on(name)
    share = value(plan, "--gpu-memory-utilization")
    assert value(plan, "--kv-cache-memory-bytes") == str(plan.memory.kv_cache)
    assert share is not None
    assert plan.memory.need <= float(share) * plan.memory.available <= plan.memory.need + 0.01 * plan.memory.available
    assert "shared with the processor" in of(plan, "devices").reason


def test_one_of_two_cards_is_taken_by_a_mask_and_a_slice_by_its_container() -> None:
    assert plan_on("two-3090-nvml").env["CUDA_VISIBLE_DEVICES"] == "0"
    assert value(plan_on("two-3090-nvml"), "--tensor-parallel-size") is None
    sliced = plan_on("a100-mig-slice")
    assert sliced.device.startswith("MIG-")
    assert "CUDA_VISIBLE_DEVICES" not in sliced.env


def test_sglang_takes_the_same_forms_under_its_own_name() -> None:
    plan = plan_on("rtx4090", engine="sglang")
    assert of(plan, "FP8").value == "expected native"
    assert value(plan, "--quantization") == "fp8"
    assert value(plan, "--context-length") == "32768"
    assert plan.reasoning.unsent == "served"
