"""Forms of the KV cache. The names are those of vLLM 0.33.0's CacheDType and SGLang 0.5.23's choices, copied."""

from dataclasses import replace
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.plan.devices import Devices
from selfhost.plan.kv_precision import KvPrecision, choose_kv, names
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision import precision_decisions, precisions
from selfhost.shapes.geometry import Latent
from selfhost.shapes.host import Known, Vendor
from selfhost.shapes.model import Model
from tests.fakes.planning import QWEN3_4B, a_card, a_host, a_model, a_service

CACHE_DTYPE = {  # vLLM 0.33.0, config/cache.py
    "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "nvfp4_ds_mla",
    "turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc", "octave_k3v4", "octave_k3v3",
    "octave_k3v3_compact", "ultraquant_4bit", "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head",
    "nvfp4", "nvfp4_4over6",
}  # fmt: skip
CHOICES = {"auto", "fp8_e5m2", "fp8_e4m3", "mxfp8", "bf16", "nvfp4", "fp4_mx_block16"}
"""SGLang 0.5.23, srt/arg_groups/fields/model.py; `bfloat16` is the same as bf16 there."""

BACKENDS = {Vendor.NVIDIA: "cuda", Vendor.AMD: "rocm", Vendor.INTEL: "xpu"}
MLA = replace(QWEN3_4B, kv_heads=1, head_dim=576, latent=Latent(rank=512, rope=64))


def devices(arch: str = "", vendor: Vendor = Vendor.NVIDIA) -> Devices:
    cards = (a_card(arch=arch, vendor=vendor),) if arch else ()
    return Devices(cards=cards, backend=BACKENDS[vendor] if cards else "cpu", device="it", name="it")


def choose(
    kv: str | None = None, arch: str = "", *, engine: str = "vllm", vendor: Vendor = Vendor.NVIDIA,
    model: Model | None = None, flags: dict[str, str] | None = None, **wish: Any,
) -> KvPrecision:  # fmt: skip
    wish = wish if kv is None else {"kv_cache": kv, **wish}
    return choose_kv(
        model=model or a_model(), service=a_service(**wish), devices=devices(arch, vendor), engine=engine,
        passed=PassedOn(flags=flags or {}), computed="bf16",
    )  # fmt: skip


