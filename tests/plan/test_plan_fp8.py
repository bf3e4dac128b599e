"""What FP8 becomes on a card. Expected kernels are those that vLLM 0.33.0's own chooser named for each capability.

`choose_scaled_mm_linear_kernel` was run with a platform that answers as a card of that compute capability.
"""

from typing import Any

import pytest

from selfhost.core.table import read_table
from selfhost.plan.fp8 import Form, Native, Support, known_version, made_while_loading, support

CHOSEN_BY_VLLM = {
    ("sm_75", "channel"): "MarlinFP8ScaledMMLinearKernel",
    ("sm_80", "channel"): "MarlinFP8ScaledMMLinearKernel",
    ("sm_86", "tensor"): "MarlinFP8ScaledMMLinearKernel",
    ("sm_87", "block"): "MarlinFP8ScaledMMLinearKernel",
    ("sm_89", "channel"): "CutlassFP8ScaledMMLinearKernel",
    ("sm_89", "tensor"): "CutlassFP8ScaledMMLinearKernel",
    ("sm_89", "block"): "MarlinFP8ScaledMMLinearKernel",
    ("sm_90", "channel"): "CutlassFP8ScaledMMLinearKernel",
    ("sm_90", "block"): "CutlassFp8BlockScaledMMKernel",  # without DeepGEMM, which stands before it
    ("sm_100", "channel"): "CutlassFP8ScaledMMLinearKernel",
    ("sm_100", "tensor"): "FlashInferFP8ScaledMMLinearKernel",
    ("sm_120", "channel"): "CutlassFP8ScaledMMLinearKernel",
    ("sm_120", "tensor"): "FlashInferFP8ScaledMMLinearKernel",
    ("sm_121", "block"): "CutlassFp8BlockScaledMMKernel",
}
WIDENING = ("Marlin", "Humming", "W8A16")
"""Kernels that compute in 16 bits."""


def on(arch: str, form: str = "channel", *, engine: str = "vllm", backend: str = "cuda", **more: Any) -> Support:
    asked = {"while_loading": True, "sparse": False, **more}
    return support(engine=engine, backend=backend, arch=arch, form=Form(form), **asked)


@pytest.mark.parametrize(("arch", "form"), CHOSEN_BY_VLLM)
def test_the_kernel_that_vllm_chooses_is_among_those_expected(arch: str, form: str) -> None:
    kernel = CHOSEN_BY_VLLM[arch, form]
    published = on(arch, form, while_loading=False)
    assert f"Selected {kernel} for" in published.logs
    widened = kernel.startswith(WIDENING)
    assert (published.native is Native.MEMORY_ONLY) == widened


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_87"])
def test_cards_without_fp8_units_make_it_per_tensor_because_per_channel_dies(arch: str) -> None:
    """Fp8PtpcOnlineLinearMethod raises ValueError when Marlin is chosen, as it is on all of these."""
    assert on(arch, "channel").native is Native.REFUSED
    assert on(arch, "channel").logs == ()
    assert made_while_loading(engine="vllm", backend="cuda", arch=arch) is Form.TENSOR
    made = on(arch, "tensor")
    assert made.native is Native.MEMORY_ONLY
    assert made.logs == ("Selected MarlinFP8ScaledMMLinearKernel for Fp8PerTensorOnlineLinearMethod",)
    assert "does not have native support" in made.warning


@pytest.mark.parametrize(
    ("backend", "arch", "form", "state"),
    [
        ("cuda", "sm_70", "tensor", "refused"),
        ("cuda", "sm_89", "channel", "native"),
        ("cuda", "sm_89", "block", "memory only"),
        ("cuda", "sm_90", "block", "native"),
        ("cuda", "sm_103", "channel", "native"),
        ("cuda", "sm_120", "block", "native"),
        ("cuda", "sm_121", "channel", "unproven"),
        ("rocm", "gfx90a", "channel", "refused"),
        ("rocm", "gfx90a", "block", "refused"),
        ("rocm", "gfx942", "channel", "native"),
        ("rocm", "gfx950", "block", "native"),
        ("rocm", "gfx1100", "channel", "refused"),
        ("rocm", "gfx1151", "block", "refused"),
        ("rocm", "gfx1201", "channel", "native"),
        ("rocm", "gfx1030", "channel", "refused"),
        ("xpu", "bmg", "channel", "memory only"),
        ("xpu", "bmg", "block", "native"),
        ("cpu", "", "channel", "memory only"),
        ("cpu", "", "tensor", "refused"),
        ("cpu", "", "block", "refused"),
    ],
)
def test_what_each_form_is_on_each_card_with_vllm(backend: str, arch: str, form: str, state: str) -> None:
    found = on(arch, form, backend=backend)
    assert found.native.value == state
    assert found.why
    assert found.source


