"""Copy bandwidth, BF16 and FP8 matrix products, and what torch sees; one JSON object on stdout."""

import json
import time
from collections.abc import Callable
from typing import Any

import torch

SIZE = 8192
REPEATS = 30


def seconds_of(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median of single runs, after three that do not count."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return sorted(taken)[len(taken) // 2]


def copy_gb_per_s() -> float:
    """Bytes read and written by a copy inside the card's memory, in 10^9 a second."""
    free, _ = torch.cuda.mem_get_info()
    count = min(4 << 30, free // 4)
    source = torch.empty(count, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * count / seconds_of(lambda: target.copy_(source)) / 1e9


def products() -> dict[str, Any]:
    """Seconds of a product of two 8192 x 8192 matrices in BF16 and in FP8 (e4m3, scaled per tensor)."""
    left = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    right = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    found: dict[str, Any] = {"bf16_s": seconds_of(lambda: left @ right)}
    try:
        one = torch.tensor(1.0, device="cuda")
        low, high = left.to(torch.float8_e4m3fn), right.to(torch.float8_e4m3fn).t().contiguous().t()
        found["fp8_s"] = seconds_of(
            lambda: torch._scaled_mm(  # noqa: SLF001  torch has no public name for its FP8 product
                low, high, scale_a=one, scale_b=one, out_dtype=torch.bfloat16
            )
        )
    except (RuntimeError, ValueError, AttributeError, TypeError) as error:
        found["fp8_failure"] = str(error).splitlines()[0][:200]
    return found


def view() -> list[dict[str, Any]]:
    cards = []
    for number in range(torch.cuda.device_count()):
        seen = torch.cuda.get_device_properties(number)
        cards.append(
            {
                "name": seen.name,
                "uuid": f"GPU-{seen.uuid}" if hasattr(seen, "uuid") else "",
                "arch": f"sm_{seen.major}{seen.minor}",
                "memory_total_bytes": seen.total_memory,
            }
        )
    return cards


print(json.dumps({"torch": torch.__version__, "cards": view(), "copy_gb_per_s": copy_gb_per_s(), **products()}))
