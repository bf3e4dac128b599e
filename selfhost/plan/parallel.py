"""Over how many devices the model is spread."""

from selfhost.plan.devices import Devices
from selfhost.plan.passed_on import PassedOn
from selfhost.shapes.plan import Decision, Evidence


def parallel_decision(devices: Devices, *, passed: PassedOn) -> Decision:
    """This version allocates one device; the engine refuses sizes that need more (engines/vllm.py)."""
    count = max(1, len(devices.cards))
    flag = "--tensor-parallel-size"
    return Decision(
        field="parallelism",
        value="none" if count == 1 else f"tensor parallel {count}",
        reason="one device is allocated" if count == 1 else "each device holds a part of every layer",
        source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html",
        evidence=Evidence.READ_IN_CODE,
        by=passed.by(flag) if flag in passed.flags else "selfhost",
    )