def refused(*args: Any, **more: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        choose(*args, **more)
    assert caught.value.fix
    return caught.value


def test_every_form_of_each_engine_is_known() -> None:
    assert set(names("vllm")) == CACHE_DTYPE
    assert set(names("sglang")) == CHOICES


def test_by_itself_the_cache_stays_as_computed() -> None:
    for engine in ("vllm", "sglang"):
        assert choose(arch="sm_90", engine=engine).name == "auto"
        assert not choose(arch="sm_90", engine=engine).rounded


def test_a_checkpoint_with_scales_rounds_it_by_itself() -> None:
    shipped = a_model(kv_quant="fp8")
    made = choose(arch="sm_90", model=shipped)
    assert (made.name, made.bits, made.counted) == ("auto", 8, "fp8_e4m3")
    assert choose("fp8", "sm_90", model=shipped).caveats == ()
    weights = precisions(
        model=shipped, service=a_service(), devices=devices("sm_90"), engine="vllm", version="", passed=PassedOn()
    )[0]  # fmt: skip
    assert weights.kv_value_bytes == 1.0


@pytest.mark.parametrize(("engine", "spelled"), [("vllm", "fp8"), ("sglang", "fp8_e4m3")])
def test_fp8_is_spelled_as_the_engine_knows_it(engine: str, spelled: str) -> None:
    made = choose("fp8", "sm_90", engine=engine)
    assert made.name == spelled
    assert made.name in names(engine)
    assert any("no scales" in words for words in made.caveats)


@pytest.mark.parametrize(("asked", "spelled"), [("bf16", "bfloat16"), ("bfloat16", "bfloat16"), ("fp16", "float16")])
def test_sixteen_bits_are_no_rounding(asked: str, spelled: str) -> None:
    made = choose(asked, "sm_90")
    assert (made.name, made.rounded, made.caveats) == (spelled, False, ())


@pytest.mark.parametrize(
    ("arch", "vendor", "proven", "by"),
    [
        ("sm_90", Vendor.NVIDIA, True, "FLASH_ATTN"),
        ("sm_100", Vendor.NVIDIA, True, "FLASHINFER"),
        ("sm_89", Vendor.NVIDIA, True, "FLASHINFER"),
        ("sm_86", Vendor.NVIDIA, False, "FLASHINFER"),
        ("gfx942", Vendor.AMD, True, "e4m3fnuz"),
        ("bmg", Vendor.INTEL, False, "slower"),
        ("", Vendor.NVIDIA, True, "CPU_ATTN"),
    ],
)
def test_which_back_end_reads_fp8(arch: str, vendor: Vendor, proven: bool, by: str) -> None:
    made = choose("fp8", arch, vendor=vendor)
    assert made.proven is proven
    assert by in made.by


def test_a_turing_card_reads_no_fp8_cache() -> None:
    """TritonAttention refuses it below sm_89, and FlashInfer is off for sm_75 in 0.33.0."""
    error = refused("fp8", "sm_75")
    assert error.id == "PL009"
    assert any("--kv-cache auto" in fix for fix in error.fix)


def test_another_form_is_named_where_one_works() -> None:
    error = refused("fp8_per_token_head", "sm_86")
    assert any("--kv-cache int8_per_token_head" in fix for fix in error.fix)
    latent = a_model(geometry=Known(MLA, "config.json"))  # takes no int8, so nothing else is named
    assert len(refused("turboquant_4bit_nc", "sm_86", model=latent).fix) == 1


@pytest.mark.parametrize(
    ("kv", "engine", "id"),
    [("int3", "vllm", "PL007"), ("turboquant_k8v4", "sglang", "PL007"), ("fp8_inc", "vllm", "PL009")],
)
def test_forms_that_are_not_of_this_engine_or_card(kv: str, engine: str, id: str) -> None:
    error = refused(kv, "sm_90", engine=engine)
    assert error.id == id
    assert "auto" in (error.why if id == "PL007" else error.fix[0])


def test_latent_attention_takes_its_own_forms_and_not_others() -> None:
    latent = a_model(geometry=Known(MLA, "config.json"))
    assert choose("fp8", "sm_90", model=latent).name == "fp8"
    assert refused("fp8_e5m2", "sm_90", model=latent).id == "PL009"
    assert "MLA" in refused("fp8_ds_mla", "sm_90").why
    assert "indexer" in refused("fp8_ds_mla", "sm_90", model=latent).why
    indexed = replace(MLA, latent=Latent(rank=512, rope=64, indexer_bytes=132))
    assert choose("fp8_ds_mla", "sm_90", model=a_model(geometry=Known(indexed, "config.json"))).name == "fp8_ds_mla"
    assert any("GLM-5.1" in words for words in choose("fp8", "sm_90", engine="sglang", model=latent).caveats)


def test_wide_heads_and_windows_are_caveats() -> None:
    wide = a_model(geometry=Known(replace(QWEN3_4B, head_dim=256, sliding_layers=30, full_layers=6), "config.json"))
    caveats = " ".join(choose("fp8", "sm_90", model=wide).caveats)
    assert "heads of 256" in caveats
    assert "--kv-skip-layers sliding_window" in caveats


def test_layers_can_be_left_out_with_vllm() -> None:
    made = choose("fp8", "sm_90", kv_skip_layers=("0", "35"))
    assert made.flags == ("--kv-cache-dtype-skip-layers", "0", "35")
    assert refused("fp8", "sm_90", kv_skip_layers=("36",)).id == "PL009"  # 36 layers: 0 to 35
    assert refused("fp8", "sm_90", kv_skip_layers=("window",)).id == "PL009"
    assert refused(None, "sm_90", kv_skip_layers=("0",)).id == "PL009"
    error = refused("fp8", "sm_90", engine="sglang", kv_skip_layers=("0",))
    assert any("--engine vllm" in fix for fix in error.fix)


def test_windows_are_left_out_where_the_model_has_some() -> None:
    shape = replace(QWEN3_4B, full_layers=6, sliding_layers=30, window=1024)
    windowed = a_model(geometry=Known(shape, "config.json"))
    made = choose("fp8", "sm_90", model=windowed, kv_skip_layers=("sliding_window",))
    assert made.flags == ("--kv-cache-dtype-skip-layers", "sliding_window")
    error = refused("fp8", "sm_90", kv_skip_layers=("sliding_window",))
    assert "of which this model has none" in error.why
    assert not any("sliding_window" in fix for fix in error.fix)


def test_a_flag_of_the_user_is_not_judged() -> None:
    made = choose(arch="sm_75", flags={"--kv-cache-dtype": "fp8_e4m3"})
    assert (made.name, made.bits, made.proven) == ("fp8_e4m3", 8, False)
    odd = choose(arch="sm_75", flags={"--kv-cache-dtype": "fp8_of_tomorrow"})
    assert (odd.name, odd.bits, odd.proven) == ("fp8_of_tomorrow", 8, False)


def test_the_decision_says_what_it_costs_and_who_reads_it() -> None:
    service = a_service(kv_cache="fp8")
    made = precisions(
        model=a_model(), service=service, devices=devices("sm_86"), engine="vllm", version="", passed=PassedOn()
    )[0]  # fmt: skip
    decision = precision_decisions(
        made, host=a_host(), service=service, devices=devices("sm_86"), passed=PassedOn()
    )[1]  # fmt: skip
    assert decision.value == "FP8"
    assert decision.reason.startswith("unproven on this card: half the room per token; read by FLASHINFER")
    assert decision.changes_behaviour
