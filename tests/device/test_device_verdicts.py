"""What the figures of `make device-check` show, without a card: sums done by hand."""

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent.parent / "scripts" / "device"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"device_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


verdicts = load("verdicts")
SHEET = tomllib.loads((FOLDER / "sheet.toml").read_text())["card"]["rows"]


def samples(power_w: float, *, counted_w: float, seconds: int = 60) -> dict[str, Any]:
    """Constant power, one sample a second, and a counter that runs at `counted_w`."""
    return {
        "cards": {"GPU-1": [{"t_s": t, "power_w": power_w, "energy_j": 1e6 + counted_w * t} for t in range(seconds)]}
    }


def ours(**changes: Any) -> dict[str, Any]:
    card = {
        "vendor": "nvidia",
        "name": "NVIDIA H200",
        "uuid": "GPU-1",
        "arch": {"value": "sm_90", "how": "nvml"},
        "memory_total_bytes": {"value": 150_754_820_096, "how": "nvml"},
        "usable": {"value": True, "how": "nvml"},
    }
    return card | changes


def torch(**changes: Any) -> dict[str, Any]:
    card = {"name": "NVIDIA H200", "uuid": "GPU-1", "arch": "sm_90", "memory_total_bytes": 150_100_000_000}
    return {"cards": [card], "copy_gb_per_s": 4100.0, "bf16_s": 0.0016, "fp8_s": 0.0009} | changes


def test_the_integral_is_that_of_the_trapezoid() -> None:
    # 100 W to 200 W over 2 s, then 200 W for 1 s: 300 J + 200 J.
    assert verdicts.integral_j(
        [{"t_s": 0, "power_w": 100}, {"t_s": 2, "power_w": 200}, {"t_s": 3, "power_w": 200}]
    ) == pytest.approx(500)


@pytest.mark.parametrize(("counted_w", "state"), [(300, "good"), (310, "good"), (330, "bad"), (270, "bad"), (0, "bad")])
def test_a_counter_that_runs_otherwise_than_power_is_bad(counted_w: float, state: str) -> None:
    assert verdicts.energy("load", samples(300, counted_w=counted_w)).state == state


def test_a_card_without_a_counter_is_unknown() -> None:
    without = {"cards": {"GPU-1": [{"t_s": 0.0, "power_w": 50.0}, {"t_s": 1.0, "power_w": 50.0}]}}
    assert verdicts.energy("idle", without).state == "unknown"
    assert verdicts.energy("idle", {"failure": "no NVML"}).seen == "no NVML"


def test_load_must_show_in_power() -> None:
    idle, busy = samples(80, counted_w=80), samples(600, counted_w=600)
    assert verdicts.load_is_seen(idle, busy).state == "good"
    assert verdicts.load_is_seen(idle, idle).state == "bad"


@pytest.mark.parametrize(("seen", "state"), [(4100.0, "good"), (2000.0, "bad"), (5200.0, "bad")])
def test_a_copy_reaches_a_share_of_the_sheet(seen: float, state: str) -> None:
    assert verdicts.bandwidth(torch(copy_gb_per_s=seen), SHEET).state == state


def test_the_longest_match_is_the_card() -> None:
    pcie = torch(cards=[{"name": "NVIDIA H100 PCIe"}], copy_gb_per_s=1700.0)
    assert verdicts.bandwidth(pcie, SHEET).state == "good"  # 83 % of 2039, but half of 3352
    assert verdicts.bandwidth(torch(cards=[{"name": "NVIDIA Next"}]), SHEET).state == "unknown"


@pytest.mark.parametrize(
    ("arch", "fp8_s", "state"),
    [
        ("sm_90", 0.0009, "good"),  # 1.78 times as fast
        ("sm_90", 0.0016, "bad"),  # no faster, where the table says native
        ("sm_90", 0.0013, "unknown"),
        ("sm_86", 0.0009, "bad"),  # faster, where the table says there are no units
    ],
)
def test_the_ratio_shows_whether_fp8_is_native(arch: str, fp8_s: float, state: str) -> None:
    card = ours(arch={"value": arch, "how": "nvml"})
    assert verdicts.fp8_is_native(torch(fp8_s=fp8_s), [card]).state == state


def test_no_fp8_product_is_right_where_there_are_no_units() -> None:
    figures = torch(
        fp8_failure="torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9"
    )
    figures.pop("fp8_s")
    assert verdicts.fp8_is_native(figures, [ours(arch={"value": "sm_86", "how": ""})]).state == "good"
    assert verdicts.fp8_is_native(figures, [ours()]).state == "bad"


def test_torch_and_selfhost_must_see_the_same_cards() -> None:
    assert verdicts.same_view(torch(), [ours()]).state == "good"
    assert verdicts.same_view(torch(cards=[]), [ours()]).state == "unknown"
    assert verdicts.same_view(torch(), [ours(uuid="GPU-2")]).state == "bad"
    assert verdicts.same_view(torch(), [ours(arch={"value": "sm_89", "how": ""})]).state == "bad"
    assert verdicts.same_view(torch(), [ours(memory_total_bytes={"value": 80_000_000_000, "how": ""})]).state == "bad"


def test_a_detect_that_fails_is_bad_not_a_machine_without_cards() -> None:
    assert verdicts.detect_answered({"schema": "selfhost.host/1"}).state == "good"
    assert verdicts.detect_answered({"schema": "selfhost.error/1", "error": {"what": "x"}}).state == "bad"


def test_without_a_card_nothing_is_shown() -> None:
    assert verdicts.cards_found([]).state == "unknown"
    assert verdicts.cards_found([ours()]).state == "good"
    assert verdicts.cards_found([ours(usable={"value": False, "how": ""})]).state == "bad"
