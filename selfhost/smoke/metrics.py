"""Numbers out of an engine's Prometheus page."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `status` reads pages too, and makes no probe
    from selfhost.smoke.probe import Probe

# docs.vllm.ai/en/latest/usage/metrics, docs.sglang.ai/references/production_metrics
RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs")
WAITING = ("vllm:num_requests_waiting", "sglang:num_queue_reqs")
PROMPT = ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total")
GENERATED = ("vllm:generation_tokens_total", "sglang:generation_tokens_total")


def total(page: str, names: tuple[str, ...]) -> int | None:
    """The sum over all labels (one line per data-parallel engine) of the first name that occurs; None without one."""
    for name in names:
        values = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})?[ \t]+([0-9.eE+-]+)", page, re.MULTILINE)
        if values:
            return int(sum(float(value) for value in values))
    return None


def running(probe: "Probe") -> int:
    """Requests that run or wait now; 0 when the page does not say."""
    page = probe.get(f"{probe.root}/metrics").text
    return (total(page, RUNNING) or 0) + (total(page, WAITING) or 0)


def counter(probe: "Probe", names: tuple[str, ...]) -> int:
    """A counter by its names in each engine; -1 when this one has none."""
    value = total(probe.get(f"{probe.root}/metrics").text, names)
    return -1 if value is None else value