@pytest.mark.parametrize(
    ("backend", "arch", "state"),
    [
        ("cuda", "sm_75", "refused"),  # minimum capability 80 in srt/layers/quantization/fp8.py
        ("cuda", "sm_80", "memory only"),
        ("cuda", "sm_89", "native"),
        ("cuda", "sm_120", "native"),
        ("cuda", "sm_121", "unproven"),
        ("rocm", "gfx942", "native"),
        ("rocm", "gfx1201", "refused"),
        ("cpu", "", "refused"),
    ],
)
def test_what_fp8_is_on_each_card_with_sglang(backend: str, arch: str, state: str) -> None:
    assert on(arch, "channel", engine="sglang", backend=backend).native.value == state


def test_experts_may_be_worse_off_than_the_rest() -> None:
    assert on("sm_86", engine="sglang", sparse=True).native is Native.UNPROVEN
    assert on("sm_86", engine="sglang").native is Native.MEMORY_ONLY
    assert on("sm_89", "block", sparse=True).native is Native.MEMORY_ONLY
    assert on("sm_89", "channel", sparse=True).native is Native.NATIVE


def test_experts_have_a_line_of_their_own() -> None:
    """vLLM 0.33.0, layers/fused_moe/oracle/fp8.py: `Using TRITON Fp8 MoE backend out of potential backends: […]`."""
    line = "Using TRITON Fp8 MoE backend out of potential backends: ['AITER', 'FLASHINFER_TRTLLM']."
    assert any(text in line for text in on("sm_89", sparse=True).experts_logs)
    widened = on("sm_86", "tensor", sparse=True)
    assert "Using MARLIN Fp8 MoE backend out of" in widened.experts_logs
    assert not any(text in line for text in widened.experts_logs)
    assert on("sm_89").experts_logs == ()
    assert on("bmg", backend="xpu", sparse=True).native is Native.UNPROVEN


def test_a_flag_makes_blocks_native_on_ada() -> None:
    plain = on("sm_89", "block", while_loading=False)
    assert "Marlin" in plain.why
    assert "Marlin" not in on("sm_89", "channel").why
    assert plain.switch == "--linear-backend triton"
    switched = on("sm_89", "block", while_loading=False, flags={"--linear-backend": "triton"})
    assert (switched.native, switched.switch) == (Native.NATIVE, "")
    assert on("sm_86", "block", while_loading=False).switch == ""


@pytest.mark.parametrize(
    ("version", "state"),
    [("0.28.0", "memory only"), ("0.28.1", "refused"), ("0.30.2", "refused"), ("0.31.0", "memory only"), ("", None)],
)
def test_versions_that_crash_without_fp8_units(version: str, state: str | None) -> None:
    found = on("sm_86", "tensor", version=version)
    assert found.native.value == (state or "memory only")
    assert on("sm_89", version=version).native is Native.NATIVE


def test_the_flag_that_avoids_a_defect_is_heard() -> None:
    broken = on("sm_86", "tensor", version="0.29.0")
    assert "--linear-backend marlin" in broken.why
    assert on("sm_86", "tensor", version="0.29.0", flags={"--linear-backend": "marlin"}).native is Native.MEMORY_ONLY


def test_a_card_that_nobody_knows_is_neither_promised_nor_refused() -> None:
    for arch in ("sm_200", ""):
        found = on(arch)
        assert found.native is Native.UNPROVEN
        assert "in no table" in found.why
    assert made_while_loading(engine="vllm", backend="cuda", arch="sm_200") is None
    assert on("sm_89", engine="other").native is Native.UNPROVEN


def test_every_row_says_which_engine_it_was_read_from() -> None:
    table = read_table("selfhost.plan", "fp8.toml")
    assert {row["engine"] for row in table["card"]} == set(table["engine"])
    assert (known_version("vllm"), known_version("sglang")) == ("0.33.0", "0.5.23")
    for row in table["card"]:
        for form in Form:
            assert Native(row[form.value])
            kernels = row.get("kernels", {}).get(form.value, [])
            widening = [kernel for kernel in kernels if kernel.startswith(WIDENING) or "W8A16" in kernel]
            if row[form.value] == "native":
                assert not widening, (row["arch"], form)
