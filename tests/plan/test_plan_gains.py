"""What FP8 is said to bring, apart: requests at once, decoding, prompts, and on a processor the room."""

from typing import Any

import pytest

from selfhost.plan.decide import decide
from selfhost.plan.gains import FIELD
from selfhost.shapes.host import Host, Known, Vendor
from selfhost.shapes.plan import Decision, Plan
from tests.fakes.planning import a_card, a_host, a_model, a_service, smollm2


def plan(host: Host, model: Any = None, **wish: Any) -> Plan:
    return decide(host=host, model=model or a_model(), service=a_service(**wish), port=8000)


def with_card(arch: str = "sm_89", *, gib: float = 23.52, vendor: Vendor = Vendor.NVIDIA) -> Host:
    driver = Known("580.95.05", "nvml")
    return a_host(gib=64, accelerators=(a_card(arch=arch, gib=gib, vendor=vendor),), driver=driver)


def said(host: Host, model: Any = None, **wish: Any) -> Decision:
    found = plan(host, model, **wish).decision(FIELD)
    assert found is not None
    return found


def test_requests_gained_are_the_bytes_saved_by_the_bytes_of_a_request() -> None:
    """3.63 B of 4.02 B parameters lose a byte: 3.38 GiB, and 32,768 tokens of 147,456 B are 4.5 GiB: 0.75 more."""
    reason = said(with_card()).reason
    assert reason.startswith("+0.8 requests at once at 32,768 tokens (3.7 against 3.0 in BF16); ")
    assert "122,288 tokens of KV cache" in reason


def test_a_native_card_reads_prompts_faster_and_one_that_widens_does_not() -> None:
    assert "decoding ×1.0 to ×1.8, prompts ×1.3 to ×2.0, assumed" in said(with_card()).reason
    assert "decoding ×1.0 to ×1.8, prompts ×1 at best, assumed" in said(with_card("sm_86")).reason


def test_what_is_not_taken_says_why_and_what_is_taken_leaves_that_to_its_precision() -> None:
    assert said(with_card()).value == "expected native"
    assert "FP8 units" not in said(with_card()).reason
    left = said(with_card("sm_86"))
    assert left.value == "memory only, not taken"
    assert "this card has no FP8 units" in left.reason
    assert said(with_card(), precision="bf16").value == "expected native, not taken"
    assert said(with_card("sm_86"), precision="fp8").value == "memory only"


def test_a_card_on_which_bf16_does_not_fit_gains_all_of_its_requests() -> None:
    # 7.5 GiB of weights on 7.6 GiB
    reason = said(with_card("sm_86", gib=7.6)).reason
    assert "where BF16 does not fit" in reason
    assert not reason.startswith("+")


@pytest.mark.parametrize(("arch", "why"), [("gfx1100", "RDNA3"), ("gfx1151", "RDNA3.5"), ("gfx90a", "CDNA2")])
def test_where_it_is_not_possible_it_says_why_and_names_the_fewer_bits_that_are(arch: str, why: str) -> None:
    found = said(with_card(arch, vendor=Vendor.AMD))
    assert found.value == "not possible"
    assert why in found.reason
    assert found.source.startswith(("https://", "vLLM 0.33.0: "))
    assert found.alternatives == ("Qwen/Qwen3-4B-AWQ (awq)",)


def test_on_a_processor_it_saves_room_and_no_time() -> None:
    """3.24 of 4.02 B parameters lose a byte: 151,936 by 2560 are kept twice, as embedding and as output head."""
    found = said(a_host(gib=64))
    assert found.value == "memory only, not taken"
    assert found.reason.startswith("+0.0 requests at once at 8,192 tokens")
    assert "3.4 GiB of memory less, no faster" in found.reason


def test_the_publishers_own_is_an_alternative() -> None:
    assert said(with_card()).alternatives == ("Qwen/Qwen3-4B-FP8 (fp8_block)",)


def test_a_checkpoint_in_fewer_bits_and_a_demonstration_have_no_such_line() -> None:
    assert plan(with_card(), a_model("Qwen/Qwen3-4B-AWQ", dtype=Known("int4", "config.json"))).decision(FIELD) is None
    assert plan(a_host(), smollm2(demonstration=True)).decision(FIELD) is None


def test_what_is_shown_of_fp8_is_what_the_plan_itself_has_when_it_is_taken() -> None:
    made = plan(with_card())
    found = made.decision(FIELD)
    assert found is not None
    assert f"{made.memory.kv_tokens:,} tokens of KV cache" in found.reason
