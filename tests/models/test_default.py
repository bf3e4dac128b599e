"""The rule for the model that nobody named."""

import pytest

from selfhost.models.default import pick_default

GIB = 1024**3


@pytest.mark.parametrize(
    ("memory_gib", "cores", "accelerator_gib", "expected"),
    [
        (64, 16, 80, "qwen3-14b"),  # 29.5 GB ≤ 0.6 · 85.9 GB = 51.5 < 65.5 GB of the 32B
        (64, 16, 28, "qwen3-8b"),  # 16.4 GB ≤ 0.6 · 30.1 GB = 18.0
        (64, 16, 24, "qwen3-4b"),  # 0.6 · 25.8 GB = 15.5 < 16.4 GB of the 8B
        (64, 16, 141, "qwen3-32b"),  # 65.5 GB ≤ 0.6 · 151.4 GB = 90.8
        (64, 16, None, "qwen3-4b"),  # the 8B fits (16.4 GB ≤ 17.2), but 8.19 B > 0.5 B on each of 16 cores
        (64, 17, None, "qwen3-8b"),  # 8.19 B ≤ 8.5 B
        (16, 2, None, "qwen3-0.6b"),  # 1.2 GB ≤ 4.3; 0.596 B ≤ 1.0
        (32, 9, None, "qwen3-4b"),  # 8.0 GB ≤ 8.6; 4.02 B ≤ 4.5
        (2, 1, None, "smollm2-135m"),  # 0.596 B > 0.5 per core
    ],
)
def test_the_default_is_the_largest_that_fits_its_share(
    memory_gib: int, cores: float, accelerator_gib: int | None, expected: str
) -> None:
    accelerator = None if accelerator_gib is None else accelerator_gib * GIB
    ref, reason = pick_default(
        memory_bytes=memory_gib * GIB, cores=cores, accelerator_bytes=accelerator, hub_reachable=True
    )
    assert ref == expected
    assert ("demonstration" in reason) == (ref == "smollm2-135m")


def test_without_a_hub_the_embedded_model_is_chosen_and_called_a_demonstration() -> None:
    ref, reason = pick_default(memory_bytes=64 * GIB, cores=16, accelerator_bytes=None, hub_reachable=False)
    assert ref == "smollm2-135m"
    assert "demonstration" in reason
    assert "hub cannot be reached" in reason
