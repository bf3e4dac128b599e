"""Numbers out of an engine's Prometheus page."""

import re

from selfhost.smoke.probe import Probe

RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs")
WAITING = ("vllm:num_requests_waiting", "sglang:num_queue_reqs")


def total(page: str, names: tuple[str, ...]) -> int | None:
    """The sum over all labels (one line per data-parallel engine) of the first name that occurs; None without one."""
    for name in names:
        values = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? ([0-9.eE+-]+)$", page, re.MULTILINE)
        if values:
            return int(sum(float(value) for value in values))
    return None


def running(probe: Probe) -> int:
    """Requests that run or wait now; 0 when the page does not say."""
    page = probe.get(f"{probe.root}/metrics").text
    return (total(page, RUNNING) or 0) + (total(page, WAITING) or 0)


def counter(probe: Probe, name: str) -> int:
    """A counter by its bare name; -1 when the engine has none."""
    value = total(probe.get(f"{probe.root}/metrics").text, (f"vllm:{name}", f"sglang:{name}"))
    return -1 if value is None else value
