"""Which CUDA a driver runs."""

import pytest

from selfhost.core.table import read_table
from selfhost.hosts import cuda
from selfhost.shapes.host import Known, Unknown


@pytest.mark.parametrize(
    ("driver", "highest"),
    # What nvidia-smi of these very drivers reports: captures in influxdata/telegraf, utkuozdemir/nvidia_gpu_exporter,
    # NVIDIA/nvidia-container-toolkit#1227, theroyallab/tabbyAPI#324.
    [
        ("515.105.01", "11.7"),
        ("535.54.03", "12.2"),
        ("550.144.03", "12.4"),
        ("570.133.20", "12.8"),
        ("580.126.09", "13.0"),
        ("590.48.01", "13.1"),
        ("595.84", "13.2"),
        ("610.57.04", "13.3"),
    ],
)
def test_a_driver_reports_the_cuda_of_its_branch(driver: str, highest: str) -> None:
    found = cuda.highest(driver)
    assert isinstance(found, Known)
    assert found.value == highest


@pytest.mark.parametrize(
    ("driver", "highest"),
    # https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/: 12.4 from 551.61, 12.5 from 555.85, 12.8 from 570.65
    [("551.76", "12.4"), ("555.99", "12.5"), ("572.83", "12.8"), ("591.86", "13.0"), ("537.13", None), ("", None)],
)
def test_a_windows_driver_runs_at_least_the_cuda_that_came_with_it(driver: str, highest: str | None) -> None:
    found = cuda.highest_on_windows(driver)
    assert (found.value if isinstance(found, Known) else None) == highest


def test_a_branch_in_no_table_is_unknown_and_not_the_nearest_one() -> None:
    assert cuda.highest("699.1") == Unknown("driver branch 699 is in no table of this version")
    assert isinstance(cuda.highest(""), Unknown)


@pytest.mark.parametrize(
    ("driver", "toolkit", "runs"),
    # https://docs.nvidia.com/deploy/cuda-compatibility/: 12.x from 525.60.13, 13.x from 580.65.06
    [
        ("535.54.03", "12.8", True),
        ("525.60.13", "12.0", True),
        ("525.60.11", "12.0", False),
        ("570.133.20", "13.0", False),
        ("580.65.06", "13.2", True),
        ("580.95.05", "9.0", None),
        ("", "12.8", None),
    ],
)
def test_within_a_major_any_driver_above_its_floor_runs_it(driver: str, toolkit: str, runs: bool | None) -> None:
    assert cuda.runs(driver, toolkit) is runs


def test_every_table_has_its_source() -> None:
    assert all("https://" in table["source"] for table in read_table("selfhost.hosts", "cuda_versions.toml").values())
